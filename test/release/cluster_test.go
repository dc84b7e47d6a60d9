package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	said, err := cluster.Run("", "kubectl", args...)
	must(t, err)
	return said
}

func TestInstallYamlIsAppliedWithOneCommand(t *testing.T) {
	file := filepath.Join(dist, "install.yaml")
	first := kubectl(t, "apply", "--server-side", "-f", file)
	if n := strings.Count(first, "serverside-applied"); n < 20 {
		t.Fatalf("%d objects: %s", n, first)
	}
	kinds := []string{"acceleratorpolicies.quartermaster.io", "acceleratornodes.quartermaster.io", "acceleratorquotas.quartermaster.io",
		"acceleratorusages.quartermaster.io", "resourcerules.quartermaster.io"}
	kubectl(t, append([]string{"wait", "crd", "--for=condition=Established", "--timeout=30s"}, kinds...)...)
	image := kubectl(t, "get", "deployment", "quartermaster", "-n", "quartermaster", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	if image != "quartermaster:"+version {
		t.Errorf("the operator's image is %q", image)
	}
	if again := kubectl(t, "apply", "--server-side", "-f", file); again != first {
		t.Errorf("applied again it says %s", again)
	}
	if kept := kubectl(t, "diff", "--server-side", "-f", file); kept != "" {
		t.Errorf("the API server keeps other objects than the file has: %s", kept)
	}
	kubectl(t, "apply", "--server-side", "--dry-run=server", "-f", filepath.Join("testdata", "policy.yaml"))
	text, err := os.ReadFile(file)
	must(t, err)
	if strings.Contains(string(text), "helm.sh/hook") {
		t.Error("install.yaml has hooks of helm, which kubectl would run as ordinary objects")
	}
	// The operator lists all kinds; here it never runs. Where nobody has listed a kind, the API server may fail to delete its CRD ("could not
	// list instances: storage is (re)initializing") and tries again with pauses that double: 138 s and more than 300 s were seen.
	kubectl(t, "get", strings.Join(kinds, ","), "--all-namespaces")
	kubectl(t, "delete", "-f", file, "--wait=true", "--timeout=300s")
}

func TestTheChartIsInstalledFromItsArchive(t *testing.T) {
	said, err := cluster.Run("", "helm", "install", "quartermaster", filepath.Join(dist, "quartermaster-"+version+".tgz"), "-n", "quartermaster", "--create-namespace")
	must(t, err)
	if !strings.Contains(said, "STATUS: deployed") {
		t.Error(said)
	}
	_, err = cluster.Run("", "helm", "uninstall", "quartermaster", "-n", "quartermaster", "--no-hooks")
	must(t, err)
}

func TestThePackageOfTheClusterPluginHasTheChartAndItsModuleConfig(t *testing.T) {
	folder := unpacked(t, "quartermaster-cluster-plugin-"+version+".tgz")
	if _, err := os.Stat(filepath.Join(folder, "moduleconfig.yaml")); err != nil {
		t.Error(err)
	}
	charts, _ := filepath.Glob(filepath.Join(folder, "quartermaster-*.tgz"))
	if len(charts) != 1 {
		t.Fatalf("charts: %v", charts)
	}
	for _, file := range []string{"module-plugin.yaml", "scripts/plugin-config.yaml", "values.yaml"} {
		run(t, "tar", "-tzf", charts[0], "quartermaster/"+file)
	}
	_, err := cluster.Run("", "helm", "template", charts[0])
	must(t, err)
}

// The executable as a person has it, and as a plugin of the real kubectl.
func TestTheExecutableReadsTheCluster(t *testing.T) {
	folder := unpacked(t, "kubectl-quartermaster-"+version+"-linux-amd64.tar.gz")
	must(t, os.Symlink("kubectl-quartermaster", filepath.Join(folder, "kubectl_complete-quartermaster")))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	said, err := cluster.Run("", "kubectl", "quartermaster", "version")
	must(t, err)
	if !strings.HasPrefix(said, "quartermaster "+version) {
		t.Error(said)
	}
	_, err = cluster.Run("", "kubectl", "quartermaster", "inspect", "nodes", "-o", "json")
	must(t, err)
	completed, err := cluster.Run("", "kubectl", "__complete", "quartermaster", "explain", "p")
	must(t, err)
	if !strings.HasPrefix(completed, "pod\tWhy a pod waits") || !strings.HasSuffix(strings.TrimSpace(completed), ":4") {
		t.Errorf("kubectl completes %q", completed)
	}
}
