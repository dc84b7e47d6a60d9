package gitops

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// home is where the objects of the tool are.
const home = "gitops"

// flux is Flux's helm-controller. The test serves the chart in the place of source-controller: the object ExternalArtifact is made for that.
type flux struct {
	server  *httptest.Server
	folder  string
	metrics int
	values  map[string]any
	version string
}

func (f *flux) user() string { return "system:serviceaccount:" + home + ":flux" }

func (f *flux) others(event kit.AuditEvent) bool {
	return !strings.HasSuffix(event.ObjectRef.APIGroup, "toolkit.fluxcd.io") && event.ObjectRef.Resource != "events"
}

func (f *flux) start(t *testing.T) {
	typesOf(t, "flux")
	f.folder = t.TempDir()
	f.server = httptest.NewServer(http.FileServer(http.Dir(f.folder)))
	t.Cleanup(f.server.Close)
	f.metrics = freePort(t)
	launch(t, "helm-controller", []string{"KUBECONFIG=" + account(t, home, "flux"), "RUNTIME_NAMESPACE=" + home},
		filepath.Join(programs, "helm-controller"), fmt.Sprintf("--metrics-addr=127.0.0.1:%d", f.metrics),
		fmt.Sprintf("--health-addr=127.0.0.1:%d", freePort(t)), "--feature-gates=ExternalArtifact=true")
}

func (f *flux) publish(t *testing.T, folder, version string, values map[string]any) {
	t.Helper()
	if f.version != version {
		_, err := cluster.Run("", "helm", "package", folder, "--destination", f.folder)
		must(t, err)
		file := "quartermaster-" + version + ".tgz"
		text, err := os.ReadFile(filepath.Join(f.folder, file))
		must(t, err)
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(text))
		now := time.Now().UTC().Format(time.RFC3339)
		artifact := map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact", "metadata": map[string]any{"name": "quartermaster", "namespace": home}}
		apply(t, artifact)
		artifact["status"] = map[string]any{
			"artifact":   map[string]any{"url": f.server.URL + "/" + file, "path": file, "revision": version, "digest": digest, "lastUpdateTime": now, "size": len(text)},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": version, "lastTransitionTime": now}}}
		patch(t, artifact, "externalartifact.source.toolkit.fluxcd.io/quartermaster", "--subresource=status")
	}
	f.values, f.version = values, version
	apply(t, map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "quartermaster", "namespace": home},
		"spec": map[string]any{"interval": interval.String(), "releaseName": "quartermaster", "targetNamespace": kit.Namespace, "install": map[string]any{"createNamespace": true},
			"chartRef": map[string]any{"kind": "ExternalArtifact", "name": "quartermaster"}, "driftDetection": map[string]any{"mode": "enabled"}, "values": values}})
}

func (f *flux) release(t *testing.T) map[string]any {
	t.Helper()
	return get(t, "helmrelease", "quartermaster", "-n", home)
}

// ready is the condition of that name and its message.
func ready(object map[string]any) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, condition := range conditions {
		if condition := condition.(map[string]any); condition["type"] == "Ready" {
			return condition["status"].(string), condition["message"].(string)
		}
	}
	return "", ""
}

func (f *flux) settled(t *testing.T) bool {
	t.Helper()
	release := f.release(t)
	status, message := ready(release)
	generation, _, _ := unstructured.NestedFloat64(release, "metadata", "generation")
	observed, _, _ := unstructured.NestedFloat64(release, "status", "observedGeneration")
	return status == "True" && generation == observed && strings.Contains(message, "quartermaster@"+f.version)
}

func (f *flux) rounds(t *testing.T) float64 {
	t.Helper()
	count, err := scraped(f.metrics, `controller_runtime_reconcile_total{controller="helmrelease"`)
	must(t, err)
	return count
}

func (f *flux) remove(t *testing.T) {
	kubectl(t, "", "delete", "helmrelease", "quartermaster", "-n", home, "--wait=false")
}

func (f *flux) refused(t *testing.T) string {
	t.Helper()
	status, message := ready(f.release(t))
	if status != "False" {
		return ""
	}
	return message
}

func (f *flux) gone(t *testing.T) bool {
	t.Helper()
	return f.release(t) == nil
}
