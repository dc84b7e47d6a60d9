// Package server: `quartermaster console` with the rights that the chart gives it, on a real control plane. Two ServiceAccounts, each with
// the role view in its own namespace, ask every path with their real tokens.
package server

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"quartermaster.io/test/chart/lane"
)

const namespace = lane.Namespace

var (
	testCluster = lane.New("console")
	kubeconfig  string
	program     = lane.Program()

	call, kubectl, asAccount = testCluster.Call, testCluster.Kubectl, testCluster.AccountKubeconfig
	start, freePort, until   = lane.Start, lane.FreePort, lane.Until
)

func TestMain(m *testing.M) {
	os.Exit(runWithProvider(func(options []string) int {
		return testCluster.Run(func() int { kubeconfig = testCluster.Kubeconfig; return m.Run() }, options...)
	}))
}

// answer is what a path of the console says to a caller with this token.
type answer struct {
	status int
	body   string
	header http.Header
}

func ask(t *testing.T, port, method, path, token string) answer {
	t.Helper()
	request, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: 20 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, string(body), response.Header}
}
