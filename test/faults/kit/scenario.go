package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Names that are contracts: docs and people rely on them.
const (
	Namespace      = "quartermaster"
	ServiceAccount = "quartermaster"
	ModuleLabel    = "quartermaster.io/module"
	SwitchingTaint = "quartermaster.io/switching"
	IsolationTaint = "quartermaster.io/accelerator"
	VerdictKey     = "quartermaster.io/verdict"
	AskLabel       = "nvidia-device-enable"
	ManagedBy      = "app.kubernetes.io/managed-by=quartermaster"
)

var (
	Policies      = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratorpolicies"}
	AccelNodes    = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratornodes"}
	ResourceRules = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "resourcerules"}
	DaemonSetOf   = map[string]string{"pgpu": "nvidia-device-plugin-ds", "vgpu": "gpu-manager-daemonset", "mps": "nvidia-mps-device-plugin-daemonset"}
)

// Scenario is the cluster every fault test starts from: the chart's CRDs and rights, a policy with three modules, a few nodes with
// cards that ask for one each, two good declarations and a bad one. What must come of it is Expected.
type Scenario struct {
	*Cluster
	Expected Expected
	plugins  *exec.Cmd
}

// Expected is what the operator has to bring about.
type Expected struct {
	Modules      map[string]bool   // module -> is its DaemonSet there
	Nodes        map[string]string // node -> mode; empty: not enrolled
	Declarations map[string]string // ConfigMap in kube-public -> good (accepted, perhaps with warnings) or refused
}

func (e Expected) clone() Expected {
	c := Expected{map[string]bool{}, map[string]string{}, map[string]string{}}
	for k, v := range e.Modules {
		c.Modules[k] = v
	}
	for k, v := range e.Nodes {
		c.Nodes[k] = v
	}
	for k, v := range e.Declarations {
		c.Declarations[k] = v
	}
	return c
}

func standard() Expected {
	return Expected{
		Modules:      map[string]bool{"pgpu": true, "vgpu": true, "mps": true},
		Nodes:        map[string]string{"t4-0": "pgpu", "t4-1": "vgpu", "a100-0": "mps"},
		Declarations: map[string]string{"cf-crl-gpu-manager-vcuda-core": "good", "cf-crl-nvidia-gpu": "good", "cf-crl-broken": "refused"},
	}
}

// Install applies the chart without its Deployment, makes the nodes and starts the simulated device plugins.
func Install(ctx context.Context, c *Cluster) (*Scenario, error) {
	s := &Scenario{Cluster: c}
	if err := s.applyChart(ctx); err != nil {
		return nil, err
	}
	if _, err := c.Run("", "sim", "nodes", "--kubeconfig", c.Kubeconfig, "--profile", "t4=2,a100=1"); err != nil {
		return nil, err
	}
	if err := s.startPlugins(); err != nil {
		return nil, err
	}
	return s, s.Prepare(ctx)
}

// Break lets the plugins of a module run and never find a card; an empty name fixes them.
func (s *Scenario) Break(module string) error {
	s.Close()
	return s.startPlugins("--broken", module)
}

func (s *Scenario) startPlugins(further ...string) error {
	log, err := os.Create(filepath.Join(s.Dir, "sim-plugins.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.plugins = exec.Command(s.Tool("sim"), append([]string{"plugins", "--kubeconfig", s.Kubeconfig}, further...)...)
	s.plugins.Stdout, s.plugins.Stderr = log, log
	s.plugins.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return s.plugins.Start()
}

// Heal starts everything but etcd and the API server afresh: after a restart of the server, clients of its age may take a minute to see
// again, and they are not what is tested.
func (s *Scenario) Heal() error {
	s.Close()
	if err := s.RestartClients(); err != nil {
		return err
	}
	return s.startPlugins()
}

// Close ends what Install started; the cluster stays.
func (s *Scenario) Close() {
	if s.plugins != nil && s.plugins.Process != nil {
		s.plugins.Process.Kill()
		s.plugins.Wait()
	}
}

func (s *Scenario) applyChart(ctx context.Context, set ...string) error {
	_, err := s.Run("", "helm", append([]string{"upgrade", "--install", "quartermaster", filepath.Join(Root(), "charts/quartermaster"),
		"--namespace", Namespace, "--create-namespace", "--set", "replicaCount=0"}, set...)...) // the tests start the processes themselves
	if err != nil {
		return err
	}
	_, err = s.Run("", "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", "acceleratorpolicies.quartermaster.io",
		"acceleratornodes.quartermaster.io", "resourcerules.quartermaster.io")
	return err
}

// Prepare takes away all traces of earlier operators, by the checker's own hand, and puts the inputs back.
func (s *Scenario) Prepare(ctx context.Context) error {
	s.Expected = standard()
	if err := s.Wipe(ctx); err != nil {
		return err
	}
	for name, data := range declarations {
		if err := s.Declare(ctx, name, data); err != nil {
			return err
		}
	}
	if err := s.SetModules(ctx, s.Expected.Modules); err != nil {
		return err
	}
	for node, mode := range s.Expected.Nodes {
		if err := s.Ask(ctx, node, mode); err != nil {
			return err
		}
	}
	return nil
}

// Wipe deletes the inputs and everything an operator made of them.
func (s *Scenario) Wipe(ctx context.Context) error {
	gone := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	now := int64(0)
	del := metav1.DeleteOptions{GracePeriodSeconds: &now}
	all := metav1.ListOptions{}
	managed := metav1.ListOptions{LabelSelector: ManagedBy}
	for _, gvr := range []schema.GroupVersionResource{Policies, AccelNodes, ResourceRules} {
		if err := gone(s.Dynamic.Resource(gvr).DeleteCollection(ctx, del, all)); err != nil {
			return err
		}
	}
	for _, gvr := range []schema.GroupVersionResource{{Group: "apps", Version: "v1", Resource: "daemonsets"}, {Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "serviceaccounts"}} {
		list, err := s.Dynamic.Resource(gvr).List(ctx, managed)
		if err != nil {
			return err
		}
		for _, object := range list.Items {
			if err := gone(s.Dynamic.Resource(gvr).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), del)); err != nil {
				return err
			}
		}
	}
	if err := s.Client.AppsV1().Deployments(Namespace).DeleteCollection(ctx, del, managed); err != nil {
		return err
	}
	if err := s.Client.CoreV1().ConfigMaps(Namespace).DeleteCollection(ctx, del, managed); err != nil {
		return err
	}
	if err := s.Client.CoordinationV1().Leases(Namespace).DeleteCollection(ctx, del, all); err != nil {
		return err
	}
	if err := s.Client.CoreV1().ConfigMaps("kube-public").DeleteCollection(ctx, del, metav1.ListOptions{LabelSelector: declarationType}); err != nil {
		return err
	}
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		labels := map[string]any{AskLabel: nil, ModuleLabel: nil, "ack.node.gpu.schedule": nil}
		taints := []corev1.Taint{}
		for _, taint := range n.Spec.Taints {
			if taint.Key != SwitchingTaint && taint.Key != IsolationTaint {
				taints = append(taints, taint)
			}
		}
		patch := map[string]any{"metadata": map[string]any{"labels": labels}}
		if len(taints) != len(n.Spec.Taints) {
			patch["spec"] = map[string]any{"taints": taints}
		}
		if err := s.PatchNode(ctx, n.Name, patch); err != nil {
			return err
		}
	}
	return s.eventually(ctx, 30*time.Second, func() []string { // module pods must be gone, or the next operator rightly waits for them
		pods, err := s.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: ModuleLabel})
		if err != nil {
			return []string{err.Error()}
		}
		var left []string
		for _, p := range pods.Items { // at once, for the nodes of some are gone, and no one would confirm
			left = append(left, "pod "+p.Name+" is still there")
			_ = s.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, del)
		}
		return left
	})
}

// PatchNode merges into a node, by the checker's own hand.
func (s *Scenario) PatchNode(ctx context.Context, name string, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// Ask writes (or with an empty mode removes) the label by which people ask for a mode.
func (s *Scenario) Ask(ctx context.Context, node, mode string) error {
	var value any
	if mode != "" {
		value = mode
	}
	s.Expected.Nodes[node] = mode
	return s.PatchNode(ctx, node, map[string]any{"metadata": map[string]any{"labels": map[string]any{AskLabel: value}}})
}

// SetModules writes the policy `default`.
func (s *Scenario) SetModules(ctx context.Context, on map[string]bool) error {
	modules := map[string]any{}
	for name := range DaemonSetOf {
		modules[name] = map[string]any{"enabled": on[name]}
	}
	s.Expected.Modules = on
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "metadata": map[string]any{"name": "default"},
		// What is declared here is the scenario's own.
		"spec": map[string]any{"modules": modules, "customResources": map[string]any{"publish": false}},
	}}
	_, err := s.Dynamic.Resource(Policies).Apply(ctx, "default", policy, metav1.ApplyOptions{FieldManager: "fault-test", Force: true})
	return err
}

// Enforce says how strictly pods are held to the declarations: Off, Warn or Deny.
func (s *Scenario) Enforce(ctx context.Context, mode string) error {
	body, _ := json.Marshal(map[string]any{"spec": map[string]any{"customResources": map[string]any{"enforcement": mode}}})
	_, err := s.Dynamic.Resource(Policies).Patch(ctx, "default", types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// Try asks the server what it would say to a pod; nothing is made. The pod comes back as it would be.
func (s *Scenario) Try(ctx context.Context, limits map[string]string) (*corev1.Pod, error) {
	list := corev1.ResourceList{}
	for k, v := range limits {
		list[corev1.ResourceName(k)] = resource.MustParse(v)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Limits: list}}}}}
	return s.Client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{"All"}})
}

const declarationType = "features.cpaas.io/type=CustomResourceLimitation"

var declarations = map[string]map[string]string{
	"cf-crl-gpu-manager-vcuda-core": {"key": "tencent.com/vcuda-core", "dataType": "integer", "defaultValue": "20", "group": "gpu-manager",
		"descriptionEn": "share of a card, 100 is a whole one", "descriptionZh": "vcuda core", "limits": "optional", "requests": "disabled"},
	"cf-crl-nvidia-gpu": {"key": "nvidia.com/gpu", "dataType": "integer", "defaultValue": "1", "group": "nvidia-gpu",
		"descriptionEn": "whole cards", "descriptionZh": "gpu", "limits": "optional", "requests": "disabled"},
	"cf-crl-broken": {"key": "not a resource name", "dataType": "integer", "defaultValue": "many", "group": "broken",
		"limits": "perhaps", "requests": "disabled", "descriptionEn": "secret-content-of-a-configmap-7391"},
}

// DeclarationContent is text that is only inside a ConfigMap: it must never be in a log.
const DeclarationContent = "secret-content-of-a-configmap-7391"

// Declare writes a cf-crl ConfigMap.
func (s *Scenario) Declare(ctx context.Context, name string, data map[string]string) error {
	if _, known := s.Expected.Declarations[name]; !known {
		s.Expected.Declarations[name] = "good"
	}
	body, _ := json.Marshal(map[string]any{"data": data})
	_, err := s.Client.CoreV1().ConfigMaps("kube-public").Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-public", Labels: map[string]string{
			"features.cpaas.io/type": "CustomResourceLimitation", "features.cpaas.io/group": data["group"], "features.cpaas.io/enabled": "true"}}, Data: data}
		_, err = s.Client.CoreV1().ConfigMaps("kube-public").Create(ctx, cm, metav1.CreateOptions{})
	}
	return err
}

// Differences between what is and what must be, by reading the API; empty when the operator has done its work.
func (s *Scenario) Differences(ctx context.Context) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	sets, err := s.Client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{LabelSelector: ManagedBy})
	if err != nil {
		return []string{err.Error()}
	}
	byName := map[string][]appsv1.DaemonSet{}
	for _, d := range sets.Items {
		byName[d.Name] = append(byName[d.Name], d)
	}
	for module, name := range DaemonSetOf {
		found := byName[name]
		if want := map[bool]int{true: 1, false: 0}[s.Expected.Modules[module]]; len(found) != want {
			say("%d DaemonSets %s, want %d", len(found), name, want)
			continue
		}
		for _, d := range found {
			users := 0
			for _, mode := range s.Expected.Nodes {
				if mode == module {
					users++
				}
			}
			if st := d.Status; st.ObservedGeneration < d.Generation || int(st.DesiredNumberScheduled) != users || int(st.NumberReady) != users {
				say("DaemonSet %s: %d desired and %d ready, want %d", name, st.DesiredNumberScheduled, st.NumberReady, users)
			}
		}
	}
	if said := s.PolicyNotReady(ctx); len(said) > 0 && strings.Contains(said[0], "generation") {
		wrong = append(wrong, said[0])
	}
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return append(wrong, err.Error())
	}
	for _, n := range nodes.Items {
		mode, known := s.Expected.Nodes[n.Name]
		if !known {
			continue
		}
		if got := n.Labels[ModuleLabel]; got != mode {
			say("node %s has module %q, want %q", n.Name, got, mode)
		}
		for _, taint := range n.Spec.Taints {
			if taint.Key == SwitchingTaint {
				say("node %s still has the taint %s=%s", n.Name, taint.Key, taint.Value)
			}
		}
		if mode != "" {
			wrong = append(wrong, s.accelNode(ctx, &n, mode)...)
		}
	}
	for name, word := range s.Expected.Declarations {
		cm, err := s.Client.CoreV1().ConfigMaps("kube-public").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			say("%v", err)
			continue
		}
		var said struct{ Verdict string }
		if err := json.Unmarshal([]byte(cm.Annotations[VerdictKey]), &said); err != nil {
			say("ConfigMap %s has verdict %q: %v", name, cm.Annotations[VerdictKey], err)
		} else if (said.Verdict == "refused") != (word == "refused") {
			say("ConfigMap %s is called %q, want %s", name, said.Verdict, word)
		}
	}
	sort.Strings(wrong)
	return
}

// PolicyNotReady says why the policy's status does not call it rolled out. Modules whose DaemonSet has minReadySeconds are called so
// that much later than their pods, which is no part of Differences.
func (s *Scenario) PolicyNotReady(ctx context.Context) (wrong []string) {
	p, err := s.Dynamic.Resource(Policies).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	seen, _, _ := unstructured.NestedInt64(p.Object, "status", "observedGeneration")
	if seen != p.GetGeneration() {
		wrong = append(wrong, fmt.Sprintf("the policy's status is of generation %d, not %d", seen, p.GetGeneration()))
	}
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] != "True" {
			wrong = append(wrong, fmt.Sprintf("the policy is not Ready: %v, %v", m["reason"], m["message"]))
		}
	}
	return
}

func (s *Scenario) accelNode(ctx context.Context, n *corev1.Node, mode string) (wrong []string) {
	a, err := s.Dynamic.Resource(AccelNodes).Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	actual, _, _ := unstructured.NestedString(a.Object, "status", "actualMode")
	phase, _, _ := unstructured.NestedString(a.Object, "status", "phase")
	if actual != mode || phase != "Ready" {
		wrong = append(wrong, fmt.Sprintf("AcceleratorNode %s is %q in mode %q, want Ready in %q", n.Name, phase, actual, mode))
	}
	for _, owner := range a.GetOwnerReferences() {
		if owner.Kind == "Node" && owner.UID != n.UID {
			wrong = append(wrong, fmt.Sprintf("AcceleratorNode %s belongs to an earlier node of that name", n.Name))
		}
	}
	return
}

// AwaitPolicyReady waits until the policy's own status has come to rest.
func (s *Scenario) AwaitPolicyReady(ctx context.Context, patience time.Duration) error {
	return s.eventually(ctx, patience, func() []string { return s.PolicyNotReady(ctx) })
}

// Await waits until nothing differs.
func (s *Scenario) Await(ctx context.Context, patience time.Duration) error {
	return s.eventually(ctx, patience, func() []string { return s.Differences(ctx) })
}

func (s *Scenario) eventually(ctx context.Context, patience time.Duration, wrong func() []string) error {
	patience = Patient(patience)
	for deadline := time.Now().Add(patience); ; {
		last := wrong()
		if len(last) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s still:\n  %s", patience, strings.Join(last, "\n  "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// AwaitServing waits until the API server answers again, reads and writes.
func (s *Scenario) AwaitServing(ctx context.Context, patience time.Duration) error {
	return s.eventually(ctx, patience, func() []string {
		if !s.Serving() {
			return []string{"the API server does not serve"}
		}
		if err := s.PatchNode(ctx, "t4-0", map[string]any{}); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
}

// ExpireLease makes the lease free at once, as if its time had passed.
func (s *Scenario) ExpireLease(ctx context.Context) error {
	return s.Client.CoordinationV1().Leases(Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// Token makes a token of the operator's ServiceAccount; with a bound object it dies with that object.
func (s *Scenario) Token(ctx context.Context, bound *authenticationv1.BoundObjectReference) (string, error) {
	seconds := int64(4 * 3600)
	r, err := s.Client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, ServiceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return r.Status.Token, nil
}

// WriteKubeconfig for the operator: the proxy's address and CA, a token in a file of its own.
func WriteKubeconfig(file, server, caFile, tokenFile string) error {
	return os.WriteFile(file, []byte(fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {tokenFile: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, server, caFile, tokenFile)), 0o600)
}

// WriteAtomically replaces a file by rename, as kubelets rotate tokens.
func WriteAtomically(file, content string) error {
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// CAFile holds the proxy's certificate authority.
func (p *Proxy) CAFile() string { return p.caFile }
