// Package image is about the image of the operator, and about the operator as pods of it on real nodes.
package image

import (
	"context"
	"os"
	"testing"

	"quartermaster.io/test/faults/kit"
)

var (
	ctx     = context.Background()
	minor   = kit.Minor()
	must    = kit.Must
	cluster *kit.Cluster
	first   built // the image of this checkout
)

// One cluster with two real nodes and its own kube-scheduler, and no simulated nodes. QM_IMAGE_CLUSTER names a cluster that is left running.
func TestMain(m *testing.M) {
	os.Exit(kit.RunLane(m, "image", "QM_IMAGE_CLUSTER", func(name string) (err error) {
		if first, err = build(kit.Root()); err != nil {
			return err
		}
		cluster, err = kit.Up(ctx, name, minor, "--real-nodes", "2", "--no-kwok")
		return err
	}))
}
