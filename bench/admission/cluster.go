package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/bench/kit"
)

const namespace = "bench"

// cluster is a control plane, on one core where there are two; this program is on the other.
type cluster struct {
	*kit.Plane
	made int // runs so far
}

func clusterUp(ctx context.Context, version string) (*cluster, error) {
	first, last := kit.FirstAndLast()
	with := []string{"--no-kwok", "--no-scheduler"}
	if version != "" {
		with = append(with, "--k8s", version)
	}
	plane, err := kit.PlaneUp(ctx, first, "admission", with...)
	kit.PinSelf(last)
	return &cluster{Plane: plane}, err
}

// cpu of API server and etcd so far.
func (c *cluster) cpu() (sum time.Duration, err error) {
	for _, component := range []string{"kube-apiserver", "etcd"} {
		spent, err := kit.CPU(c.PID(component))
		if err != nil {
			return 0, err
		}
		sum += spent
	}
	return sum, nil
}

// settle waits until the server has done with what came before: compiled policies, published schemas, deleted pods. Two quiet seconds in a row.
func (c *cluster) settle(ctx context.Context) error {
	const window, busy = time.Second, 250 * time.Millisecond // an API server with nothing to do takes half of that
	quiet := 0
	for deadline := time.Now().Add(2 * time.Minute); quiet < 2; {
		before, err := c.cpu()
		if err != nil {
			return err
		}
		if err := kit.Pause(ctx, window); err != nil {
			return err
		}
		after, err := c.cpu()
		if err != nil {
			return err
		}
		if quiet++; after-before > busy {
			quiet = 0
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the API server is still busy two minutes after the last run")
		}
	}
	return nil
}

// install the chart, the rules and the namespace, and stop what would work beside the measurement.
func (c *cluster) install(ctx context.Context, keys int, enforced bool) error {
	var err error
	if enforced {
		err = c.Run(ctx, nil, "helm", "install", "quartermaster", "charts/quartermaster", "--namespace", "quartermaster", "--create-namespace", "--set", "replicaCount=0")
	} else { // the types alone: no policy of the chart
		err = c.Run(ctx, nil, "kubectl", "create", "-f", "charts/quartermaster/files/crds")
	}
	if err != nil {
		return err
	}
	if err := c.Run(ctx, nil, "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", "resourcerules.quartermaster.io"); err != nil {
		return err
	}
	if err := c.Run(ctx, rules(keys, map[string]string{"quartermaster.io/enforcement": "Deny"}), "kubectl", "create", "-f", "-"); err != nil {
		return err
	}
	_, err = c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err := c.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		} else if time.Now().After(deadline) {
			return err
		}
	}
	if err := c.StopControllers(); err != nil {
		return err
	}
	return c.inForce(ctx, enforced)
}

const never = "never.bench.test/a"

// rules is a ResourceRules object of so many keys: gpu-manager's two, of which one is filled in, one that no one may set, and others.
func rules(keys int, labels map[string]string) []byte {
	type rule = map[string]any
	all := map[string]rule{
		"tencent.com/vcuda-core": {"source": "kube-public/cf-crl-gpu-manager-vcuda-core", "group": "gpu-manager", "amounts": rule{"from": 1, "to": 99, "step": 1, "whole": 100, "words": "a share or whole cards"}, "partner": "tencent.com/vcuda-memory",
			"excluded": []string{"nvidia.com/gpu"}, "related": []string{"tencent.com/vcuda-memory"}},
		"tencent.com/vcuda-memory": {"source": "kube-public/cf-crl-gpu-manager-vcuda-memory", "group": "gpu-manager", "must": true, "fill": "16",
			"waivedBy": "tencent.com/vcuda-core", "waivedFrom": 100},
		"nvidia.com/gpu": {"source": "kube-public/cf-crl-nvidia-gpu", "excluded": []string{"tencent.com/vcuda-core"}, "runtimeClassName": "nvidia"},
		never:            {"source": "kube-public/cf-crl-never-a", "forbidden": true},
	}
	groups := map[string][]string{"gpu-manager": {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"}}
	for i := len(all); i < keys; i++ {
		group := fmt.Sprintf("vendor-%03d", i/4)
		key := fmt.Sprintf("%s.example.com/card-%04d", group, i)
		all[key] = rule{"source": "kube-public/cf-crl-" + key[:10], "group": group, "must": true, "fill": "1"}
		groups[group] = append(groups[group], key)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "ResourceRules",
		"metadata": map[string]any{"name": "default", "labels": labels},
		"spec":     map[string]any{"keys": slices.Sorted(maps.Keys(all)), "rules": all, "groups": groups}})
	if err != nil {
		panic(err)
	}
	return text
}

// inForce waits until the server is seen to enforce, or not to.
func (c *cluster) inForce(ctx context.Context, on bool) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		refused := podOf(0, map[string]string{never: "1"}, true)
		filled := podOf(1, map[string]string{"tencent.com/vcuda-core": "30"}, true)
		_, err := c.Client.CoreV1().Pods(namespace).Create(ctx, refused, metav1.CreateOptions{DryRun: []string{"All"}})
		got, failed := c.Client.CoreV1().Pods(namespace).Create(ctx, filled, metav1.CreateOptions{DryRun: []string{"All"}})
		if failed != nil && !apierrors.IsInvalid(failed) { // of the policies the server sees one earlier than the other
			return failed
		}
		has := false
		if failed == nil {
			_, has = got.Spec.Containers[0].Resources.Limits["tencent.com/vcuda-memory"]
		}
		if on == apierrors.IsInvalid(err) && on == has && failed == nil && (on || err == nil) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the policies do not take effect: %v, filled in %v", err, has)
		}
	}
}
