package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart/lane"
)

const agents = "/apis/quartermaster.io/v1alpha1/acceleratornodes/"

// aNode is a Node with its AcceleratorNode, and a pod of the agent that is bound to it.
func aNode(t *testing.T, name string) {
	t.Helper()
	kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}}`, name), "apply", "-f", "-")
	kubectl(t, fmt.Sprintf(`{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": %q}}`, name), "apply", "-f", "-")
	kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent-%[1]s", "labels": {"app.kubernetes.io/name": "quartermaster-agent"}}, "spec": {"nodeName": %[1]q, "serviceAccountName": "quartermaster-agent",
		"automountServiceAccountToken": false, "containers": [{"name": "agent", "image": "none.test/none:1"}]}}`, name), "apply", "-n", namespace, "-f", "-")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "pod", "agent-"+name, "-n", namespace, "--ignore-not-found", "--grace-period=0", "--force")
		kubectl(t, "", "delete", "node,acceleratornode", name, "--ignore-not-found")
	})
}

// agentOf is a client with the token of the agent on a node, and a kubeconfig with it.
func agentOf(t *testing.T, node string) (client, string) {
	t.Helper()
	out := as(t, "quartermaster-agent")
	out.token = kubectl(t, "", "create", "token", "quartermaster-agent", "-n", namespace, "--bound-object-kind", "Pod", "--bound-object-name", "agent-"+node)
	file := kubeconfigOf(t, "quartermaster-agent")
	kubectl(t, "", "--kubeconfig", file, "config", "set-credentials", "hook", "--token", out.token)
	return out, file
}

func numbers(first, count int) []int {
	var out []int
	for i := range count {
		out = append(out, first+i)
	}
	return out
}

func (c client) report(t *testing.T, node, status string) (int, string) {
	t.Helper()
	code, answer := c.call(t, "PATCH", agents+node+"/status?fieldManager=quartermaster-agent&force=true", "application/apply-patch+yaml",
		fmt.Sprintf(`{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": %q}, "status": %s}`, node, status))
	message, _ := answer["message"].(string)
	return code, message
}

func TestS5_an_agent_writes_about_its_own_node_and_only_its_own_fields(t *testing.T) {
	installed(t, "agent.enabled=true")
	aNode(t, "gpu-1")
	aNode(t, "gpu-2")
	kubectl(t, "", "patch", "acceleratornode", "gpu-1", "--subresource=status", "--type=merge", "-p",
		`{"status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}}`)
	one, _ := agentOf(t, "gpu-1")
	const cards = `{"cards": [{"uuid": "GPU-a", "health": "Healthy", "links": ["X"]}], "driver": {"version": "550.90.07"},
		"conditions": [{"type": "CardsHealthy", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}`
	// The server learns of a policy within seconds.
	deadline := time.Now().Add(30 * time.Second)
	for {
		if code, _ := one.report(t, "gpu-2", cards); code == 422 || time.Now().After(deadline) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, row := range []struct{ node, status, refusal string }{
		{"gpu-1", cards, ""},
		{"gpu-1", `{"preflight": [{"check": "cdi", "state": "failed", "found": "f", "remedy": "r"}], "conditions": [{"type": "PreflightPassed", "status": "False", "reason": "R",
			"message": "m", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}`, ""},
		{"gpu-1", `{"conditions": [{"type": "CardsHealthy", "status": "True", "reason": "R", "message": "m", "cause": "nvml.in_order", "parameters": {"number": "1"},
			"lastTransitionTime": "2026-07-01T00:00:00Z"}]}`, ""},
		{"gpu-1", `{"otherCards": [{"busID": "0000:3b:00.0", "vendor": "AMD", "pciID": "1002:740c", "driver": "amdgpu", "numa": 1}]}`, ""},
		{"gpu-1", `{"otherCards": [{"vendor": "AMD"}]}`, "busID"},
		{"gpu-1", `{"preflight": [{"check": "cdi", "state": "bad"}]}`, `Unsupported value: "bad"`},
		{"gpu-2", cards, "the agent of node gpu-1 may write the AcceleratorNode of its own node only, and this is gpu-2"},
		{"gpu-1", `{"phase": "Stuck"}`, "status.phase belongs to the operator; an agent may write driver, cards, otherCards, preflight and the conditions CardsHealthy and PreflightPassed"},
		{"gpu-1", `{"restore": ["GPU-a"]}`, "status.restore belongs to the operator"},
		{"gpu-1", `{"runtimeFix": {"result": "Done"}}`, "status.runtimeFix belongs to the operator"},
		{"gpu-1", `{"requestedMode": "vgpu"}`, "status.requestedMode belongs to the operator"},
		{"gpu-1", `{"cause": "status.node.no_turn"}`, "status.cause belongs to the operator"},
		{"gpu-1", `{"parameters": {"mode": "vgpu"}}`, "status.parameters belongs to the operator"},
		{"gpu-1", `{"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}`,
			"a condition belongs to the operator"},
		{"gpu-1", `{"conditions": [{"type": "AgentReporting", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}`,
			"a condition belongs to the operator"},
	} {
		code, message := one.report(t, row.node, row.status)
		if (row.refusal == "") != (code == 200) || !strings.Contains(message, row.refusal) {
			t.Errorf("%s %s: %d %s, expected %q", row.node, row.status, code, message, row.refusal)
		}
	}
	// A token that is bound to no pod names no node.
	if code, message := as(t, "quartermaster-agent").report(t, "gpu-1", cards); code == 200 || !strings.Contains(message, "its token names none") {
		t.Errorf("a token without a node: %d %s", code, message)
	}
	for _, row := range []struct{ method, path string }{
		{"DELETE", agents + "gpu-1"},
		{"PUT", agents + "gpu-1"},
		{"GET", "/api/v1/nodes"},
		{"GET", "/api/v1/pods"},
		{"GET", "/api/v1/namespaces/" + namespace + "/secrets"},
	} {
		if code, _ := one.call(t, row.method, row.path, "application/json", ""); code != 403 {
			t.Errorf("%s %s: %d, expected 403", row.method, row.path, code)
		}
	}
	// It may make the object of its node, where there is none, and no other.
	kubectl(t, "", "delete", "acceleratornode", "gpu-1", "gpu-2")
	for node, wanted := range map[string]int{"gpu-1": 201, "gpu-2": 422} {
		code, answer := one.call(t, "POST", strings.TrimSuffix(agents, "/"), "application/json",
			fmt.Sprintf(`{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": %q}}`, node))
		if code != wanted {
			t.Errorf("making %s: %d %v, expected %d", node, code, answer["message"], wanted)
		}
	}
	kubectl(t, `{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": "gpu-2"}}`, "apply", "-f", "-")
	kubectl(t, "", "delete", "acceleratornode", "gpu-1")
	for _, more := range []string{`"finalizers": ["example.com/x"]`, `"labels": {"a": "b"}`, `"annotations": {"a": "b"}`,
		`"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]`, `"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "gpu-2", "uid": "1"}]`} {
		code, answer := one.call(t, "POST", strings.TrimSuffix(agents, "/"), "application/json",
			fmt.Sprintf(`{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": "gpu-1", %s}}`, more))
		if message, _ := answer["message"].(string); code != 422 || !strings.Contains(message, "with name and owner alone") {
			t.Errorf("making it with %s: %d %v", more, code, answer["message"])
		}
	}
	// The operator and people are not concerned.
	kubectl(t, "", "patch", "acceleratornode", "gpu-2", "--subresource=status", "--type=merge", "-p", `{"status": {"phase": "Ready"}}`)
}

type reported struct {
	Driver     struct{ Version, Cuda, Boot string }
	Cards      []struct{ UUID, Model, Health string }
	Preflight  []struct{ Check, State, Found, Remedy string }
	Conditions []struct{ Type, Status, Reason, Message string }
}

// condition says status and reason of one, and its message.
func (r reported) condition(kind string) (status, reason, message string) {
	for _, one := range r.Conditions {
		if one.Type == kind {
			return one.Status, one.Reason, one.Message
		}
	}
	return
}

func (r reported) check(name string) (state, found, remedy string) {
	for _, row := range r.Preflight {
		if row.Check == name {
			return row.State, row.Found, row.Remedy
		}
	}
	return
}

func statusOf(t *testing.T, node string) (out reported) {
	t.Helper()
	if text := kubectl(t, "", "get", "acceleratornode", node, "--ignore-not-found", "-o", "jsonpath={.status}"); text != "" {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
	}
	return
}

// setReady plays the kubelet.
func setReady(t *testing.T, pod, ready string) {
	t.Helper()
	kubectl(t, "", "patch", "pod", pod, "-n", namespace, "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": %q}]}}`, ready))
}

// The pod of an agent goes: its report is called old, and nothing of it is taken back. The pod comes back: the report is fresh again.
func TestS1_the_report_of_an_agent_that_is_gone_is_called_old_long(t *testing.T) {
	installed(t, "agent.enabled=true", "replicaCount=0")
	aNode(t, "gpu-1")
	kubectl(t, "", "label", "node", "gpu-1", "nvidia-device-enable=pgpu")
	kubectl(t, `{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": "gpu-2"}}`, "apply", "-f", "-") // never had an agent
	kubectl(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-2"}}`, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, "", "delete", "node,acceleratornode", "gpu-2", "--ignore-not-found") })
	agent, _ := agentOf(t, "gpu-1")
	const report = `{"cards": [{"uuid": "GPU-a", "health": "Healthy"}, {"uuid": "GPU-b", "health": "XID 48"}], "driver": {"version": "550.90.07", "boot": "one"},
		"preflight": [{"check": "cdi", "state": "failed", "found": "f", "remedy": "r"}, {"check": "cuda", "state": "ok"}],
		"conditions": [{"type": "CardsHealthy", "status": "False", "reason": "CardUnhealthy", "message": "m", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}`
	soon(t, "the agent may report", func() bool { code, _ := agent.report(t, "gpu-1", report); return code == 200 })
	setReady(t, "agent-gpu-1", "True")
	metrics := operates(t, "--agent-grace", "4")
	series := func(name string) string {
		answer, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		for line := range strings.Lines(string(text)) {
			if value, is := strings.CutPrefix(line, name+" "); is {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	soon(t, "checks that failed are counted", func() bool { return series(`quartermaster_preflight_failed_nodes{check="cdi"}`) == "1" })
	says := func() string {
		status, reason, _ := statusOf(t, "gpu-1").condition("AgentReporting")
		return strings.TrimSpace(status + " " + reason)
	}
	stays := func(what, wanted string, window time.Duration) {
		t.Helper()
		for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if is := says(); is != wanted {
				t.Fatalf("%s: AgentReporting is %q, expected %q", what, is, wanted)
			}
		}
	}
	stays("while the agent runs", "", 5*time.Second)
	setReady(t, "agent-gpu-1", "False")
	stays("while a new pod of the agent comes", "", time.Second) // with two calls of kubectl it must stay below the grace
	setReady(t, "agent-gpu-1", "True")
	stays("after it has come", "", 4*time.Second)

	began := time.Now()
	kubectl(t, "", "delete", "pod", "agent-gpu-1", "-n", namespace, "--grace-period=0", "--force")
	soon(t, "the report is old", func() bool { return says() == "False AgentGone" })
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("called old after %s, and 4 s are the grace", took)
	}
	is := statusOf(t, "gpu-1")
	if len(is.Cards) != 2 || is.Cards[1].Health != "XID 48" || is.Driver.Version != "550.90.07" || len(is.Preflight) != 2 {
		t.Errorf("the report is not as the agent left it: %+v", is)
	}
	if _, _, message := is.condition("AgentReporting"); !strings.HasPrefix(message, "no agent has run on this node since 20") || !strings.Contains(message, "kubectl delete anode gpu-1") {
		t.Errorf("the message: %s", message)
	}
	if status, _, _ := statusOf(t, "gpu-2").condition("AgentReporting"); status != "" {
		t.Errorf("a node that never had an agent is called %s", status)
	}
	soon(t, "the metric", func() bool { return series("quartermaster_agent_gone_nodes") == "1" })
	events := func(reason string) string {
		return kubectl(t, "", "get", "events", "-n", "default", "--field-selector", "reason="+reason, "-o", "jsonpath={range .items[*]}{.involvedObject.name}{\" \"}{end}")
	}
	soon(t, "an event", func() bool { return events("AgentGone") == "gpu-1" })
	if out, _ := run("", operator, "verify", "gpu-1"); !strings.Contains(out, "the report of this node is old: no agent has run on this node since") {
		t.Errorf("verify: %s", out)
	}
	if out, _ := run("", operator, "inspect", "nodes"); !strings.Contains(out, "AgentGone") {
		t.Errorf("inspect nodes: %s", out)
	}
	stays("while it is gone", "False AgentGone", time.Second)

	aNode(t, "gpu-1")
	setReady(t, "agent-gpu-1", "True")
	began = time.Now()
	soon(t, "the agent is back", func() bool { return says() == "True AgentRuns" })
	if took := time.Since(began); took < 8*time.Second {
		t.Errorf("called fresh after %s; a pod that crashes again and again is Ready for less than 10 s", took)
	}
	soon(t, "the metric goes back", func() bool { return series("quartermaster_agent_gone_nodes") == "0" })

	// What docs/agent.md says of a fleet whose agents are switched off: the report goes, and the operator's part comes back.
	kubectl(t, "", "delete", "pod", "agent-gpu-1", "-n", namespace, "--grace-period=0", "--force")
	kubectl(t, "", "delete", "anode", "gpu-1")
	soon(t, "the operator's part is back", func() bool {
		return kubectl(t, "", "get", "anode", "gpu-1", "--ignore-not-found", "-o", "jsonpath={.status.phase}") != ""
	})
	if is := statusOf(t, "gpu-1"); len(is.Cards) != 0 || len(is.Preflight) != 0 || says() != "" {
		t.Errorf("after the report was removed: %+v", is)
	}
}

// The program with the rights of the chart, and the stand-in for the card.
func TestS1_the_agent_reports_cards_and_withdraws_a_sick_one(t *testing.T) {
	cards := lane.NewCards(t)
	installed(t, "agent.enabled=true")
	aNode(t, "gpu-1")
	_, file := agentOf(t, "gpu-1")
	kubectl(t, "", "delete", "acceleratornode", "gpu-1") // the node asks for no mode: the agent makes the object
	// The files of a node with a toolkit that is too old; its other folders are not mounted.
	node := t.TempDir()
	toolkit := func(version string) {
		folder := filepath.Join(node, "usr/lib64")
		if os.RemoveAll(folder) != nil || os.MkdirAll(folder, 0o755) != nil || os.WriteFile(filepath.Join(folder, "libnvidia-container.so."+version), nil, 0o644) != nil {
			t.Fatal("no node")
		}
	}
	toolkit("1.6.0")
	start := func() lane.Process {
		t.Helper()
		return lane.Start(t, cards.Environment, operator, "agent", "--kubeconfig", file, "--node-name", "gpu-1", "--node-root", node)
	}
	await := func(what string, patience time.Duration, done func(reported) bool) {
		t.Helper()
		began := time.Now()
		for {
			is := statusOf(t, "gpu-1")
			if done(is) {
				t.Logf("%s: after %.2f s", what, time.Since(began).Seconds())
				return
			}
			if time.Since(began) > patience {
				t.Fatalf("%s: not after %s: %+v", what, patience, is)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	health := func(index int, wanted string) func(reported) bool {
		return func(is reported) bool { return len(is.Cards) == 2 && is.Cards[index].Health == wanted }
	}

	agent := start()
	await("the first checks are reported", 30*time.Second, func(is reported) bool { return len(is.Preflight) > 5 })
	await("cards are reported", 10*time.Second, func(is reported) bool {
		return health(0, "Healthy")(is) && health(1, "Healthy")(is) && is.Cards[0].Model == "Tesla T4" && is.Driver.Version == "535.183.01" && func() bool { status, _, _ := is.condition("CardsHealthy"); return status == "True" }()
	})
	await("a check that failed is reported, with what to do", 10*time.Second, func(is reported) bool {
		state, found, remedy := is.check("container_toolkit")
		status, reason, message := is.condition("PreflightPassed")
		unseen, why, _ := is.check("device_nodes")
		_, driver, _ := is.check("driver")
		return state == "failed" && found == "1.6.0" && strings.HasPrefix(remedy, "install nvidia-container-toolkit 1.7.0 or newer") && status == "False" &&
			reason == "CheckFailed" && strings.HasPrefix(message, "failed: container_toolkit (1.6.0)") && unseen == "unknown" &&
			why == "/dev of the node is not mounted at "+node+"/dev" && driver == "535.183.01"
	})
	second := cards.Card(1)
	// A storm: numbers that no one knows, then one that is the program's own, and a fatal one.
	var storm []any
	for _, xid := range append(numbers(1000, 60), 31, 48) {
		storm = append(storm, map[string]any{"sequence": len(storm) + 1, "card": second["uuid"], "xid": xid})
	}
	cards.Fixture["events"] = storm
	cards.Write(t)
	// The watch of kubectl and this loop are in the figure.
	await("a fatal XID withdraws the card", 2*time.Second, health(1, "XID 48"))
	is := statusOf(t, "gpu-1")
	var lines []string
	await("the storm is in the log", 3*time.Second, func(reported) bool {
		text, _ := os.ReadFile(agent.Log)
		lines = regexp.MustCompile(`the driver reports an XID .*`).FindAllString(string(text), -1)
		count := 0
		for _, line := range lines {
			one := 1
			if _, number, is := strings.Cut(line, "count="); is {
				fmt.Sscan(number, &one)
			}
			count += one
		}
		return count == 61
	})
	if len(lines) > 4 || !regexp.MustCompile(`xid="?48[ ,].*and \d+ more`).MatchString(strings.Join(lines, "\n")) {
		t.Errorf("the storm is not one line a second, with the fatal XID first:\n%s", strings.Join(lines, "\n"))
	}
	if _, reason, message := is.condition("CardsHealthy"); is.Cards[0].Health != "Healthy" || reason != "CardUnhealthy" || !strings.Contains(message, second["uuid"].(string)) {
		t.Errorf("only the second card is sick: %+v", is)
	}

	// Killed and started again: the machine has not been, so the card is still out of use.
	agent.Process.Kill()
	agent.Wait()
	version := kubectl(t, "", "get", "acceleratornode", "gpu-1", "-o", "jsonpath={.metadata.resourceVersion}")
	agent = start()
	time.Sleep(2 * time.Second)
	if now := kubectl(t, "", "get", "acceleratornode", "gpu-1", "-o", "jsonpath={.metadata.resourceVersion}"); now != version {
		t.Errorf("it wrote although nothing has changed: %s, then %s: %+v", version, now, statusOf(t, "gpu-1"))
	}

	driverFacts := cards.Fixture["driver"]
	cards.Fixture["driver"] = nil
	cards.Write(t)
	await("the driver is unloaded", 5*time.Second, health(0, "NoDriver"))
	toolkit("1.17.8")
	cards.Fixture["driver"] = driverFacts
	cards.Write(t)
	await("the driver is loaded anew, and all cards begin again", 5*time.Second, func(is reported) bool { return health(0, "Healthy")(is) && health(1, "Healthy")(is) })

	await("with the driver the files are read again", 10*time.Second, func(is reported) bool {
		state, found, remedy := is.check("container_toolkit")
		status, _, _ := is.condition("PreflightPassed")
		return state == "ok" && found == "1.17.8" && remedy == "" && status == "True"
	})
	second["lost"] = true
	cards.Write(t)
	await("a card falls off the bus", 5*time.Second, health(1, "Lost"))
	events := kubectl(t, "", "get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={range .items[*]}{.regarding.name} {.reason} {.note}{\"\\n\"}{end}")
	for _, wanted := range []string{"gpu-1 CardUnhealthy card " + second["uuid"].(string) + " (Tesla T4) is sick: XID 48", "gpu-1 CardHealthy card"} {
		if !strings.Contains(events, wanted) {
			t.Errorf("no event %q in:\n%s", wanted, events)
		}
	}
}
