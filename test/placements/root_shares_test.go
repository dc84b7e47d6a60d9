package placements

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// withShare is a pod spec whose container of this list asks for a share by MPS. `of` and `own` are fields of the pod and of the container.
func withShare(list, of, own string) string {
	share := `{"name":"share","image":"x","resources":{"limits":{"nvidia.com/mps-core":"20","nvidia.com/mps-memory":"4"}}` + own + `}`
	containers, more := share, ""
	if list == "initContainers" {
		containers, more = `{"name":"main","image":"x"}`, `,"initContainers":[`+share+`]`
	}
	return `{"restartPolicy":"Never","schedulerName":"default-scheduler"` + of + `,"containers":[` + containers + `]` + more + `}`
}

// A container with a share by MPS that is root, or can become it, could lift the limits of all on its card: its author hears of it, and by a switch no such
// pod is made.
func TestAShareByMpsThatMayBeRootIsSaidAndBySwitchRefused(t *testing.T) {
	c := assemble(t)
	deny, err := c.Run("", "helm", "template", "quartermaster", "charts/quartermaster", "-n", release, "--set", "admission.rootShares=Deny",
		"--show-only", "templates/root-shares.yaml")
	must(t, err)
	deny = strings.ReplaceAll(deny, "root-shares.quartermaster.io", "root-shares-strict.quartermaster.io")
	for _, binding := range []string{"pods", "templates"} {
		deny = strings.ReplaceAll(deny, "name: root-shares-"+binding, "name: root-shares-strict-"+binding)
	}
	// In one namespace alone, next to the policy of the chart, which warns.
	deny = strings.ReplaceAll(deny, "namespaceSelector:\n      matchExpressions:\n",
		"namespaceSelector:\n      matchLabels: {kubernetes.io/metadata.name: rootless}\n      matchExpressions:\n")
	_, err = c.Run("apiVersion: v1\nkind: Namespace\nmetadata: {name: rootless}\n---\n"+
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: rooted, labels: {quartermaster.io/root-shares: allow}}\n---\n"+deny, "kubectl", "apply", "-f", "-")
	must(t, err)
	ask := func(namespace, body string) reply {
		said, err := c.ask(c.people["mallory"], "POST", "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", plain, body)
		must(t, err)
		return said
	}
	pod := func(labels, spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{` + labels + `}},"spec":` + spec + `}`
	}
	told := func(said reply) bool {
		return slices.ContainsFunc(said.warnings, func(w string) bool {
			return strings.Contains(w, "container share asks for a share by MPS (nvidia.com/mps-core), and root can lift")
		})
	}
	must(t, until(c.ctx, 30*time.Second, "the policies are in force", func() (bool, error) {
		body := pod("", withShare("containers", "", ""))
		return ask("rootless", body).code == http.StatusUnprocessableEntity && told(ask("work", body)), nil
	}))
	const (
		stays  = `"allowPrivilegeEscalation":false`
		person = `,"securityContext":{"runAsNonRoot":true}`
	)
	// Kubernetes 1.30 leaves the field out unless a feature gate is on: such a pod has the users of its node.
	spec, _ := ask("rooted", pod("", withShare("containers", `,"hostUsers":false`, ""))).object["spec"].(map[string]any)
	_, keepsHostUsers := spec["hostUsers"]
	for _, row := range []struct {
		of, own string
		is      bool // it may be root
	}{
		{"", "", true},
		{person, "", true},
		{"", `,"securityContext":{"runAsNonRoot":true}`, true},
		{"", `,"securityContext":{"runAsNonRoot":true,` + stays + `}`, false},
		{person, `,"securityContext":{` + stays + `}`, false},
		{`,"securityContext":{"runAsUser":1000}`, `,"securityContext":{` + stays + `}`, false},
		{`,"securityContext":{"runAsUser":1000}`, `,"securityContext":{"runAsUser":0,` + stays + `}`, true},
		{`,"securityContext":{"runAsUser":0}`, `,"securityContext":{"runAsUser":7,` + stays + `}`, false},
		{person, `,"securityContext":{"runAsNonRoot":false,` + stays + `}`, true},
		{`,"securityContext":{"runAsUser":1000}`, `,"securityContext":{"allowPrivilegeEscalation":true}`, true},
		{`,"hostUsers":false`, "", false},
		{`,"hostUsers":true`, "", true},
	} {
		if row.of == `,"hostUsers":false` && !keepsHostUsers {
			row.is = true
		}
		for _, list := range []string{"containers", "initContainers"} {
			body := pod("", withShare(list, row.of, row.own))
			warned, refused, free := ask("work", body), ask("rootless", body), ask("rooted", body)
			if warned.code != http.StatusCreated || told(warned) != row.is {
				t.Errorf("%s %s %s: %d %q %s", list, row.of, row.own, warned.code, warned.warnings, warned.message)
			}
			if (refused.code == http.StatusCreated) == row.is || row.is && !strings.Contains(refused.message, "runAsNonRoot to true") {
				t.Errorf("%s %s %s where it is refused: %d %s", list, row.of, row.own, refused.code, refused.message)
			}
			if free.code != http.StatusCreated || told(free) {
				t.Errorf("%s %s %s where it is allowed: %d %q", list, row.of, row.own, free.code, free.warnings)
			}
		}
	}
	// A container without a share is left alone, also next to one with a share.
	for _, spec := range []string{
		`{"containers":[{"name":"main","image":"x"}]}`,
		`{"containers":[{"name":"main","image":"x","resources":{"limits":{"nvidia.com/mps-core":"0"}}}]}`,
		strings.Replace(withShare("initContainers", "", `,"securityContext":{"runAsUser":5,`+stays+`}`), `"name":"main"`, `"name":"main","securityContext":{"runAsUser":0}`, 1),
	} {
		if said := ask("rootless", pod("", spec)); said.code != http.StatusCreated {
			t.Errorf("%s: %d %s", spec, said.code, said.message)
		}
	}
	// Of a controller's pod no one reads a warning; a refusal counts for it too.
	controlled := pod(`"pod-template-hash":"1"`, withShare("containers", "", ""))
	if said := ask("work", controlled); said.code != http.StatusCreated || told(said) {
		t.Errorf("a controller's pod: %d %q", said.code, said.warnings)
	}
	if said := ask("rootless", controlled); said.code != http.StatusUnprocessableEntity {
		t.Errorf("a controller's pod where it is refused: %d %q", said.code, said.message)
	}
	template := `{"metadata":{"labels":{"a":"b"}},"spec":` + withShare("containers", "", "") + `}`
	said, err := c.ask(c.people["mallory"], "POST", "/apis/batch/v1/namespaces/work/jobs?dryRun=All", plain,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":`+template+`}}`)
	must(t, err)
	if said.code != http.StatusCreated || !told(said) {
		t.Errorf("a job: %d %s %q", said.code, said.message, said.warnings)
	}
}
