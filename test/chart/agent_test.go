package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// S5: the agent for cards sees five folders of its node and may write in none. It is no root and not in root's group, because /run has
// the sockets of container runtimes. Each folder has its reason in docs/agent.md.
func TestS5_what_the_agent_for_cards_may_do(t *testing.T) {
	objects, err := Template("{agent: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}
	var pod map[string]any
	for _, one := range objects {
		if one.Kind == "DaemonSet" && one.Name == "quartermaster-agent" {
			pod = one.Content["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		}
	}
	if pod == nil {
		t.Fatal("the chart has no DaemonSet quartermaster-agent")
	}
	page, err := os.ReadFile(filepath.Join(Root(), "docs/agent.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]any{}
	for _, key := range []string{"hostPID", "hostIPC", "hostNetwork", "initContainers", "securityContext"} {
		if of, there := pod[key]; there {
			said[key] = of
		}
	}
	var paths []string
	for _, one := range pod["volumes"].([]any) {
		path := one.(map[string]any)["hostPath"].(map[string]any)["path"].(string)
		paths = append(paths, path)
		if !strings.Contains(string(page), "| `"+path+"` of the node, read-only |") {
			t.Errorf("docs/agent.md has no reason for %s", path)
		}
	}
	said["paths"] = paths
	for _, one := range pod["containers"].([]any) {
		of := one.(map[string]any)
		said[of["name"].(string)] = of["securityContext"]
		for _, mount := range of["volumeMounts"].([]any) {
			if mount.(map[string]any)["readOnly"] != true {
				t.Errorf("a mount that is not read-only: %v", mount)
			}
		}
	}
	got, _ := json.Marshal(said)
	const want = `{"agent":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true},"paths":["/dev","/etc","/run","/usr","/var/lib/kubelet/device-plugins"],` +
		`"securityContext":{"runAsGroup":65531,"runAsNonRoot":true,"runAsUser":65531,"seccompProfile":{"type":"RuntimeDefault"}}}`
	if string(got) != want {
		t.Errorf("the agent may do\n%s\nand was to do\n%s", got, want)
	}
}
