package server

import (
	"fmt"
	"strings"
	"testing"

	"quartermaster.io/test/chart/lane"
)

// The operator refuses a ConfigMap of more than 64 KiB with the label of declarations, with the chart's rights, and takes it back when it has
// become small.
func TestALargeDeclarationIsRefused(t *testing.T) {
	installed(t, "replicaCount=0")
	declare := func(more int) {
		t.Helper()
		kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cf-crl-lab-fpga", "namespace": "kube-public",
			"labels": {"features.cpaas.io/type": "CustomResourceLimitation", "features.cpaas.io/group": "lab", "features.cpaas.io/enabled": "true"}},
			"data": {"key": "example.com/fpga", "dataType": "integer", "defaultValue": "1", "group": "lab", "limits": "optional", "requests": "disabled",
			"descriptionEn": "Cards", "descriptionZh": "%s"}}`, strings.Repeat("x", more)), "apply", "--server-side", "--force-conflicts", "-f", "-")
	}
	verdict := func() string {
		return kubectl(t, "", "get", "configmap", "-n", "kube-public", "cf-crl-lab-fpga", "-o", `jsonpath={.metadata.annotations.quartermaster\.io/verdict}`)
	}
	t.Cleanup(func() {
		kubectl(t, "", "delete", "configmap", "-n", "kube-public", "cf-crl-lab-fpga", "--ignore-not-found")
	})
	declare(100_000)
	lane.Start(t, []string{"POD_NAMESPACE=" + namespace}, operator, "controller", "--kubeconfig", kubeconfigOf(t, "quartermaster"), "--metrics-address", "127.0.0.1:0")
	for _, step := range []struct {
		bytes  int
		wanted string
	}{{100_000, `"code":"too_large"`}, {10, `"verdict":"accepted"`}, {70_000, `"code":"too_large"`}} {
		declare(step.bytes)
		soon(t, fmt.Sprintf("the verdict on one with %d bytes is %s", step.bytes, step.wanted), func() bool { return strings.Contains(verdict(), step.wanted) })
	}
}
