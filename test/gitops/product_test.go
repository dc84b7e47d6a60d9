package gitops

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// values of the release: pods of the chart run on the real node, which has the image.
func values(level string) map[string]any {
	return map[string]any{
		"image":        map[string]any{"registry": registry, "pullPolicy": "Never", "tag": os.Getenv("QM_IMAGE_TAG")},
		"nodeSelector": map[string]any{"kubernetes.io/hostname": kit.RealNode},
		"tolerations":  []any{map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}},
		"pgpu_enable":  true,
		"log":          map[string]any{"level": level},
	}
}

// chart copies the chart of this tree into the folder, as another version of it.
func chart(t *testing.T, folder, version string) string {
	t.Helper()
	target := filepath.Join(folder, "quartermaster")
	must(t, os.RemoveAll(target))
	must(t, os.CopyFS(target, os.DirFS(filepath.Join(kit.Root(), "charts/quartermaster"))))
	file := filepath.Join(target, "Chart.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	changed := regexp.MustCompile(`(?m)^version: .*$`).ReplaceAll(text, []byte("version: "+version))
	must(t, os.WriteFile(file, changed, 0o644))
	return target
}

func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	said, err := cluster.Run(input, "kubectl", args...)
	must(t, err)
	return said
}

// apply these objects, as the person who administers the cluster.
func apply(t *testing.T, objects ...map[string]any) {
	t.Helper()
	for _, object := range objects {
		text, err := json.Marshal(object)
		must(t, err)
		kubectl(t, string(text), "apply", "--server-side", "--force-conflicts", "-f", "-")
	}
}

// get an object; nil where there is none.
func get(t *testing.T, args ...string) map[string]any {
	t.Helper()
	text := kubectl(t, "", append([]string{"get", "--ignore-not-found", "-o", "json"}, args...)...)
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var object map[string]any
	must(t, json.Unmarshal([]byte(text), &object))
	return object
}

// account is a ServiceAccount with all rights and its kubeconfig, so that the audit log names the tool.
func account(t *testing.T, namespace, name string) (kubeconfig string) {
	t.Helper()
	apply(t,
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}},
		map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace}},
		map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": name},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}}})
	said, err := cluster.Script("sa-kubeconfig", "--namespace", namespace, "--serviceaccount", name)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return lines[len(lines)-1]
}

// scraped is the sum of the series that begin so, of a program on this port.
func scraped(port int, series string) (sum float64, err error) {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	return kit.SumOf(text, series)
}

// operatorWorks: both pods are ready, one leads, and the webhooks have the operator's authority.
func operatorWorks(t *testing.T) {
	t.Helper()
	kit.Await(t, 90*time.Second, "the operator works", func() (bool, error) {
		deployment, err := cluster.Client.AppsV1().Deployments(kit.Namespace).Get(ctx, "quartermaster", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status := deployment.Status
		if status.ReadyReplicas != 2 || status.UpdatedReplicas != 2 || status.Replicas != 2 || status.ObservedGeneration != deployment.Generation {
			return false, fmt.Errorf("%+v", status)
		}
		lease, err := cluster.Client.CoordinationV1().Leases(kit.Namespace).Get(ctx, "quartermaster", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && authority() != "", err
	})
}

// authority that the operator wrote into the webhooks of the chart; empty while one of them has none.
func authority() (bundle string) {
	hooks, err := cluster.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "quartermaster", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, hook := range hooks.Webhooks {
		if len(hook.ClientConfig.CABundle) == 0 {
			return ""
		}
		bundle = string(hook.ClientConfig.CABundle)
	}
	return bundle
}

// nodeIs waits until the operator says so of the node with a card.
func nodeIs(t *testing.T, phase string) {
	t.Helper()
	kit.Await(t, 60*time.Second, cardNode+" is "+phase, func() (bool, error) {
		object, err := cluster.Dynamic.Resource(kit.AccelNodes).Get(ctx, cardNode, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		found, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return found == phase, fmt.Errorf("%v", object.Object["status"])
	})
}

// usesACard starts a pod on the node with a card.
func usesACard(t *testing.T) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "default"}, Spec: corev1.PodSpec{
		NodeName: cardNode,
		Containers: []corev1.Container{{Name: "main", Image: registry + "/train:1",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
	_, err := cluster.Client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	must(t, err)
}

// manifest of the release: what the API server should have, as "kind namespace/name" by helm's own rendering.
func manifest(t *testing.T, folder string, values map[string]any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.json")
	text, err := json.Marshal(values)
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	rendered, err := cluster.Run("", "helm", "template", "quartermaster", folder, "-n", kit.Namespace, "-f", file, "--no-hooks", "--kube-version", "1.36.0",
		"--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
	must(t, err)
	return rendered
}

// revisions of the objects of the release, a line each.
func revisions(t *testing.T, manifest string) []string {
	t.Helper()
	lines := kubectl(t, manifest, "get", "-f", "-", "-o",
		`jsonpath={range .items[*]}{.kind}{" "}{.metadata.name}{" "}{.metadata.resourceVersion}{"\n"}{end}`)
	return strings.Split(strings.TrimSpace(lines), "\n")
}

// writes that were stored since a moment, by this user.
func writes(t *testing.T, user string, since time.Time, wanted func(kit.AuditEvent) bool) (found []string) {
	t.Helper()
	events, err := cluster.Audit(since, func(event kit.AuditEvent) bool {
		return event.User.Username == user && event.Write() && !strings.Contains(event.RequestURI, "dryRun=All") && wanted(event)
	})
	must(t, err)
	for _, event := range events {
		found = append(found, fmt.Sprintf("%s (%d)", event, event.ResponseStatus.Code))
	}
	return found
}

// quiet watches a release that is settled, for this time and at least three comparisons: the tool writes only of itself, and no one writes to an object of
// the chart.
func quiet(t *testing.T, when string, used tool, manifest string, window time.Duration) {
	t.Helper()
	before, began := revisions(t, manifest), time.Now()
	if len(before) < 40 {
		t.Fatalf("only these objects are of the release: %q", before)
	}
	rounds := used.rounds(t)
	kit.Await(t, window+time.Minute, when+", the tool has compared often enough", func() (bool, error) {
		compared := used.rounds(t) - rounds
		return compared >= 3 && time.Since(began) >= window, fmt.Errorf("%.0f times", compared)
	})
	t.Logf("%s: compared %.0f times in %.0f s", when, used.rounds(t)-rounds, time.Since(began).Seconds())
	for _, write := range writes(t, used.user(), began, used.others) {
		t.Errorf("%s: %s wrote: %s", when, used.user(), write)
	}
	for _, line := range revisions(t, manifest) {
		if !slices.Contains(before, line) {
			t.Errorf("%s: someone wrote %s", when, line)
		}
	}
	if !used.settled(t) {
		t.Errorf("%s: %s says that the release is not as its source says", when, used.user())
	}
}

// patch an object as a JSON merge patch of these fields.
func patch(t *testing.T, fields map[string]any, args ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"status": fields["status"]})
	must(t, err)
	kubectl(t, "", append(append([]string{"patch", "-n", home}, args...), "--type=merge", "-p", string(text))...)
}

// typesOf a tool, from the folder of its programs. kubectl refuses to wait for a type that has no status yet.
func typesOf(t *testing.T, name string) {
	t.Helper()
	folder := filepath.Join(programs, "crds", name)
	kubectl(t, "", "apply", "--server-side", "-f", folder)
	kit.Await(t, 30*time.Second, "the types of "+name, func() (bool, error) {
		_, err := cluster.Run("", "kubectl", "wait", "--for=condition=Established", "--timeout=10s", "-f", folder)
		return err == nil, err
	})
}
