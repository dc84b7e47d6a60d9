package placements

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a pod of `tries` has in its spec.
const (
	node  = `"nodeName":"gpu-1",`
	other = `"schedulerName":"other",`
	ours  = `"schedulerName":"quartermaster",`
	gpu   = "nvidia.com/gpu"
)

// A dry run of a pod that asks for one of a key. Its label would keep it from being sent to our scheduler.
func (c *cast) tries(t *testing.T, by who, namespace, key, more string) reply {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"quartermaster.io/scheduler":"ignore"}},"spec":{%s"containers":[{"name":"main","image":"x","resources":{"limits":{%q:"1"}}}]}}`, more, key)
	said, err := c.ask(by, "POST", "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", plain, body)
	must(t, err)
	return said
}

// N12: who may make a pod with cards that no asking scheduler sees, in a namespace with a quota.
func TestAPodPassesAnEnforcedQuotaByWithTheRightOnly(t *testing.T) {
	c := assemble(t)
	_, err := c.Run(`
apiVersion: v1
kind: Namespace
metadata: {name: limited}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: limited}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: trusted}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: elsewhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: quota-bypass, namespace: limited}
rules: [{apiGroups: [quartermaster.io], resources: [acceleratorquotas], verbs: [bypass]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: quota-bypass, namespace: limited}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: quota-bypass}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: trusted}]
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorQuota
metadata: {name: team, namespace: limited}
spec: {hard: [{units: cores, max: 0}]}
`, "kubectl", "apply", "-f", "-")
	must(t, err)
	t.Cleanup(func() { c.Run("", "kubectl", "delete", "namespace", "limited", "--wait=false") })
	people := map[string]who{"eve": at.user("eve", "system:authenticated"), "trusted": at.user("trusted", "system:authenticated"),
		"replicas": at.user("system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
		"kubelet":  c.people["kubelet"]}
	enforced := func(status, reason string) {
		said, err := c.ask(c.people["admin"], "PATCH", "/apis/quartermaster.io/v1alpha1/namespaces/limited/acceleratorquotas/team/status", merge, fmt.Sprintf(
			`{"status":{"conditions":[{"type":"ModelsKnown","status":"True","reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Enforced","status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, status, reason))
		must(t, err)
		if said.code != http.StatusOK {
			t.Fatal(said.code, said.message)
		}
	}
	ask := func(by, namespace, key, more string) reply { return c.tries(t, people[by], namespace, key, more) }
	for _, stage := range []struct {
		status, reason string
		node, other    bool // refused
	}{{"True", "OwnSchedulerAsks", true, true}, {"True", "SchedulerAsks", true, false}, {"False", "NoSchedulerAsks", false, false}} {
		enforced(stage.status, stage.reason)
		must(t, until(c.ctx, 30*time.Second, "the quota is known as "+stage.reason, func() (bool, error) {
			return (ask("eve", "limited", gpu, node).code != http.StatusCreated) == stage.node && (ask("eve", "limited", gpu, other).code != http.StatusCreated) == stage.other, nil
		}))
		for _, row := range []struct {
			by, namespace, key, more string
			refused                  bool
			says                     string
		}{
			{"eve", "limited", gpu, node, stage.node, "container main asks for nvidia.com/gpu, which AcceleratorQuota team limits, but spec.nodeName passes the limit by: "},
			{"eve", "limited", gpu, ours + node, stage.node, "spec.nodeName passes the limit by"},
			{"eve", "limited", gpu, other, stage.other, "but spec.schedulerName other passes the limit by: "},
			{"eve", "limited", gpu, "", stage.other, "but spec.schedulerName default-scheduler passes"},
			{"eve", "limited", gpu, ours, false, ""},
			{"eve", "limited", "tencent.com/vcuda-core", node, stage.node, "asks for tencent.com/vcuda-core"},
			{"eve", "limited", "nvidia.com/mig-1g.5gb", node, stage.node, "asks for nvidia.com/mig-1g.5gb"},
			{"eve", "limited", "aliyun.com/gpu", node, stage.node, "asks for aliyun.com/gpu"},
			{"eve", "limited", "volcano.sh/vgpu-number", other, stage.other, "asks for volcano.sh/vgpu-number"},
			{"eve", "limited", "cpu", node, false, ""},
			{"eve", "limited", "example.com/other", node, false, ""},
			{"eve", "elsewhere", gpu, node, false, ""},
			{"eve", "elsewhere", gpu, other, false, ""},
			{"replicas", "limited", gpu, node, stage.node, "spec.nodeName passes the limit by"},
			{"replicas", "limited", gpu, other, stage.other, "spec.schedulerName other"},
			{"trusted", "limited", gpu, node, false, ""},
			{"trusted", "limited", gpu, other, false, ""},
		} {
			said := ask(row.by, row.namespace, row.key, row.more)
			if (said.code != http.StatusCreated) != row.refused || row.refused && (!strings.Contains(said.message, row.says) || strings.Contains(said.message, "\n")) {
				t.Errorf("%s, %s makes a pod of %s with %s%s: %d %s", stage.reason, row.by, row.namespace, row.key, row.more, said.code, said.message)
			}
		}
	}
	for _, people := range []string{"view", "edit", "admin"} {
		said, err := c.Run("", "kubectl", "get", "clusterrole", people, "-o", "yaml")
		must(t, err)
		if strings.Contains(said, "bypass") {
			t.Errorf("the role %s may pass quotas by", people)
		}
	}
}

// Plugins F2: who may make a pod with a share that no scheduler gives it. Its plugin takes it for the pod whose turn it is.
func TestAShareIsNotAskedForPastTheScheduler(t *testing.T) {
	c := assemble(t)
	_, err := c.Run(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: shares, namespace: elsewhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: trusted}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: lender}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: share-bypass}
rules: [{apiGroups: [quartermaster.io], resources: [resourcerules], verbs: [bypass]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: share-bypass}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: share-bypass}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: trusted}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all-quotas-bypass}
rules: [{apiGroups: [quartermaster.io], resources: [acceleratorquotas], verbs: [bypass]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all-quotas-bypass}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all-quotas-bypass}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: lender}]
`, "kubectl", "apply", "-f", "-")
	must(t, err)
	people := map[string]who{"eve": at.user("eve", "system:authenticated"), "trusted": at.user("trusted", "system:authenticated"), "lender": at.user("lender", "system:authenticated"),
		"replicas": at.user("system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")}
	ask := func(by, key, more string) reply { return c.tries(t, people[by], "elsewhere", key, more) }
	const share = "nvidia.com/gpumem"
	refused := func(more string) bool { return ask("eve", share, more).code != http.StatusCreated }
	mode := func(to string) {
		_, err := c.Run(fmt.Sprintf("apiVersion: quartermaster.io/v1alpha1\nkind: ResourceRules\nmetadata: {name: default, labels: {quartermaster.io/scheduler: %s}}\nspec: {rules: {}, groups: {}, keys: []}\n", to), "kubectl", "apply", "-f", "-")
		must(t, err)
		must(t, until(c.ctx, 30*time.Second, "the policy knows that the mode is "+to, func() (bool, error) {
			return refused(node) == (to != "None") && refused(other) == (to == "Dedicated"), nil
		}))
	}
	t.Cleanup(func() {
		mode("None")
		c.Run("", "kubectl", "delete", "resourcerules", "default")
		c.Run("", "kubectl", "delete", "clusterrolebinding", "share-bypass", "all-quotas-bypass")
	})
	for _, stage := range []struct {
		mode        string
		node, other bool // refused
	}{{"Dedicated", true, true}, {"StaticPod", true, false}, {"None", false, false}} {
		mode(stage.mode)
		for _, row := range []struct {
			by, key, more string
			refused       bool
			says          string
		}{
			{"eve", share, node, stage.node, "container main asks for nvidia.com/gpumem, a share of a card. With spec.nodeName no scheduler says which share is its own"},
			{"eve", share, ours + node, stage.node, "With spec.nodeName"},
			{"eve", share, other, stage.other, "With spec.schedulerName other no scheduler says"},
			{"eve", share, "", stage.other, "With spec.schedulerName default-scheduler"},
			{"eve", share, ours, false, ""},
			{"eve", "tencent.com/vcuda-core", node, stage.node, "asks for tencent.com/vcuda-core"},
			{"eve", "aliyun.com/gpu-mem", node, stage.node, "asks for aliyun.com/gpu-mem"},
			{"eve", gpu, node, false, ""},
			{"eve", gpu, other, false, ""},
			{"eve", "nvidia.com/gpu.shared", node, false, ""},
			{"eve", "example.com/other", node, false, ""},
			{"replicas", share, node, stage.node, "With spec.nodeName"},
			{"lender", share, node, stage.node, "With spec.nodeName"},
			{"trusted", share, node, false, ""},
			{"trusted", share, other, false, ""},
		} {
			said := ask(row.by, row.key, row.more)
			if (said.code != http.StatusCreated) != row.refused || row.refused && (!strings.Contains(said.message, row.says) || strings.Contains(said.message, "\n")) {
				t.Errorf("%s, %s makes a pod of %s with %s: %d %s", stage.mode, row.by, row.key, row.more, said.code, said.message)
			}
		}
	}
	for _, name := range []string{"view", "edit", "admin"} {
		said, err := c.Run("", "kubectl", "get", "clusterrole", name, "-o", "yaml")
		must(t, err)
		if strings.Contains(said, "bypass") {
			t.Errorf("the role %s may ask for shares past the scheduler", name)
		}
	}
}

// asks makes ResourceRules say which scheduler asks, and waits until the policies know it. At the end none does.
func (c *cast) asks(t *testing.T, mode string, known func() bool) {
	t.Helper()
	rules := func(to string) {
		_, err := c.Run(fmt.Sprintf("apiVersion: quartermaster.io/v1alpha1\nkind: ResourceRules\nmetadata: {name: default, labels: {quartermaster.io/scheduler: %s}}\nspec: {rules: {}, groups: {}, keys: []}\n", to), "kubectl", "apply", "-f", "-")
		must(t, err)
	}
	rules(mode)
	must(t, until(c.ctx, 30*time.Second, "the policies know that the mode is "+mode, func() (bool, error) { return known(), nil }))
	t.Cleanup(func() {
		rules("None")
		must(t, until(c.ctx, 30*time.Second, "the policies know that the mode is None", func() (bool, error) { return !known(), nil }))
		c.Run("", "kubectl", "delete", "resourcerules", "default")
	})
}

// A pod that is long enough to exceed the server's budget for a policy would pass one that ignores failures.
func TestAPodIsNotTooLongToBeJudged(t *testing.T) {
	c := assemble(t)
	_, err := c.Run(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: long, namespace: elsewhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`, "kubectl", "apply", "-f", "-")
	must(t, err)
	eve := at.user("eve", "system:authenticated")
	c.asks(t, "StaticPod", func() bool { return c.tries(t, eve, "elsewhere", "nvidia.com/gpumem", node).code != http.StatusCreated })
	eve.http.Timeout = 70 * time.Second // longer than the API server takes before it gives up by itself
	containers := func(count int) string {
		var out strings.Builder
		for i := range count {
			fmt.Fprintf(&out, `,{"name":"c%d","image":"x","resources":{"limits":{"cpu":"0"}}}`, i)
		}
		return out.String()
	}
	limits := func(count int) string {
		var out strings.Builder
		for i := range count {
			fmt.Fprintf(&out, `,"example.com/k%d":"0"`, i)
		}
		return out.String()
	}
	for what, body := range map[string]string{
		"12,400 containers": `"initContainers":[{"name":"i","image":"x","resources":{"limits":{"nvidia.com/gpumem":"1"}}}],"containers":[{"name":"m","image":"x"}` + containers(12_400) + `]`,
		"50,000 limits":     `"containers":[{"name":"m","image":"x","resources":{"limits":{"nvidia.com/gpumem":"1"` + limits(50_000) + `}}}]`,
		"1,025 containers":  `"containers":[{"name":"m","image":"x","resources":{"limits":{"nvidia.com/gpumem":"1"}}}` + containers(1_024) + `]`,
	} {
		start := time.Now()
		said, err := c.ask(eve, "POST", "/api/v1/namespaces/elsewhere/pods?dryRun=All", plain, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"gpu-1",`+body+`}}`)
		must(t, err)
		t.Logf("%s: %d after %s", what, said.code, time.Since(start).Round(time.Millisecond))
		if said.code == http.StatusCreated || !strings.Contains(said.message, "more than is judged") {
			t.Errorf("a pod of %s: %d %.300s", what, said.code, said.message)
		}
	}
	said, err := c.ask(eve, "POST", "/api/v1/namespaces/elsewhere/pods?dryRun=All", plain, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"m","image":"x"}`+containers(300)+`]}}`)
	must(t, err)
	if said.code != http.StatusCreated {
		t.Errorf("a long pod that goes to the scheduler: %d %.300s", said.code, said.message)
	}
}
