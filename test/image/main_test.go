// Package image is about the image of the operator, and about the operator as pods of it on a real node.
package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quartermaster.io/test/faults/kit"
)

var (
	ctx         = context.Background()
	minor       = kit.Minor()
	must        = kit.Must
	cluster     *kit.Cluster
	archiveFile string // the image, made by the first of these tests or before
)

// One cluster with a real node and its own kube-scheduler, and no simulated nodes. Its API server reaches Services by their endpoints,
// because no kube-proxy runs here. QM_IMAGE_CLUSTER names a cluster that is left running.
func TestMain(m *testing.M) {
	os.Exit(kit.RunLane(m, "image", "QM_IMAGE_CLUSTER", func(name string) (err error) {
		build := exec.Command(filepath.Join(kit.Root(), "image/build.sh"))
		build.Stderr = os.Stderr
		said, err := build.Output()
		if err != nil {
			return fmt.Errorf("image/build.sh: %w", err)
		}
		archiveFile = strings.Fields(string(said))[0]
		cluster, err = kit.Up(ctx, name, minor, "--real-node", "--no-kwok", "--apiserver-arg=--enable-aggregator-routing=true")
		return err
	}))
}
