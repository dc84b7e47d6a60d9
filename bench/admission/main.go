// What holding pods to declared rules costs an API server: the wall time of creating pods with the chart's admission policies against the
// same without them, in alternating pairs. README.md in this folder says what is measured; bench/admission/run.sh builds and calls this from
// the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

type options struct {
	pairs, pods, keys, workers int
	short                      bool
	profiles, version          string
	output                     kit.Output
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("admission", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "100 pods, 1 pair; no verdict is taken from it")
	flags.IntVar(&o.pairs, "pairs", 7, "pairs of servers, one that enforces and one that does not")
	flags.IntVar(&o.pods, "pods", 2000, "pods a run creates")
	flags.IntVar(&o.keys, "keys", 500, "declared keys")
	flags.IntVar(&o.workers, "workers", 4, "clients that create at the same time")
	flags.StringVar(&o.version, "k8s", "", "Kubernetes version, of those that ./dev cluster knows; the newest if empty")
	flags.StringVar(&o.profiles, "profiles", "", "folder for CPU profiles of the API server (go tool pprof), one for each life of pods; figures taken with it are dearer")
	o.output.Flags(flags)
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		return o, kit.SetDefaults(flags, map[string]string{"pairs": "1", "pods": "100"})
	}
	return o, nil
}

// kinds of pods: what they name decides how far the policies go with them.
var kinds = []struct {
	name   string
	limits map[string]string
	filled string // must be there afterwards
	bare   bool   // made by a person, not by a controller
	target float64
}{
	{"no declared key", map[string]string{"example.org/undeclared": "1"}, "", false, 1.15},
	{"two declared keys, complete", map[string]string{"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "40"}, "", false, 1.15},
	{"two declared keys, complete, made by a person", map[string]string{"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "40"}, "", true, 0},
	{"one declared key, another is filled in", map[string]string{"tencent.com/vcuda-core": "30"}, "tencent.com/vcuda-memory", false, 1.15},
}

func main() { kit.Main(os.Args[1:], parse, run) }

// side is one server's figures, a Series for each kind of pod.
type side map[string]figures.Series

func run(ctx context.Context, o options) error {
	before := kit.LoadAverage()
	ours, peer := side{}, side{}
	for _, kind := range kinds {
		ours[kind.name], peer[kind.name] = figures.Series{}, figures.Series{}
	}
	for _, life := range lives {
		for _, keys := range sizes(o) {
			ours[row(life.name, keys)], peer[row(life.name, keys)] = figures.Series{}, figures.Series{}
		}
	}
	for round := range o.pairs {
		for _, enforced := range []bool{round%2 == 0, round%2 != 0} {
			into := peer
			if enforced {
				into = ours
			}
			if err := measure(ctx, o, round, enforced, into); err != nil {
				return err
			}
		}
	}
	var rows []figures.Row
	for _, kind := range kinds {
		rows = append(rows, figures.Compare("wall, "+kind.name, "ms", kind.target, ours[kind.name], peer[kind.name], "wall"),
			figures.Compare("API server CPU a pod, "+kind.name, "us", 0, ours[kind.name], peer[kind.name], "cpu"))
	}
	for _, life := range lives {
		for _, keys := range sizes(o) {
			name, target := row(life.name, keys), life.target
			if keys != usual {
				target = 0
			}
			rows = append(rows, figures.Compare("API server CPU a life, "+name, "us", target, ours[name], peer[name], "cpu"))
		}
	}
	fmt.Printf("\nadmission: %d pods of each kind, %d at a time, %d declared keys, %d pairs; peer is a server without the policies\n", o.pods, o.workers, o.keys, o.pairs)
	fmt.Printf("load average before: %s, at the end: %s\n\n", before, kit.LoadAverage())
	form := figures.FormOf("short", o.short)
	form.Unjudge(rows)
	form.Report(rows, "targets")
	return o.output.Write("admission", "full", rows)
}

// measure takes one new server through every kind of pod.
func measure(ctx context.Context, o options, round int, enforced bool, into side) error {
	c, err := clusterUp(ctx, o.version)
	if err != nil {
		return err
	}
	defer c.Down(false)
	if err := c.install(ctx, o.keys, enforced); err != nil {
		return err
	}
	warm := o
	warm.pods = min(o.pods, 300)
	for _, kind := range kinds { // caches, connections and compiled expressions
		if _, _, err := c.create(ctx, warm, "warm", kind.limits, kind.bare, enforced, kind.filled); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	what := "none"
	if enforced {
		what = "enforced"
	}
	for i := range kinds {
		kind := kinds[(i+round/2)%len(kinds)]
		wall, cpu, err := c.create(ctx, o, "bench", kind.limits, kind.bare, enforced, kind.filled)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		kit.Say("round %d, %s, %s: %.0f ms, API server CPU %.0f ms", round, what, kind.name, kit.Milliseconds(wall), kit.Milliseconds(cpu))
		into[kind.name].Add("wall", kit.Milliseconds(wall))
		into[kind.name].Add("cpu", kit.Milliseconds(cpu)*1000/float64(o.pods))
	}
	if err := c.settled(ctx); err != nil {
		return err
	}
	for _, keys := range sizes(o) {
		if err := c.declare(ctx, keys, enforced); err != nil {
			return err
		}
		if err := measureLives(ctx, o, c, round, keys, what, into); err != nil {
			return err
		}
	}
	return nil
}

// measureLives of each kind, after some that are not counted.
func measureLives(ctx context.Context, o options, c *cluster, round, keys int, what string, into side) error {
	o.pods = min(o.pods, 500)
	for _, prefix := range []string{"warm", "bench"} {
		for i := range lives {
			life := lives[(i+round)%len(lives)]
			name := row(life.name, keys)
			stop := func() error { return nil }
			if o.profiles != "" && prefix == "bench" {
				stop = c.profile(ctx, filepath.Join(o.profiles, fmt.Sprintf("%s, %s, %d.pprof", name, what, round)))
			}
			cpu, err := c.live(ctx, o, prefix, life.limits)
			if err = errors.Join(err, stop()); err != nil {
				return fmt.Errorf("life of %s: %w", name, err)
			}
			if prefix == "warm" {
				continue
			}
			kit.Say("round %d, %s, life of %s: API server CPU %.0f us", round, what, name, kit.Milliseconds(cpu)*1000)
			into[name].Add("cpu", kit.Milliseconds(cpu)*1000)
		}
	}
	return nil
}

// create makes the pods; they stay, as deleting them is work too, of which some would fall into the next measurement.
func (c *cluster) create(ctx context.Context, o options, prefix string, limits map[string]string, bare, enforced bool, filled string) (wall, cpu time.Duration, err error) {
	pods := make([]*corev1.Pod, o.pods)
	c.made++
	for i := range pods {
		pods[i] = podOf(i, limits, bare)
		pods[i].Name = fmt.Sprintf("%s-%d-%s", prefix, c.made, pods[i].Name)
	}
	if !o.short {
		if err := c.settle(ctx); err != nil {
			return 0, 0, err
		}
	}
	rand.New(rand.NewSource(1)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	cpuBefore, err := kit.CPU(c.PID("kube-apiserver"))
	if err != nil {
		return 0, 0, err
	}
	api := c.Client.CoreV1().Pods(namespace)
	began := time.Now()
	failed := kit.Each(len(pods), o.workers, func(i int) error {
		made, err := api.Create(ctx, pods[i], metav1.CreateOptions{})
		if err == nil && enforced && filled != "" {
			if _, there := made.Spec.Containers[0].Resources.Limits[corev1.ResourceName(filled)]; !there {
				err = fmt.Errorf("%s was not filled in", filled)
			}
		}
		return err
	})
	wall = time.Since(began)
	cpuAfter, err := kit.CPU(c.PID("kube-apiserver"))
	if err = errors.Join(failed, err); err != nil {
		return 0, 0, err
	}
	return wall, cpuAfter - cpuBefore, nil
}

// podOf is a pod as people run them (bench/sync/load), before it is bound, with these limits in its first container. A bare one has no owner,
// nor the labels by which controllers know theirs.
func podOf(i int, limits map[string]string, bare bool) *corev1.Pod {
	full := load.Pod(1, i, 1, 20)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: full.Name, Labels: full.Labels, Annotations: full.Annotations, OwnerReferences: full.OwnerReferences}, Spec: full.Spec}
	if bare {
		pod.OwnerReferences = nil
		delete(pod.Labels, "pod-template-hash")
	}
	pod.Spec.NodeName, pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = "", "", nil, nil
	of := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}
	for key, amount := range limits {
		of[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: of}
	return pod
}
