package plugins

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// The agent on the node asks the real kubelet whom NVIDIA's plugin gave which card, and finds the pod of a process by its cgroup.
func TestTheExporterNamesThePodOfACard(t *testing.T) {
	m := openMachine(t, "t4_pair", nil, object{"pgpu": object{}})
	m.nvidiaImage("nvidia-device-plugin-ds")
	m.ask("pgpu")
	m.offers(60*time.Second, map[string]string{gpu: "2"})
	m.AwaitPhase(ctx, 60*time.Second, real1, "pgpu", "Ready")
	_, found := m.pod("first", gpu, runtime)
	pod, other := m.pod("second", gpu, runtime)
	card, free := m.cardOf(other), m.cardOf(found)
	if card < 0 || free < 0 || card == free {
		t.Fatalf("the pods were given %+v and %+v", found, other)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	out, err := m.Script("node-exec", "bash", "-c", "for file in /proc/[0-9]*/cgroup; do ! grep -q "+id+" $file || { file=${file#/proc/}; echo ${file%/cgroup}; break; }; done")
	must(t, err)
	var process int
	if _, err := fmt.Sscan(out, &process); err != nil {
		t.Fatalf("no process of container %s: %q", id, out)
	}
	m.change(func(node object) {
		cards(node)[card]["memory_used_mib"] = 1000
		cards(node)[card]["processes"] = []any{object{"pid": process, "memory_mib": 300}, object{"pid": 1, "memory_mib": 50}}
		cards(node)[free]["memory_used_mib"] = 700
	})
	series := func(name string, card int, more string) string {
		return fmt.Sprintf("quartermaster_%s{node=%q,uuid=%q,model=\"Tesla T4\",mode=\"pgpu\",%s}", name, real1, m.uuids()[card], more)
	}
	share := func(name string, card int, pod string) string {
		return series("share_"+name, card, fmt.Sprintf("namespace=\"default\",pod=%q,container=\"main\"", pod))
	}
	expected := []string{
		share("allocated_cores_ratio", card, "second") + " 1\n",
		share("memory_used_bytes", card, "second") + fmt.Sprintf(" %d\n", 300<<20),
		series("card_unattributed_memory_bytes", card, `reason="host"`) + fmt.Sprintf(" %d\n", 50<<20),
		series("card_unattributed_memory_bytes", card, `reason="unseen"`) + fmt.Sprintf(" %d\n", 650<<20),
		share("memory_used_bytes", free, "first") + fmt.Sprintf(" %d\n", 700<<20),
	}
	// The agent runs in the namespaces of the node, where the API server has another address.
	script := fmt.Sprintf(`sed 's#https://127.0.0.1:#https://192.0.2.1:#' %s >/run/agent.kubeconfig
%s agent --node-name %s --kubeconfig /run/agent.kubeconfig --card-period 1 --metrics-port 9402 --pod-resources /var/lib/kubelet/pod-resources/kubelet.sock 2>/run/agent.log & agent=$!
for (( i = 0; i < 100; i++ )); do
  sleep 0.2
  page=$(curl -s localhost:9402/metrics)
  [[ $page == *'mode="pgpu"'*'share_memory_used_bytes'*'pod="first"'* ]] && break
done
kill $agent; printf '%%s\n' "$page"; cat /run/agent.log >&2`, m.Cluster.Kubeconfig, kit.ProgramUnderTest(t), real1)
	page, err := m.Script("node-exec", "bash", "-c", script)
	must(t, err)
	for _, line := range expected {
		if !strings.Contains(page, line) {
			t.Errorf("the page has no %s in:\n%s", line, page)
		}
	}
}
