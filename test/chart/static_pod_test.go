package chart

import (
	"encoding/json"
	"strings"
	"testing"
)

func Test_what_the_agent_for_static_pods_becomes(t *testing.T) {
	objects, err := Template("{imagePullSecrets: [{name: pull}]}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, one := range objects {
		if strings.HasPrefix(one.Text, "# Source: quartermaster/templates/static-pod.yaml\n") {
			text.WriteString("---\n" + one.Text)
		}
	}
	Golden(t, "static-pod.yaml", text.String())
}

// S5: the agent is root and writes the kube-scheduler's files; beyond that it may do nothing.
func TestS5_what_the_agent_for_static_pods_may_do(t *testing.T) {
	objects, err := Template("{}")
	if err != nil {
		t.Fatal(err)
	}
	var pod map[string]any
	for _, one := range objects {
		if one.Kind == "DaemonSet" && one.Name == "quartermaster-static-pod" {
			pod = one.Content["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		}
	}
	if pod == nil {
		t.Fatal("the chart has no DaemonSet quartermaster-static-pod")
	}
	said := map[string]any{}
	for _, key := range []string{"hostPID", "hostIPC", "hostNetwork", "initContainers", "securityContext"} {
		if of, there := pod[key]; there {
			said[key] = of
		}
	}
	said["volumes"] = pod["volumes"]
	for _, one := range pod["containers"].([]any) {
		of := one.(map[string]any)
		said[of["name"].(string)] = []any{of["securityContext"], of["volumeMounts"]}
	}
	got, _ := json.Marshal(said)
	const want = `{"agent":[{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true},` +
		`[{"mountPath":"/etc/kubernetes","name":"kubernetes"}]],"hostNetwork":true,` +
		`"securityContext":{"runAsGroup":0,"runAsUser":0,"seccompProfile":{"type":"RuntimeDefault"}},` +
		`"volumes":[{"hostPath":{"path":"/etc/kubernetes","type":"Directory"},"name":"kubernetes"}]}`
	if string(got) != want {
		t.Errorf("the agent may do\n%s\nand was to do\n%s", got, want)
	}
}

func Test_wrong_values_of_the_agent_for_static_pods_are_refused_with_their_path(t *testing.T) {
	refused(t, map[string]string{
		"{staticPod: {patienceSeconds: 5}}":               "at '/staticPod/patienceSeconds': minimum: got 5, want 30",
		"{staticPod: {root: /etc}}":                       "at '/staticPod': additional properties 'root' not allowed",
		"{staticPod: {resources: {limit: {cpu: \"1\"}}}}": "at '/staticPod/resources': additional properties 'limit' not allowed",
	})
}
