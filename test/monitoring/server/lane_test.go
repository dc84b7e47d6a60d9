// Package server: the operator on a real control plane and two agents on the stand-in for cards, scraped by a real Prometheus that has
// the chart's rules and the settings of the chart's PodMonitors.
package server

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart/lane"
)

const namespace = lane.Namespace

var (
	testCluster = lane.New("monitoring")
	kubeconfig  string
	program     = lane.Program()

	call, kubectl, asAccount = testCluster.Call, testCluster.Kubectl, testCluster.AccountKubeconfig
	start, freePort, until   = lane.Start, lane.FreePort, lane.Until
)

func TestMain(m *testing.M) {
	os.Exit(testCluster.Run(func() int { kubeconfig = testCluster.Kubeconfig; return m.Run() }))
}

func get(url string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// startAgent runs the agent of a node on two cards of the stand-in, whose UUIDs end in `tail` and a number, and returns its port. Its token
// names no node here, so it has the administrator's rights: what it may do is tested with the chart.
func startAgent(t *testing.T, node, tail string, more ...string) string {
	t.Helper()
	cards, port := lane.NewCards(t), freePort(t)
	for i := range 2 {
		card := cards.Card(i)
		card["uuid"] = strings.Replace(card["uuid"].(string), "-000000000", "-"+tail, 1)
		card["memory_used_mib"], card["utilisation_gpu"] = 1000*(i+1), 24*(i+1)
	}
	cards.Write(t)
	start(t, cards.Environment, program,
		append([]string{"agent", "--kubeconfig", kubeconfig, "--node-name", node, "--card-period", "1", "--metrics-port", port}, more...)...)
	return port
}
