// A node operator as a Go team would write it with controller-runtime: the person's label on a Node is validated and becomes the label that
// the DaemonSets of three modules select; AcceleratorNode says so. It is our enrolment reduced to that: no drain, no waiting for the old
// plugin, no verification, no way back. README.md in this folder says what both sides do.
//
//	-steps one   label, status, event (what "reduced" means)
//	-steps two   as many writes as ours makes where there is nothing to drain: taint and status, then label and status, and an event
//
// Go's collector runs as it comes. Pinned to one core, GOMAXPROCS is 1 by itself.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace    = "default"
	productLabel = "nvidia-device-enable"
	moduleLabel  = "quartermaster.io/module"
	managedBy    = "app.kubernetes.io/managed-by"
	owner        = "peer-operator"
)

func main() {
	metrics := flag.String("metrics-address", ":8080", "host:port of /metrics")
	probes := flag.String("health-address", ":8081", "host:port of /healthz and /readyz")
	steps := flag.String("steps", "one", "one or two: patches of the node a change of mode takes")
	flag.Parse() // controller-runtime adds -kubeconfig
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(*metrics, *probes, *steps); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(metrics, probes, steps string) error {
	if steps != "one" && steps != "two" {
		return fmt.Errorf("-steps is %q; allowed: one, two", steps)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addAcceleratorNodes} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.UserAgent = owner
	mine := labels.SelectorFromSet(labels.Set{managedBy: owner})
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, LeaderElection: true, LeaderElectionID: owner, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
		Metrics: metricsserver.Options{BindAddress: metrics}, HealthProbeBindAddress: probes,
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:      {Transform: trimmed},
			&appsv1.DaemonSet{}: {Namespaces: map[string]cache.Config{namespace: {}}, Label: mine},
		}},
	})
	if err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := (&daemonSets{manager.GetClient()}).register(manager); err != nil {
		return err
	}
	n := &nodes{Client: manager.GetClient(), events: manager.GetEventRecorder(owner), scheme: scheme, taints: steps == "two"}
	if err := n.register(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
