package placements

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const jsonPatch = "application/json-patch+json"

// forbidden is what the API server says where an account has no right at all.
const forbidden = "cannot"

// errand is one write with a token. says: what a refusal has in it; empty: it is accepted.
type errand struct{ what, method, path, kind, body, says string }

func nodePath(name string) string { return "/api/v1/nodes/" + name }

func annotated(key, value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
}

// wholeNode is the node as a program sends it back that has changed a label, as GPU-Manager does (pkg/services/watchdog/label.go).
func wholeNode(t *testing.T, name string, change func(*corev1.Node)) string {
	t.Helper()
	var node *corev1.Node
	// The controllers of Kubernetes add a label and an annotation, and take a taint away. A node that was read before is sent
	// without that.
	must(t, until(at.ctx, 30*time.Second, "node "+name+" as controllers leave it", func() (bool, error) {
		var err error
		node, err = at.Client.CoreV1().Nodes().Get(at.ctx, name, metav1.GetOptions{})
		return err == nil && node.Labels["beta.kubernetes.io/arch"] != "" && node.Annotations["node.alpha.kubernetes.io/ttl"] != "" &&
			len(node.Spec.Taints) == 0, err
	}))
	node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	node.ManagedFields, node.ResourceVersion = nil, ""
	change(node)
	text, err := json.Marshal(node)
	must(t, err)
	return string(text)
}

// onPods is what no plugin may do to a pod, and what the refusal names. own: an annotation that its program writes.
func onPods(c *cast, own string) (out []errand) {
	add := func(what, kind, body, says string) {
		out = append(out, errand{what, "PATCH", c.path("bound", ""), kind, body, says})
	}
	add("changes the image", jsonPatch, `[{"op":"replace","path":"/spec/containers/0/image","value":"attacker/root:1"}]`, "may not change spec of a pod; allowed: annotations that begin with ")
	add("ends it by a deadline", merge, `{"spec":{"activeDeadlineSeconds":1}}`, "may not change spec")
	add("tolerates more", strategic, `{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}`, "may not change spec")
	add("labels it", merge, `{"metadata":{"labels":{"app":"other"}}}`, "may not change label app")
	add("adds a label", merge, `{"metadata":{"labels":{"team":"other"}}}`, "may not change label team")
	add("takes its labels away", merge, `{"metadata":{"labels":null}}`, "may not change label app")
	add("gives it an owner", merge, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`, "may not change metadata.ownerReferences")
	add("holds it by a finalizer", merge, `{"metadata":{"finalizers":["example.com/x"]}}`, "may not change metadata.finalizers")
	add("writes an annotation of others", merge, annotated("example.com/other", "x"), "may not change annotation example.com/other")
	add("takes one of others away", merge, `{"metadata":{"annotations":{"example.com/note":null}}}`, "may not change annotation example.com/note")
	add("takes one of others along", merge, fmt.Sprintf(`{"metadata":{"annotations":{%q:"x","example.com/note":"x"}}}`, own), "may not change annotation example.com/note")
	out = append(out,
		errand{"deletes it", "DELETE", c.path("bound", ""), plain, "{}", forbidden},
		errand{"sends the whole pod", "PUT", c.path("bound", ""), plain, "{}", forbidden},
		errand{"changes its status", "PATCH", c.path("bound", "status"), merge, `{"status":{"phase":"Failed"}}`, forbidden},
		errand{"binds one", "POST", c.path("fresh", "binding"), plain, "{}", forbidden},
		errand{"evicts it", "POST", c.path("bound", "eviction"), plain, "{}", forbidden},
		errand{"looks into it", "PATCH", c.path("bound", "ephemeralcontainers"), strategic, "{}", forbidden},
		errand{"gives it more", "PATCH", c.path("bound", "resize"), strategic, "{}", forbidden},
		errand{"makes one", "POST", "/api/v1/namespaces/work/pods", plain, "{}", forbidden},
		errand{"reads Secrets", "GET", "/api/v1/namespaces/kube-system/secrets", plain, "", forbidden},
	)
	return out
}

// onNodes is what no plugin with rights on nodes may do to its own node.
func onNodes(t *testing.T, verb string) (out []errand) {
	for _, row := range []struct {
		field  string
		change func(*corev1.Node)
	}{
		{"spec", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "evil", Value: "1", Effect: "NoExecute"})
		}},
		{"spec", func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		{"label nvidia-device-enable", func(n *corev1.Node) { n.Labels["nvidia-device-enable"] = "other" }},
		{"label quartermaster.io/module", func(n *corev1.Node) { n.Labels["quartermaster.io/module"] = "other" }},
		{"annotation example.com/other", func(n *corev1.Node) { n.Annotations["example.com/other"] = "x" }},
		{"metadata.finalizers", func(n *corev1.Node) { n.Finalizers = append(n.Finalizers, "example.com/x") }},
		{"metadata.ownerReferences", func(n *corev1.Node) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "1"}}
		}},
		{"label node-role.kubernetes.io/control-plane", func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }},
	} {
		kind := map[string]string{"PUT": plain, "PATCH": strategic}[verb]
		out = append(out, errand{"changes its node: " + row.field, verb, nodePath("gpu-1"), kind, wholeNode(t, "gpu-1", row.change),
			"may not change " + row.field + " of a node; allowed: "})
	}
	out = append(out,
		errand{"deletes its node", "DELETE", nodePath("gpu-1"), plain, "{}", forbidden},
		errand{"makes a node", "POST", "/api/v1/nodes", plain, "{}", forbidden},
	)
	return out
}

func TestATokenOfAPluginWritesItsOwnNodeAndWhatItsProgramWrites(t *testing.T) {
	c := assemble(t)
	const elsewhere = "of its own node only, and this is "
	model := func(n *corev1.Node) { n.Labels["gaia.tencent.com/gpu-model"] = "T4" }
	errands := map[string][]errand{
		"gpu-manager": append(append(onPods(c, "tencent.com/gpu-assigned"), onNodes(t, "PUT")...),
			errand{"labels its node with the model", "PUT", nodePath("gpu-1"), plain, wholeNode(t, "gpu-1", model), ""},
			errand{"annotates its node", "PUT", nodePath("gpu-1"), plain, wholeNode(t, "gpu-1", func(n *corev1.Node) { n.Annotations["tencent.com/x"] = "1" }), "may not change annotation tencent.com/x of a node; allowed: labels that begin with gaia.tencent.com/"},
			errand{"labels another node", "PUT", nodePath("gpu-2"), plain, wholeNode(t, "gpu-2", model), "gpu-manager of node gpu-1 may write its own node only, and this is gpu-2"},
			errand{"patches its node", "PATCH", nodePath("gpu-1"), merge, "{}", forbidden},
			errand{"writes its node's status", "PATCH", nodePath("gpu-1") + "/status", merge, "{}", forbidden}),
		"gpu-manager, gpu-2":   {{"writes a pod of another node", "PATCH", c.path("plain", ""), merge, "{}", "gpu-manager of node gpu-2 may write pods " + elsewhere}},
		"gpu-manager, no node": {{"writes a pod", "PATCH", c.path("plain", ""), merge, "{}", "gpu-manager of node (its token names none) may write pods " + elsewhere}},
		"hami": append(append(onPods(c, "hami.io/bind-phase"), onNodes(t, "PATCH")...),
			errand{"reports its node's cards", "PATCH", nodePath("gpu-1"), merge, annotated("hami.io/node-nvidia-register", "x"), ""},
			errand{"gives its node's lock back", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"annotations":{"hami.io/mutex.lock":null}}}`, ""},
			errand{"says what it made of MIG", "PATCH", c.path("bound", ""), merge, annotated("hami.io/vgpu-mig-allocations", "[]"), ""},
			errand{"labels its node", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"labels":{"hami.io/x":"1"}}}`, "may not change label hami.io/x of a node; allowed: annotations that begin with hami.io/"},
			errand{"reports the cards of another node", "PATCH", nodePath("gpu-2"), merge, annotated("hami.io/node-nvidia-register", "x"), "hami-device-plugin of node gpu-1 may write its own node only, and this is gpu-2"},
			errand{"sends its whole node", "PUT", nodePath("gpu-1"), plain, "{}", forbidden},
			errand{"writes its node's status", "PATCH", nodePath("gpu-1") + "/status", merge, "{}", forbidden}),
		"hami, gpu-2": {{"writes a pod of another node", "PATCH", c.path("bound", ""), merge, "{}", "hami-device-plugin of node gpu-2 may write pods " + elsewhere}},
		"gpushare": append(onPods(c, "ALIYUN_COM_GPU_MEM_ASSIGNED"),
			errand{"says how many cards its node has", "PATCH", nodePath("gpu-1") + "/status", strategic, `{"status":{"capacity":{"aliyun.com/gpu-count":"2"},"allocatable":{"aliyun.com/gpu-count":"2"}}}`, ""},
			errand{"says it of another node", "PATCH", nodePath("gpu-2") + "/status", strategic, `{"status":{"capacity":{"aliyun.com/gpu-count":"2"}}}`, "gpushare-device-plugin of node gpu-1 may write its own node only, and this is gpu-2"},
			errand{"changes another amount", "PATCH", nodePath("gpu-1") + "/status", strategic, `{"status":{"capacity":{"cpu":"1000"}}}`, "may not change status.capacity of a node; allowed: aliyun.com/gpu-count"},
			errand{"changes what pods may ask for", "PATCH", nodePath("gpu-1") + "/status", strategic, `{"status":{"allocatable":{"memory":"1"}}}`, "may not change status.allocatable"},
			errand{"takes an amount away", "PATCH", nodePath("gpu-1") + "/status", merge, `{"status":{"capacity":{"cpu":null}}}`, "may not change status.capacity"},
			errand{"says that its node is not ready", "PATCH", nodePath("gpu-1") + "/status", strategic, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "may not change status.conditions"},
			errand{"labels its node by the status", "PATCH", nodePath("gpu-1") + "/status", merge, `{"metadata":{"labels":{"a":"b"}}}`, "may not change label a of a node; allowed: nothing"},
			errand{"changes its node", "PATCH", nodePath("gpu-1"), merge, "{}", forbidden}),
		"gpushare, gpu-2": {{"writes a pod of another node", "PATCH", c.path("bound", ""), merge, "{}", "gpushare-device-plugin of node gpu-2 may write pods " + elsewhere}},
	}
	_, err := c.Run(`
apiVersion: v1
kind: ConfigMap
metadata: {name: foreign, namespace: kube-public}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: declared, namespace: kube-public, labels: {features.cpaas.io/type: CustomResourceLimitation}}
`, "kubectl", "apply", "-f", "-")
	must(t, err)
	const apply = "application/apply-patch+yaml"
	secret := "/api/v1/namespaces/" + release + "/secrets/quartermaster-extender-client?fieldManager=a&force=true"
	own := "/api/v1/namespaces/" + release + "/pods/gpu-manager-gpu-1" // a pod that its token is for
	operator := []errand{
		{"marks the leader", "PATCH", own, merge, `{"metadata":{"labels":{"quartermaster.io/leader":"true"}}}`, ""},
		{"changes an image of its namespace", "PATCH", own, jsonPatch, `[{"op":"replace","path":"/spec/containers/0/image","value":"attacker/root:1"}]`,
			"the operator may not change spec of a pod; allowed: its own annotations, those that say which cards a pod has, and the label of the leader"},
		{"labels a pod of its namespace", "PATCH", own, merge, `{"metadata":{"labels":{"app":"x"}}}`, "the operator may not change label app of a pod"},
		{"annotates a pod of its namespace", "PATCH", own, merge, annotated("example.com/other", "x"), "the operator may not change annotation example.com/other of a pod"},
		{"holds a pod of its namespace", "PATCH", own, merge, `{"metadata":{"finalizers":["example.com/x"]}}`, "the operator may not change metadata.finalizers of a pod"},
		{"puts a node into a mode", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"labels":{"quartermaster.io/module":"other"},"annotations":{"quartermaster.io/restore":null,"hami.io/mutex.lock":"x"}}}`, ""},
		{"names the card", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"labels":{"nvidia.com/gpu.product":"T4","cuda-major-version":"12","cuda-minor-version":"4","gaia.tencent.com/gpu-model":"T4","aliyun.accelerator/nvidia_count":"1"}}}`, ""},
		{"says that the mode changes", "PATCH", nodePath("gpu-1"), strategic, `{"spec":{"taints":[{"key":"quartermaster.io/switching","value":"a.b","effect":"NoSchedule"}]}}`, ""},
		{"drives everyone off", "PATCH", nodePath("gpu-1"), strategic, `{"spec":{"taints":[{"key":"evil","value":"1","effect":"NoExecute"}]}}`, "the operator may not change spec of a node; allowed: its own labels, taints"},
		{"drives everyone off by its own taint", "PATCH", nodePath("gpu-1"), strategic, `{"spec":{"taints":[{"key":"quartermaster.io/switching","effect":"NoExecute"}]}}`, "the operator may not change spec of a node"},
		{"cordons a node", "PATCH", nodePath("gpu-1"), merge, `{"spec":{"unschedulable":true}}`, "the operator may not change spec of a node"},
		{"says what people say", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"labels":{"nvidia-device-enable":"other"}}}`, "the operator may not change label nvidia-device-enable of a node"},
		{"makes a node a control plane's", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`, "the operator may not change label node-role.kubernetes.io/control-plane of a node"},
		{"annotates a node", "PATCH", nodePath("gpu-1"), merge, annotated("example.com/other", "x"), "the operator may not change annotation example.com/other of a node"},
		{"holds a node", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"finalizers":["example.com/x"]}}`, "the operator may not change metadata.finalizers of a node"},
		{"gives a node an owner", "PATCH", nodePath("gpu-1"), merge, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`, "the operator may not change metadata.ownerReferences of a node"},
		{"writes a node's status", "PATCH", nodePath("gpu-1") + "/status", merge, "{}", forbidden},
		{"deletes a node", "DELETE", nodePath("gpu-1"), plain, "{}", forbidden},
		{"makes a node", "POST", "/api/v1/nodes", plain, "{}", forbidden},
		{"seals a pod of people", "PATCH", c.path("bound", ""), merge, annotated("state.quartermaster.io/seal", "term a, seal 1"), ""},
		{"changes an image of people", "PATCH", c.path("bound", ""), jsonPatch, `[{"op":"replace","path":"/spec/containers/0/image","value":"attacker/root:1"}]`, "the operator may not change spec of a pod"},
		{"lets a pod of people tolerate more", "PATCH", c.path("bound", ""), strategic, `{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}`, "the operator may not change spec of a pod"},
		{"labels a pod of people", "PATCH", c.path("bound", ""), merge, `{"metadata":{"labels":{"app":"evil"}}}`, "the operator may not change label app of a pod"},
		{"calls a pod of people the leader", "PATCH", c.path("bound", ""), merge, `{"metadata":{"labels":{"quartermaster.io/leader":"true"}}}`, "the operator may not change label quartermaster.io/leader of a pod"},
		{"annotates a pod of people", "PATCH", c.path("bound", ""), merge, annotated("example.com/note", "x"), "the operator may not change annotation example.com/note of a pod"},
		{"holds a pod of people", "PATCH", c.path("bound", ""), merge, `{"metadata":{"finalizers":["example.com/x"]}}`, "the operator may not change metadata.finalizers of a pod"},
		{"writes the status of a pod", "PATCH", c.path("bound", "status"), merge, `{"status":{"phase":"Failed"}}`, forbidden},
		{"looks into a pod", "PATCH", c.path("bound", "ephemeralcontainers"), strategic, "{}", forbidden},
		{"gives a pod more", "PATCH", c.path("bound", "resize"), strategic, "{}", forbidden},
		{"asks for the token of an account", "PATCH", secret, apply, `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"quartermaster-extender-client","annotations":{"kubernetes.io/service-account.name":"quartermaster-scheduler"}}}`,
			"the operator may make Secrets of certificates only; allowed: type Opaque"},
		{"annotates a Secret for an account", "PATCH", secret, apply, `{"apiVersion":"v1","kind":"Secret","type":"Opaque","metadata":{"name":"quartermaster-extender-client","annotations":{"kubernetes.io/service-account.name":"quartermaster-scheduler"}}}`,
			"the operator may make Secrets of certificates only; allowed: type Opaque"},
		{"makes its Secret", "PATCH", secret, apply, `{"apiVersion":"v1","kind":"Secret","type":"Opaque","metadata":{"name":"quartermaster-extender-client"},"data":{"tls.crt":""}}`, ""},
		{"says how to reach the cluster", "PATCH", "/api/v1/namespaces/kube-public/configmaps/foreign", merge, `{"data":{"kubeconfig":"x"}}`, "the operator may write declarations only, and ConfigMap foreign has no label of one"},
		{"makes it a declaration", "PATCH", "/api/v1/namespaces/kube-public/configmaps/foreign", merge, `{"metadata":{"labels":{"features.cpaas.io/type":"CustomResourceLimitation"}}}`, "has no label of one"},
		{"deletes it", "DELETE", "/api/v1/namespaces/kube-public/configmaps/foreign", plain, "", "has no label of one"},
		{"judges a declaration", "PATCH", "/api/v1/namespaces/kube-public/configmaps/declared", merge, annotated("quartermaster.io/verdict", "x"), ""},
		{"declares a resource", "POST", "/api/v1/namespaces/kube-public/configmaps", plain, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cf-crl-x"}}`, ""},
		{"deletes a pod of people", "DELETE", c.path("bound", ""), plain, "{}", forbidden},
		{"makes a pod of people", "POST", "/api/v1/namespaces/work/pods", plain, "{}", forbidden},
		{"reads Secrets", "GET", "/api/v1/namespaces/kube-system/secrets", plain, "", forbidden},
	}
	for _, body := range []string{"clusterroles", "clusterrolebindings"} {
		operator = append(operator, errand{"grants rights", "POST", "/apis/rbac.authorization.k8s.io/v1/" + body, plain, "{}", forbidden})
	}
	errands["operator"] = operator
	// The server learns of a policy within seconds.
	must(t, until(at.ctx, 30*time.Second, "the policy", func() (bool, error) {
		said, err := at.ask(c.people["hami"], "PATCH", nodePath("gpu-2")+"?dryRun=All", merge, annotated("hami.io/node-nvidia-register", "x"))
		return err == nil && said.code == http.StatusUnprocessableEntity, fmt.Errorf("%d %s %w", said.code, said.message, err)
	}))
	tried := 0
	for by, all := range errands {
		for _, one := range all {
			query := "?dryRun=All"
			if strings.Contains(one.path, "?") {
				query = "&dryRun=All"
			}
			said, err := at.ask(c.people[by], one.method, one.path+query, one.kind, one.body)
			must(t, err)
			tried++
			switch {
			case one.says == "" && said.code >= 300:
				t.Errorf("%s %s: %d %s", by, one.what, said.code, said.message)
			case one.says == forbidden && said.code != http.StatusForbidden:
				t.Errorf("%s %s: %d %s, expected no right", by, one.what, said.code, said.message)
			case one.says != "" && (said.code < 300 || !strings.Contains(said.message, one.says) || strings.Contains(said.message, "\n")):
				t.Errorf("%s %s: %d %s, expected %q", by, one.what, said.code, said.message, one.says)
			}
		}
	}
	t.Logf("%d writes with %d tokens", tried, len(errands))
}

// The ClusterRoles of Kubernetes that may be given to people; none of them may write pods/status, where annotations are not guarded.
func TestNoRoleForPeopleWritesTheStatusOfPods(t *testing.T) {
	for _, name := range []string{"view", "edit", "admin", "quartermaster-view", "quartermaster-edit", "quartermaster-admin"} {
		role, err := at.Client.RbacV1().ClusterRoles().Get(at.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && strings.HasPrefix(name, "quartermaster-") {
			continue
		}
		must(t, err)
		if len(role.Rules) == 0 {
			t.Errorf("%s has no rules yet", name)
		}
		for _, rule := range role.Rules {
			named := slices.Contains(rule.Resources, "pods/status") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "*/status")
			writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
			if named && writes && (slices.Contains(rule.APIGroups, "") || slices.Contains(rule.APIGroups, "*")) {
				t.Errorf("%s: %v", name, rule)
			}
		}
	}
}

// The operator's token fills in who signed the webhook's certificate, and nothing else of a webhook configuration.
func TestTheOperatorChangesTheCaBundleOfItsWebhookOnly(t *testing.T) {
	c := assemble(t)
	const path, ca = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/quartermaster", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
	_, err := c.Run(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: webhook-test}
rules:
  - {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations], verbs: [patch, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: webhook-test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: webhook-test}
subjects: [{kind: ServiceAccount, name: quartermaster, namespace: `+release+`}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: quartermaster, labels: {a: b}}
webhooks:
  - name: compatibility.quartermaster.io
    clientConfig: {service: {name: quartermaster-webhook, namespace: `+release+`, path: /mutate/compatibility}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}]
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    timeoutSeconds: 1
    objectSelector: {matchLabels: {nobody: has}}
    matchConditions: [{name: never, expression: "false"}]
`, "kubectl", "apply", "-f", "-")
	must(t, err)
	t.Cleanup(func() {
		c.Run("", "kubectl", "delete", "mutatingwebhookconfiguration/quartermaster", "clusterrole/webhook-test", "clusterrolebinding/webhook-test")
	})
	change := func(op, at, value string) string {
		return fmt.Sprintf(`[{"op":%q,"path":%q,"value":%s}]`, op, at, value)
	}
	in := func(field string) string { return "/webhooks/0/" + field }
	for _, one := range []errand{
		{"fills in the CA", "PATCH", path, jsonPatch, change("add", in("clientConfig/caBundle"), `"`+ca+`"`), ""},
		{"sees everything", "PATCH", path, jsonPatch, change("replace", in("rules"), `[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*/*"],"scope":"*"}]`), "may not change rules of a webhook configuration; allowed: clientConfig.caBundle"},
		{"takes the condition away", "PATCH", path, jsonPatch, `[{"op":"remove","path":"/webhooks/0/matchConditions"}]`, "may not change matchConditions"},
		{"selects more objects", "PATCH", path, jsonPatch, change("replace", in("objectSelector"), "{}"), "may not change objectSelector"},
		{"selects other namespaces", "PATCH", path, jsonPatch, change("replace", in("namespaceSelector"), `{"matchLabels":{"a":"b"}}`), "may not change namespaceSelector"},
		{"stops the cluster", "PATCH", path, jsonPatch, change("replace", in("failurePolicy"), `"Fail"`), "may not change failurePolicy"},
		{"makes callers wait", "PATCH", path, jsonPatch, change("replace", in("timeoutSeconds"), "30"), "may not change timeoutSeconds"},
		{"sends pods elsewhere", "PATCH", path, jsonPatch, change("replace", in("clientConfig"), `{"url":"https://attacker.example/"}`), "may not change clientConfig"},
		{"sends pods to another Service", "PATCH", path, jsonPatch, change("replace", in("clientConfig/service/name"), `"other"`), "may not change clientConfig"},
		{"adds one", "PATCH", path, jsonPatch, change("add", "/webhooks/-", `{"name":"all.example.com","clientConfig":{"url":"https://attacker.example/"},"admissionReviewVersions":["v1"],"sideEffects":"None"}`), "may not change webhooks"},
		{"takes it away", "PATCH", path, merge, `{"webhooks":null}`, "may not change webhooks"},
		{"names it otherwise", "PATCH", path, jsonPatch, change("replace", in("name"), `"other.quartermaster.io"`), "may not change name"},
		{"labels it", "PATCH", path, merge, `{"metadata":{"labels":{"a":"c"}}}`, "may not change metadata.labels"},
		{"holds it", "PATCH", path, merge, `{"metadata":{"finalizers":["example.com/x"]}}`, "may not change metadata.finalizers"},
		{"makes one", "POST", strings.TrimSuffix(path, "/quartermaster"), plain, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"mine"}}`, "may not change webhooks"},
		{"makes one that validates", "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", plain, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"mine"}}`, "may not change webhooks"},
	} {
		var said reply
		must(t, until(c.ctx, 20*time.Second, one.what, func() (bool, error) { // the right and the policy are known within seconds
			said, err = c.ask(c.people["operator"], one.method, one.path+"?dryRun=All", one.kind, one.body)
			return err == nil && (said.code < 300) == (one.says == "") && strings.Contains(said.message, one.says), fmt.Errorf("%d %s %w", said.code, said.message, err)
		}))
	}
	// A person's change is no one's business.
	said, err := c.ask(c.people["mallory"], "PATCH", path+"?dryRun=All", jsonPatch, change("replace", in("timeoutSeconds"), "30"))
	must(t, err)
	if said.code != http.StatusOK {
		t.Errorf("a person: %d %s", said.code, said.message)
	}
}

// The operator's token runs plugins, its scheduler and its runtime's pod, as their accounts and without Secrets of others.
func TestTheOperatorRunsPodsAsAccountsOfPluginsOnly(t *testing.T) {
	c := assemble(t)
	names := map[string]string{"daemonsets": "a-plugin", "deployments": "quartermaster-scheduler", "pods": "quartermaster-fix-runtime"}
	template := func(spec string) string {
		return `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{` + spec + `}}`
	}
	apply := func(resource, spec string) reply {
		kind, group, path := "DaemonSet", "apps/v1", "/apis/apps/v1"
		switch resource {
		case "deployments":
			kind = "Deployment"
		case "pods":
			kind, group, path = "Pod", "v1", "/api/v1"
		}
		if resource != "pods" {
			spec = template(spec)
		}
		said, err := at.ask(c.people["operator"], "PATCH", fmt.Sprintf("%s/namespaces/%s/%s/%s?dryRun=All&fieldManager=x&force=true", path, release, resource, names[resource]),
			"application/apply-patch+yaml", fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":{%s}}`, group, kind, names[resource], spec))
		must(t, err)
		return said
	}
	const image = `"containers":[{"name":"main","image":"x"}]`
	with := func(account, more string) string {
		if account != "" {
			more = fmt.Sprintf(`"serviceAccountName":%q,`, account) + more
		}
		return more + image
	}
	in := func(fields string) string { return `"containers":[{"name":"main","image":"x",` + fields + `}]` }
	volume := func(source string) string { return `"volumes":[{"name":"it",` + source + `}],` }
	const scheduler, fix = "quartermaster-scheduler", "quartermaster-fix-runtime"
	must(t, at.account(release, scheduler))
	must(t, at.account(release, fix))
	for _, one := range []struct{ what, resource, spec, says string }{
		{"a plugin without an account", "daemonsets", with("", volume(`"hostPath":{"path":"/var/lib/kubelet/device-plugins"}`)), ""},
		{"a plugin with its account", "daemonsets", with("gpu-manager", `"hostPID":true,`), ""},
		{"a plugin with an account of the policy", "daemonsets", with("fpga-plugin", ""), ""},
		{"a plugin with its files", "daemonsets", with("", volume(`"configMap":{"name":"x"}`)), ""},
		{"a plugin as the operator", "daemonsets", with("quartermaster", ""), "the operator may not run daemonsets as account quartermaster; allowed: default, nvidia-device-plugin, quartermaster-device-plugin, quartermaster-device-plugin-vgpu, quartermaster-device-plugin-mps, quartermaster-device-plugin-gpushare, quartermaster-device-plugin-hami, gpu-manager, hami-device-plugin, gpushare-device-plugin, fpga-plugin, and those of rbac.pluginServiceAccounts"},
		{"a plugin as the scheduler", "daemonsets", with(scheduler, ""), "may not run daemonsets as account quartermaster-scheduler"},
		{"a plugin as a controller", "daemonsets", with("node-controller", ""), "may not run daemonsets as account node-controller"},
		{"a plugin with a Secret", "daemonsets", with("", volume(`"secret":{"secretName":"quartermaster-webhook"}`)), "may not give daemonsets the volume it; allowed: hostPath, configMap, emptyDir"},
		{"a plugin with a token", "daemonsets", with("", volume(`"projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}`)), "may not give daemonsets the volume it"},
		{"a plugin with a Secret in its environment", "daemonsets", in(`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]`), "may not give daemonsets the content of a Secret"},
		{"a plugin with all of a Secret", "daemonsets", in(`"envFrom":[{"secretRef":{"name":"s"}}]`), "may not give daemonsets the content of a Secret"},
		{"its scheduler", "deployments", with(scheduler, volume(`"secret":{"secretName":"quartermaster-extender-client"}`)), ""},
		{"a scheduler as a plugin", "deployments", with("gpu-manager", ""), "may not run deployments as account gpu-manager; allowed: quartermaster-scheduler"},
		{"a scheduler with another Secret", "deployments", with(scheduler, volume(`"secret":{"secretName":"quartermaster-webhook"}`)), "may not give deployments the volume it; allowed: configMap, secret quartermaster-extender-client"},
		{"a scheduler with a folder of the host", "deployments", with(scheduler, volume(`"hostPath":{"path":"/"}`)), "may not give deployments the volume it"},
		{"a scheduler on the host's network", "deployments", with(scheduler, `"hostNetwork":true,`), "may not give deployments hostNetwork"},
		{"a privileged scheduler", "deployments", `"serviceAccountName":"quartermaster-scheduler",` + in(`"securityContext":{"privileged":true}`), "may not give deployments a privileged container"},
		{"the pod that sets a runtime up", "pods", with(fix, `"automountServiceAccountToken":false,`+volume(`"hostPath":{"path":"/etc/containerd"}`)), ""},
		{"that pod as the operator", "pods", with("quartermaster", `"automountServiceAccountToken":false,`), "may not run pods as account quartermaster; allowed: quartermaster-fix-runtime"},
		{"that pod with the CA's key", "pods", with(fix, `"automountServiceAccountToken":false,`+volume(`"hostPath":{"path":"/etc/kubernetes"}`)), "may not give pods the volume it; allowed: hostPath"},
		{"that pod with a capability", "pods", `"serviceAccountName":"quartermaster-fix-runtime","automountServiceAccountToken":false,` + in(`"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}`), "may not give pods a privileged container"},
	} {
		said := apply(one.resource, one.spec)
		if one.says == "" && said.code >= 300 {
			t.Errorf("%s: %d %s", one.what, said.code, said.message)
		}
		if one.says != "" && (said.code < 300 || !strings.Contains(said.message, one.says) || strings.Contains(said.message, "\n")) {
			t.Errorf("%s: %d %s, expected %q", one.what, said.code, said.message, one.says)
		}
	}
}
