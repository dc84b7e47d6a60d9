package gitops

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

// interval at which a tool compares the cluster with its source.
const interval = 5 * time.Second

// tool is a program that keeps the chart in the cluster as its source says.
type tool interface {
	start(t *testing.T)
	user() string                                                        // its name for the API server
	others(event kit.AuditEvent) bool                                    // whether a write is to something else than the tool's own objects
	publish(t *testing.T, folder, version string, values map[string]any) // makes a chart the source
	settled(t *testing.T) bool                                           // it says that all is as the newest source says, and healthy
	rounds(t *testing.T) float64                                         // how often it has compared
	remove(t *testing.T)                                                 // asks it to remove the release
	refused(t *testing.T) string                                         // why it has not removed it yet; empty where it does not say
	gone(t *testing.T) bool                                              // it has
}

// A release that a GitOps tool keeps: installed, in use, changed, upgraded and removed by the tool alone. The tool and the operator do not
// write against each other.
func TestGitOps(t *testing.T) {
	t.Run("Flux", func(t *testing.T) { journey(t, &flux{}) })
}

// window in which nothing may be written; QM_GITOPS_WINDOW makes the first one longer.
func window(t *testing.T) time.Duration {
	t.Helper()
	length, err := time.ParseDuration(kit.Env("QM_GITOPS_WINDOW", "16s"))
	must(t, err)
	return length
}

func journey(t *testing.T, used tool) {
	plugins := exec.Command(cluster.Tool("sim"), "plugins", "--kubeconfig", cluster.Kubeconfig)
	must(t, plugins.Start())
	t.Cleanup(func() {
		plugins.Process.Kill()
		plugins.Wait()
		if t.Failed() {
			for _, args := range [][]string{{"get", "pods,jobs,events", "-n", kit.Namespace}, {"logs", "-n", kit.Namespace, "-l", "app.kubernetes.io/name=quartermaster", "--tail=30"}} {
				said, _ := cluster.Run("", "kubectl", args...)
				t.Log(said)
			}
		}
	})
	folder := t.TempDir()
	settles := func(what string) {
		t.Helper()
		kit.Await(t, 120*time.Second, what, func() (bool, error) { return used.settled(t), nil })
	}

	used.start(t)
	used.publish(t, chart(t, folder, "0.1.0"), "0.1.0", values("info"))
	settles("installed")
	operatorWorks(t)
	quiet(t, "after the installation", used, manifest(t, folder+"/quartermaster", values("info")), window(t))

	kubectl(t, "", "label", "node", cardNode, "nvidia-device-enable=pgpu", "--overwrite")
	nodeIs(t, "Ready")
	before := authority()
	kubectl(t, "", "delete", "secret", "quartermaster-webhook", "-n", kit.Namespace)
	kit.Await(t, 30*time.Second, "the operator has issued new certificates", func() (bool, error) {
		now := authority()
		return now != "" && now != before, nil
	})
	quiet(t, "with a node and new certificates", used, manifest(t, folder+"/quartermaster", values("info")), 2*interval+time.Second)

	_, err := cluster.Client.AppsV1().Deployments(kit.Namespace).Patch(ctx, "quartermaster", types.MergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, cluster.Client.CoreV1().Services(kit.Namespace).Delete(ctx, "quartermaster", metav1.DeleteOptions{}))
	kit.Await(t, 60*time.Second, "the tool has put back what someone deleted", func() (bool, error) {
		_, err := cluster.Client.CoreV1().Services(kit.Namespace).Get(ctx, "quartermaster", metav1.GetOptions{})
		return err == nil, err
	})
	settles("all is as it was")

	used.publish(t, folder+"/quartermaster", "0.1.0", values("debug"))
	settles("a value has changed")
	deployment, err := cluster.Client.AppsV1().Deployments(kit.Namespace).Get(ctx, "quartermaster", metav1.GetOptions{})
	must(t, err)
	if args := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args, " "); !strings.Contains(args, "debug") {
		t.Errorf("the operator runs with %s", args)
	}
	used.publish(t, chart(t, folder, "0.1.1"), "0.1.1", values("debug"))
	settles("the chart is upgraded")
	operatorWorks(t)
	if label := kubectl(t, "", "get", "deployment", "quartermaster", "-n", kit.Namespace, "-o", `jsonpath={.metadata.labels.helm\.sh/chart}`); label != "quartermaster-0.1.1" {
		t.Errorf("the Deployment is of the chart %s", label)
	}
	nodeIs(t, "Ready")
	quiet(t, "after the upgrade", used, manifest(t, folder+"/quartermaster", values("debug")), 2*interval+time.Second)

	usesACard(t)
	used.remove(t)
	kit.Await(t, 60*time.Second, "the removal is refused while a pod uses a card", func() (bool, error) {
		events, err := cluster.Run("", "kubectl", "get", "events", "-n", kit.Namespace, "-o", "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}")
		return strings.Contains(events, "default/train"), err
	})
	t.Log("the tool says: ", used.refused(t))
	nodeIs(t, "Ready")
	operatorWorks(t)
	kubectl(t, "", "delete", "pod", "train", "--grace-period=0", "--force")
	kit.Await(t, 120*time.Second, "the tool has removed all", func() (bool, error) { return used.gone(t), nil })
	leftovers(t, manifest(t, folder+"/quartermaster", values("debug")))
}

// leftovers of the release, of its hooks and of the operator: there are none, except the types.
func leftovers(t *testing.T, manifest string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(kubectl(t, manifest, "get", "-f", "-", "--ignore-not-found", "-o", "name")), "\n") {
		if line != "" && !strings.HasPrefix(line, "customresourcedefinition.") {
			t.Errorf("left of the release: %s", line)
		}
	}
	for _, kind := range []string{"job,serviceaccount,role,rolebinding,configmap,secret,service,daemonset,deployment,lease", "clusterrole,clusterrolebinding"} {
		for _, line := range strings.Fields(kubectl(t, "", "get", kind, "-n", kit.Namespace, "-o", "name")) {
			if strings.Contains(line, "quartermaster") {
				t.Errorf("left: %s", line)
			}
		}
	}
	node := kubectl(t, "", "get", "node", cardNode, "-o", "jsonpath={.metadata.labels}{.metadata.annotations}{.spec.taints}")
	if strings.Contains(node, "quartermaster.io/module") || strings.Contains(node, "quartermaster.io/accelerator") || strings.Contains(node, "quartermaster.io/switching") {
		t.Errorf("left on the node: %s", node)
	}
}
