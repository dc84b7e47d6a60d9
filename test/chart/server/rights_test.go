package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

// grant is one verb on one type, as the API server says it of an account. where: "" in the whole cluster.
type grant struct{ where, what, names, verb string }

// rule of a role; rules are what the API server says that an account may do in a namespace, and in the whole cluster.
type rule struct{ Verbs, APIGroups, Resources, ResourceNames []string }

type rules struct {
	Incomplete       bool
	ResourceRules    []rule
	NonResourceRules []struct{ Verbs, NonResourceURLs []string }
}

// rulesOf asks the API server itself what an account may do there.
func rulesOf(t *testing.T, namespace, user string, groups ...string) rules {
	t.Helper()
	arguments := []string{"create", "--raw", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "-f", "-", "--as", user, "--as-group", "system:authenticated"}
	for _, group := range groups {
		arguments = append(arguments, "--as-group", group)
	}
	said := kubectl(t, fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":%q}}`, namespace), arguments...)
	var review struct{ Status rules }
	if err := json.Unmarshal([]byte(said), &review); err != nil || review.Status.Incomplete {
		t.Fatalf("%v, incomplete %v: %s", err, review.Status.Incomplete, said)
	}
	return review.Status
}

func grantsOf(t *testing.T, namespace, user string, groups ...string) map[grant]bool {
	t.Helper()
	said := rulesOf(t, namespace, user, groups...)
	out := map[grant]bool{}
	for _, rule := range said.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				what := resource
				if group != "" {
					what += "." + group
				}
				for _, verb := range rule.Verbs {
					if len(rule.ResourceNames) == 0 {
						out[grant{namespace, what, "", verb}] = true
					}
					for _, name := range rule.ResourceNames {
						out[grant{namespace, what, name, verb}] = true
					}
				}
			}
		}
	}
	for _, rule := range said.NonResourceRules {
		for _, url := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				out[grant{namespace, url, "", verb}] = true
			}
		}
	}
	return out
}

// without the place: what is the same everywhere.
func everywhere(grants map[grant]bool) map[grant]bool {
	out := map[grant]bool{}
	for one := range grants {
		one.where = ""
		out[one] = true
	}
	return out
}

// others is a namespace of other people.
const others = "other-people"

var accounts = []string{"quartermaster", "quartermaster-agent", "quartermaster-static-pod", "quartermaster-fix-runtime", "quartermaster-console", "quartermaster-prometheus",
	"quartermaster-scheduler", "quartermaster-simulation", "gpu-manager", "hami-device-plugin", "gpushare-device-plugin", "nvidia-device-plugin", "quartermaster-device-plugin",
	"quartermaster-device-plugin-vgpu", "quartermaster-device-plugin-mps", "quartermaster-device-plugin-gpushare",
	"quartermaster-device-plugin-hami"}

// userOf an account of the chart: its name and its groups.
func userOf(account string) []string {
	return []string{"system:serviceaccount:" + namespace + ":" + account, "system:serviceaccounts", "system:serviceaccounts:" + namespace}
}

// everythingInstalled is a chart with everything that has rights of its own, next to a namespace of other people.
func everythingInstalled(t *testing.T) {
	t.Helper()
	installed(t, "agent.enabled=true", "console.enabled=true", "console.views.enabled=true", "monitoring.prometheus.install=true", "metrics.authentication=true",
		"modules.gpushare.rbac=true", "simulate.nodes=t4=1")
	kubectl(t, "", "delete", "apiservice", "v1alpha1.view.quartermaster.io") // no one answers here, and then no namespace ends
	kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, others), "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, "", "delete", "namespace", others) })
}

func editIn(t *testing.T, place, person string) {
	t.Helper()
	kubectl(t, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"edit","namespace":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},
		"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`, place, person), "apply", "-f", "-")
}

// What each account of the chart may do, and what the chart gives to people, as the API server says it: the tables of docs/rights.md. What any
// ServiceAccount may do anyway is left out. QM_GOLDEN=write writes the file.
func TestRightsOfEachAccount(t *testing.T) {
	everythingInstalled(t)
	places := []string{namespace, "kube-system", "kube-public", "kube-node-lease", "default"}
	of := userOf
	granted := func(user []string) map[grant]bool {
		base := everywhere(grantsOf(t, others, "system:serviceaccount:"+others+":nobody", "system:serviceaccounts"))
		everywhereToo := everywhere(grantsOf(t, others, user[0], user[1:]...))
		out := map[grant]bool{}
		for one := range everywhereToo {
			if !base[one] {
				out[one] = true
			}
		}
		for _, place := range places {
			for one := range grantsOf(t, place, user[0], user[1:]...) {
				general := one
				general.where = ""
				whole := general
				whole.names = ""
				if !base[general] && !everywhereToo[general] && !everywhereToo[whole] {
					out[one] = true
				}
			}
		}
		return out
	}
	table := func(grants map[grant]bool) string {
		rows := map[grant][]string{} // without the verb
		for one := range grants {
			row := one
			row.verb = ""
			rows[row] = append(rows[row], one.verb)
		}
		byNames := map[[3]string][]string{} // place, type, verbs: names
		for row, verbs := range rows {
			slices.Sort(verbs)
			key := [3]string{row.where, row.what, strings.Join(verbs, ", ")}
			byNames[key] = append(byNames[key], row.names)
		}
		types := map[[3]string][]string{} // place, verbs, names: types
		for key, names := range byNames {
			slices.Sort(names)
			where := key[0]
			if where == "" {
				where = "everywhere"
			}
			group := [3]string{where, key[2], strings.Join(names, ", ")}
			types[group] = append(types[group], "`"+key[1]+"`")
		}
		var lines []string
		for group, whats := range types {
			slices.Sort(whats)
			lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |\n", group[0], strings.Join(whats, ", "), group[1], group[2]))
		}
		slices.Sort(lines)
		return "\n| where | what | verbs | only these |\n|---|---|---|---|\n" + strings.Join(lines, "")
	}
	text := "# What each account may do\n\n" +
		"The API server's own answers for a chart with agent, console and its API, simulated nodes, Prometheus, authentication of\n" +
		"metrics and all modules' rights, without what any ServiceAccount may do. Policies of the API server hold some of these\n" +
		"rights to fields and nodes: [SECURITY.md](../SECURITY.md) says which. A test makes this page\n" +
		"(`test/chart/server/rights_test.go`). Another tries each verb on each type with the token of each account: the API\n" +
		"server lets through what this page says, and no more (`tries_test.go` there).\n"
	first := map[string]string{} // the account that has such a table already
	for _, account := range accounts {
		grants := granted(of(account))
		text += "\n## " + account + "\n"
		if account == "quartermaster-scheduler" { // Kubernetes's own role, which differs between versions
			own := granted([]string{"system:kube-scheduler"})
			maps.DeleteFunc(grants, func(one grant, _ bool) bool { return own[one] })
			text += "\nWhat Kubernetes gives its own kube-scheduler, such as binding and deleting any pod, and this:\n"
		}
		if len(grants) == 0 {
			text += "\nNothing.\n"
			continue
		}
		rows := table(grants)
		if other, ok := first[rows]; ok {
			text += "\nAs " + other + ".\n"
			continue
		}
		first[rows] = account
		text += rows
	}
	// A user with `edit` in one namespace: what the chart adds, there and for others.
	editIn(t, others, "eve")
	ours := map[grant]bool{}
	deadline := time.Now().Add(20 * time.Second)
	for len(ours) == 0 && time.Now().Before(deadline) { // roles are aggregated within a second
		for one := range grantsOf(t, others, "eve") {
			if strings.HasSuffix(one.what, ".quartermaster.io") {
				one.where = "their namespace"
				ours[one] = true
			}
		}
	}
	text += "\n## A person with edit in one namespace\n\nWhat the chart adds to the role `edit`. In other namespaces such a person may do nothing more.\n" + table(ours)
	for _, place := range places {
		nobody := grantsOf(t, place, "nobody")
		for one := range grantsOf(t, place, "eve") {
			if !nobody[one] {
				t.Errorf("a person with edit in %s may do this to others: %v", others, one)
			}
		}
		for one := range grantsOf(t, place, "system:anonymous", "system:unauthenticated") {
			if strings.Contains(one.what, "quartermaster") {
				t.Errorf("a stranger may %v", one)
			}
		}
	}
	file := filepath.Join(chart.Root(), "docs/rights.md")
	if os.Getenv("QM_GOLDEN") == "write" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, _ := os.ReadFile(file); string(is) != text {
		t.Errorf("docs/rights.md is out of date (QM_GOLDEN=write):\n%s", text)
	}
}
