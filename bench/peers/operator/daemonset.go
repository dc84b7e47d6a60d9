package main

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

type module struct {
	name, image   string
	architectures []string
	wholeCards    bool // not with MIG
}

// modules by the value of the person's label.
var modules = map[string]module{
	"pgpu": {"pgpu", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", []string{"amd64", "arm64"}, false},
	"vgpu": {"vgpu", "tkestack/gpu-manager:v1.1.5", []string{"amd64"}, true},
	"mps":  {"mps", "quartermaster/mps-device-plugin:simulated", []string{"amd64"}, true},
}

// daemonSets keeps the DaemonSet of each module: made at the start, fixed when someone changes or deletes it.
type daemonSets struct{ client.Client }

const setPrefix = "peer-"

func (r *daemonSets) register(m ctrl.Manager) error {
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, of := range modules {
			if err := r.ensure(ctx, of); err != nil {
				return err
			}
		}
		return nil
	})); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).For(&appsv1.DaemonSet{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(r)
}

func (r *daemonSets) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	of, known := modules[strings.TrimPrefix(request.Name, setPrefix)]
	if !known {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.ensure(ctx, of)
}

func (r *daemonSets) ensure(ctx context.Context, of module) error {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: setPrefix + of.name, Namespace: namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, set, func() error {
		on := map[string]string{moduleLabel: of.name}
		set.Labels = map[string]string{managedBy: owner, moduleLabel: of.name}
		if set.CreationTimestamp.IsZero() {
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: on}
			set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "plugin"}}
		}
		set.Spec.Template.Labels = on
		set.Spec.Template.Spec.NodeSelector = on
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		set.Spec.Template.Spec.Containers[0].Image = of.image
		return nil
	})
	return err
}
