package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster.io/test/chart/lane"
)

// scraped asks a metrics port from an address of this machine, without looking at the certificate, as Prometheus does.
func scraped(port, path, token, source string) (int, string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 5 * time.Second}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequest("GET", "https://127.0.0.1:"+port+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// The operator and an agent with the rights of the chart, asked by accounts that have the chart's ClusterRole and by those that have not.
func Test_metrics_are_for_accounts_with_the_right(t *testing.T) {
	cards := lane.NewCards(t)
	installed(t, "replicaCount=0", "agent.enabled=true", "agent.metrics.port=9402", "metrics.authentication=true", "monitoring.prometheus.install=true",
		"networkPolicy=true")
	for _, account := range []string{"reader", "stranger"} {
		kubectl(t, "", "create", "serviceaccount", account, "-n", namespace)
	}
	kubectl(t, "", "create", "clusterrolebinding", "quartermaster-test", "--clusterrole", "quartermaster-metrics", "--serviceaccount", namespace+":reader")
	aNode(t, "gpu-1")
	_, file := agentOf(t, "gpu-1")
	ports := map[string]string{"operator": lane.FreePort(t), "agent": lane.FreePort(t)}
	lane.Start(t, []string{"POD_NAMESPACE=" + namespace}, operator, "controller", "--kubeconfig", kubeconfigOf(t, "quartermaster"),
		"--metrics-address", "127.0.0.1:"+ports["operator"], "--metrics-authentication")
	lane.Start(t, cards.Environment, operator, "agent", "--kubeconfig", file, "--node-name", "gpu-1", "--card-period", "1",
		"--metrics-port", ports["agent"], "--metrics-authentication")
	stranger, reader, installedOne := as(t, "stranger").token, as(t, "reader").token, as(t, "quartermaster-prometheus").token
	const home, elsewhere = "127.0.0.1", "127.0.0.2"
	for program, port := range ports {
		lane.Until(t, 30*time.Second, "the "+program+" answers", func() error {
			if status, said := scraped(port, "/metrics", "", home); status != 401 {
				return fmt.Errorf("%d %s", status, said)
			}
			return nil
		})
		lane.Until(t, 30*time.Second, "rights are known", func() error {
			if status, said := scraped(port, "/metrics", reader, home); status != 200 {
				return fmt.Errorf("%d %s", status, said)
			}
			return nil
		})
		for _, row := range []struct {
			token  string
			status int
			says   string
		}{
			{"", 401, "there is none in the request, or the API server does not take it"},
			{"made-up", 401, "the API server does not take it"},
			{reader[:len(reader)-8] + "AAAAAAAA", 401, "the API server does not take it"},
			{stranger, 403, "system:serviceaccount:" + namespace + ":stranger may not get /metrics; ClusterRole quartermaster-metrics gives the right"},
			{reader, 200, "\nquartermaster_build_info{"},
			{installedOne, 200, "\nquartermaster_build_info{"},
		} {
			source := home
			if row.status != 200 {
				source = elsewhere
			}
			status, said := scraped(port, "/metrics", row.token, source)
			if status != row.status || !strings.Contains(said, row.says) {
				t.Errorf("%s: %d %.300s, expected %d %s", program, status, said, row.status, row.says)
			}
			if status != 200 && (strings.Contains(said, "quartermaster_") || strings.Count(said, "\n") != 1) {
				t.Errorf("%s tells a stranger more than one line: %s", program, said)
			}
		}
		if answer, err := http.Get("http://127.0.0.1:" + port + "/metrics"); err == nil && answer.StatusCode == 200 {
			t.Errorf("%s serves its page without TLS, too", program)
		}

		// A burst of made-up tokens from many addresses. A token that is new comes from the address of the first.
		var group sync.WaitGroup
		var lock sync.Mutex
		statuses := map[int]int{}
		for i := range 24 {
			group.Go(func() {
				for j := range 25 {
					status, _ := scraped(port, "/metrics", fmt.Sprintf("made-up-%d-%d", i, j), fmt.Sprintf("127.0.0.%d", 10+i))
					lock.Lock()
					statuses[status]++
					lock.Unlock()
				}
			})
		}
		group.Wait()
		if statuses[429] < 500 || statuses[401] == 0 || statuses[401] > 60 || statuses[200] != 0 {
			t.Errorf("%s: 600 made-up tokens are answered %v", program, statuses)
		}
		if status, said := scraped(port, "/metrics", as(t, "reader").token, home); status != 200 {
			t.Errorf("%s: after the burst an account with the right gets %d %s", program, status, said)
		}
		if status, _ := scraped(port, "/metrics", reader, "127.0.0.99"); status != 200 {
			t.Errorf("%s: after the burst a token that is known gets %d", program, status)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, said := scraped(ports["operator"], path, "", home); status != 200 {
			t.Errorf("a probe of %s gets %d %s", path, status, said)
		}
	}
}

// Without the switch no one has a right that belongs to it.
func TestS5_without_authentication_no_one_may_ask_about_tokens(t *testing.T) {
	installed(t, "replicaCount=0", "agent.enabled=true", "agent.metrics.port=9402")
	for _, account := range []string{"quartermaster", "quartermaster-agent"} {
		for _, path := range []string{"/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"} {
			if status, _ := as(t, account).call(t, "POST", path, "application/json", "{}"); status != 403 {
				t.Errorf("%s at %s: %d, expected 403", account, path, status)
			}
		}
	}
}
