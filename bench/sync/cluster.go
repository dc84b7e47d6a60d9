package main

import (
	"context"
	"fmt"
	"time"

	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

// cluster is a control plane pinned to one core: etcd, kube-apiserver and kube-controller-manager.
type cluster struct{ *kit.Plane }

func clusterUp(ctx context.Context, o options) (*cluster, error) {
	kit.Say("starting the control plane on core %d", o.controlCore)
	plane, err := kit.PlaneUp(ctx, o.controlCore, "sync", "--no-kwok", "--no-scheduler")
	return &cluster{plane}, err
}

func (c *cluster) etcd() *load.Etcd { return load.NewEtcd("http://127.0.0.1:" + c.Facts["ETCD_PORT"]) }

// fill stops the controller manager (it would collect pods whose nodes and owners it does not believe in) and loads the objects.
func (c *cluster) fill(ctx context.Context, content load.Options) error {
	if err := c.StopControllers(); err != nil {
		return err
	}
	began := time.Now()
	sizes, err := c.etcd().Load(ctx, content)
	if err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	kit.Say("loaded %d nodes (first: %d bytes protobuf, %d JSON) and %d pods (%d, %d) in %.1f s", content.Nodes, sizes.NodeProtobuf, sizes.NodeJSON,
		content.Pods, sizes.PodProtobuf, sizes.PodJSON, time.Since(began).Seconds())
	return nil
}

func leaveLoaded(ctx context.Context, o options) error {
	c, err := clusterUp(ctx, o)
	if err != nil {
		return err
	}
	if err := c.fill(ctx, o.content); err != nil {
		c.Down(o.keep)
		return err
	}
	fmt.Println(c.Kubeconfig)
	return nil
}
