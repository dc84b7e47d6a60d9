// Package release is about what people install on their own machines and clusters.
package release

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quartermaster.io/test/faults/kit"
)

var (
	ctx     = context.Background()
	must    = kit.Must
	cluster *kit.Cluster
	dist    = os.Getenv("QM_RELEASE") // what ./dev release made of this checkout
	version string
)

// The cluster has no nodes. QM_RELEASE_CLUSTER names one that is left running. The test program itself is also a credential plugin, and
// the network that the executable meets in its own network namespace (names_test.go).
func TestMain(m *testing.M) {
	switch os.Getenv("QM_ROLE") {
	case "credential":
		printCredential()
	case "network":
		os.Exit(serveNetwork(os.Args[1:]))
	default:
		text, _ := os.ReadFile(filepath.Join(kit.Root(), "VERSION"))
		version = strings.TrimSpace(string(text))
		os.Exit(kit.RunLane(m, "release", "QM_RELEASE_CLUSTER", func(name string) (err error) {
			cluster, err = kit.Up(ctx, name, kit.Minor(), "--no-kwok")
			return err
		}))
	}
}

// unpacked is the folder of an archive of the release, unpacked.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	folder := t.TempDir()
	if said, err := exec.Command("tar", "-xzf", filepath.Join(dist, name), "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, said)
	}
	return folder
}

// program is the folder of the executable.
func program(t *testing.T) string {
	t.Helper()
	return filepath.Join(unpacked(t, "quartermaster-"+version+"-linux-amd64.tar.gz"), "quartermaster-"+version+"-linux-amd64")
}

// run a command that has to work.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	said, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}
