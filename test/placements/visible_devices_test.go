package placements

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// withVisible is a pod spec with this entry of a container's environment, "" for none, in one of the lists of containers.
func withVisible(list, entry string) string {
	env := ""
	if entry != "" {
		env = `,"env":[{"name":"A","value":"b"},{"name":"NVIDIA_VISIBLE_DEVICES",` + entry + `}]`
	}
	main, more := "", `,"`+list+`":[{"name":"more","image":"x"`+env+`}]`
	if list == "containers" {
		main, more = env, ""
	}
	return `{"restartPolicy":"Never","containers":[{"name":"main","image":"x"` + main + `}]` + more + `}`
}

// Cards that are taken by the environment, past what the pod asks for: the author of a pod or a template hears of it, and with Deny no such pod is made.
func TestACardTakenByTheEnvironmentIsSaidAndBySwitchRefused(t *testing.T) {
	c := assemble(t)
	deny, err := c.Run("", "helm", "template", "quartermaster", "charts/quartermaster", "-n", release, "--set", "admission.visibleDevices=Deny",
		"--show-only", "templates/visible-devices.yaml")
	must(t, err)
	deny = strings.ReplaceAll(deny, "visible-devices.quartermaster.io", "visible-devices-strict.quartermaster.io")
	for _, binding := range []string{"pods", "templates"} {
		deny = strings.ReplaceAll(deny, "name: visible-devices-"+binding, "name: visible-devices-strict-"+binding)
	}
	// In one namespace alone, next to the policy of the chart, which warns.
	deny = strings.ReplaceAll(deny, "namespaceSelector:\n      matchExpressions:\n", "namespaceSelector:\n      matchLabels: {kubernetes.io/metadata.name: strict}\n      matchExpressions:\n")
	_, err = c.Run("apiVersion: v1\nkind: Namespace\nmetadata: {name: strict}\n---\n"+
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: free, labels: {quartermaster.io/visible-devices: allow}}\n---\n"+deny, "kubectl", "apply", "-f", "-")
	must(t, err)
	ask := func(namespace, body string) reply {
		said, err := c.ask(c.people["mallory"], "POST", "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", plain, body)
		must(t, err)
		return said
	}
	pod := func(labels, spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{` + labels + `}},"spec":` + spec + `}`
	}
	const all = `"value":"all"`
	told := func(said reply) bool {
		return slices.ContainsFunc(said.warnings, func(w string) bool { return strings.Contains(w, "sets NVIDIA_VISIBLE_DEVICES") })
	}
	must(t, until(c.ctx, 30*time.Second, "the policies are in force", func() (bool, error) {
		return ask("strict", pod("", withVisible("containers", all))).code == http.StatusUnprocessableEntity && told(ask("work", pod("", withVisible("containers", all)))), nil
	}))
	for _, row := range []struct {
		entry string
		told  string // what the message has; empty: nothing is said
	}{
		{"", ""}, {`"value":""`, ""}, {`"value":"void"`, ""}, {`"value":"none"`, ""},
		{all, "sets NVIDIA_VISIBLE_DEVICES to all, which may"}, {`"value":"0"`, "to 0, which"}, {`"value":"GPU-1,GPU-2"`, "to GPU-1,GPU-2, which"},
		{`"value":"` + strings.Repeat("x", 300) + `"`, "to " + strings.Repeat("x", 64) + "..., which"},
		{`"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}`, "from another object, which"},
	} {
		for _, list := range []string{"containers", "initContainers"} {
			body := pod("", withVisible(list, row.entry))
			warned, refused, free := ask("work", body), ask("strict", body), ask("free", body)
			if warned.code != http.StatusCreated || told(warned) != (row.told != "") || row.told != "" && !strings.Contains(strings.Join(warned.warnings, "\n"), row.told) {
				t.Errorf("%s %s: %d %q", list, row.entry, warned.code, warned.warnings)
			}
			if (refused.code == http.StatusCreated) != (row.told == "") || row.told != "" && !strings.Contains(refused.message, row.told) {
				t.Errorf("%s %s where it is refused: %d %s", list, row.entry, refused.code, refused.message)
			}
			if free.code != http.StatusCreated || told(free) {
				t.Errorf("%s %s where it is allowed: %d %q", list, row.entry, free.code, free.warnings)
			}
		}
	}
	// Of a controller's pod no one reads a warning; a refusal counts for it too.
	controlled := pod(`"pod-template-hash":"1"`, withVisible("containers", all))
	if said := ask("work", controlled); said.code != http.StatusCreated || told(said) {
		t.Errorf("a controller's pod: %d %q", said.code, said.warnings)
	}
	if said := ask("strict", controlled); said.code != http.StatusUnprocessableEntity {
		t.Errorf("a controller's pod where it is refused: %d %q", said.code, said.message)
	}
	for _, namespace := range []string{"work", "strict"} {
		template := `{"metadata":{"labels":{"a":"b"}},"spec":` + withVisible("containers", all) + `}`
		for path, body := range map[string]string{
			"/apis/apps/v1/namespaces/" + namespace + "/deployments": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":` +
				strings.Replace(template, `"Never"`, `"Always"`, 1) + `}}`,
			"/apis/batch/v1/namespaces/" + namespace + "/jobs": `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":` + template + `}}`,
			"/apis/batch/v1/namespaces/" + namespace + "/cronjobs": `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":` +
				template + `}}}}`,
		} {
			said, err := c.ask(c.people["mallory"], "POST", path+"?dryRun=All", plain, body)
			must(t, err)
			if said.code != http.StatusCreated || !told(said) {
				t.Errorf("%s: %d %s %q", path, said.code, said.message, said.warnings)
			}
		}
	}
	// A container that is put into a pod that runs.
	for namespace, code := range map[string]int{"work": http.StatusOK, "strict": http.StatusUnprocessableEntity} {
		path := "/api/v1/namespaces/" + namespace + "/pods"
		_, err := c.ask(c.people["mallory"], "POST", path, plain, pod("", withVisible("containers", "")))
		must(t, err)
		said, err := c.ask(c.people["mallory"], "PATCH", path+"/p/ephemeralcontainers?dryRun=All", strategic, `{"spec":{"ephemeralContainers":[{"name":"debug","image":"x","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}]}}`)
		must(t, err)
		if said.code != code || code == http.StatusOK && !told(said) {
			t.Errorf("a debugger in %s: %d %s %q", namespace, said.code, said.message, said.warnings)
		}
		_, err = c.ask(c.people["mallory"], "DELETE", path+"/p", plain, `{"gracePeriodSeconds":0}`)
		must(t, err)
	}
}
