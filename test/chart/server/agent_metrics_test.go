package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart/lane"
)

// The program with the rights of the chart, cards of the stand-in, a real API server, and what a real kubelet answered.
func TestS73_the_agent_serves_what_each_pod_uses(t *testing.T) {
	cards := lane.NewCards(t)
	installed(t, "agent.enabled=true", "agent.metrics.port=9402", "agent.metrics.podResources=/var/lib/kubelet/pod-resources")
	aNode(t, "gpu-1")
	kubectl(t, "", "patch", "acceleratornode", "gpu-1", "--subresource=status", "--type=merge", "-p", `{"status": {"actualMode": "pgpu"}}`)
	for _, name := range []string{"train-0", "train-1"} {
		kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"nodeName": "gpu-1",
			"containers": [{"name": "main", "image": "none.test/none:1"}]}}`, name), "apply", "-n", "default", "-f", "-")
	}
	t.Cleanup(func() {
		kubectl(t, "", "delete", "pod", "train-0", "train-1", "-n", "default", "--ignore-not-found", "--grace-period=0", "--force")
	})
	_, file := agentOf(t, "gpu-1")
	for i := range 2 {
		cards.Card(i)["memory_used_mib"], cards.Card(i)["utilisation_gpu"] = 1000*(i+1), 25*(i+1)
	}
	cards.Write(t)
	port := lane.FreePort(t)
	lane.Start(t, cards.Environment, operator, "agent", "--kubeconfig", file, "--node-name", "gpu-1", "--card-period", "1", "--metrics-port", port,
		"--pod-resources", lane.Kubelet(t))

	// page waits until the samples are as told: by the start of a line, and "" for none.
	page := func(what string, samples map[string]string) {
		t.Helper()
		var body string
		var wrong []string
		for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
			answer, err := http.Get("http://127.0.0.1:" + port + "/metrics")
			if err != nil {
				continue
			}
			bytes, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			body, wrong = string(bytes), nil
			for sample, value := range samples {
				at := strings.Index(body, "\n"+sample)
				if (at < 0) != (value == "") || at >= 0 && !strings.HasPrefix(body[at+1+len(sample):], " "+value+"\n") {
					wrong = append(wrong, sample+" "+value)
				}
			}
			if len(wrong) == 0 {
				return
			}
		}
		t.Fatalf("%s: not so: %q in\n%s", what, wrong, body)
	}
	card := func(index int) string {
		return fmt.Sprintf(`{node="gpu-1",uuid="GPU-74200000-0000-4000-8000-00000000000%d",model="Tesla T4",mode="pgpu"`, index)
	}
	share := func(index int, pod string) string {
		return card(index) + fmt.Sprintf(`,namespace="default",pod=%q,container="main"}`, pod)
	}
	page("a pod has all of the card that it alone holds", map[string]string{
		"quartermaster_share_allocated_cores_ratio" + share(1, "train-0"): "1",
		"quartermaster_share_memory_used_bytes" + share(1, "train-0"):     "2097152000",
		"quartermaster_share_utilization_ratio" + share(1, "train-0"):     "0.5",
		"quartermaster_share_memory_used_bytes" + share(0, "train-1"):     "1048576000",
		"quartermaster_share_memory_used_bytes" + share(0, "train-0"):     "",
		"quartermaster_card_healthy" + card(0) + "}":                      "1",
		"quartermaster_exporter_kubelet_answers":                          "1",
	})
	// The kubelet still names it: the API server knows better.
	kubectl(t, "", "delete", "pod", "train-1", "-n", "default", "--grace-period=0", "--force")
	page("a pod that is gone has nothing", map[string]string{
		"quartermaster_share_memory_used_bytes" + share(0, "train-1"):                       "",
		"quartermaster_card_unattributed_memory_bytes" + card(0) + `,reason="unseen"}`:      "1048576000",
		"quartermaster_share_memory_used_bytes" + share(1, "train-0"):                       "2097152000",
		"quartermaster_card_unattributed_utilization_ratio" + card(1) + `,reason="unseen"}`: "0",
	})
}
