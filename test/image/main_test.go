// Package image is about the image of the operator, and about the operator as pods of it on a real node.
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

// One cluster with a real node and its own kube-scheduler, and no simulated nodes. Its API server reaches Services by their endpoints,
// because no kube-proxy runs here. QM_IMAGE_CLUSTER names a cluster that is left running.
func TestMain(m *testing.M) {
	os.Exit(kit.RunLane(m, "image", "QM_IMAGE_CLUSTER", func(name string) (err error) {
		if first, err = build(kit.Root()); err != nil {
			return err
		}
		cluster, err = kit.Up(ctx, name, minor, "--real-node", "--no-kwok", "--apiserver-arg=--enable-aggregator-routing=true")
		return err
	}))
}
