package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const switchingTaint = "quartermaster.io/switching"

// nodes brings the module label of every node to what the person's label asks for.
type nodes struct {
	client.Client
	events events.EventRecorder
	scheme *runtime.Scheme
	taints bool // taint first, label in a second step
}

// trimmed drops, before the cache, what no reconciler reads: a node is 21 KB, and most of it is images, annotations and managed fields.
func trimmed(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Status = corev1.NodeStatus{Allocatable: node.Status.Allocatable, Conditions: slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type != corev1.NodeReady
	}), NodeInfo: corev1.NodeSystemInfo{Architecture: node.Status.NodeInfo.Architecture}}
	return node, nil
}

func (r *nodes) register(manager ctrl.Manager) error {
	relevant := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
		return !maps.Equal(before.Labels, after.Labels) || tainted(before) != tainted(after) || ready(before) != ready(after)
	}}
	return ctrl.NewControllerManagedBy(manager).For(&corev1.Node{}, builder.WithPredicates(relevant)).
		Owns(&AcceleratorNode{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(r)
}

func tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == switchingTaint })
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// wanted is the module the node asks for, "" for none, or what is wrong with the request.
func wanted(node *corev1.Node) (module, problem string) {
	label, there := node.Labels[productLabel]
	if !there {
		return "", ""
	}
	known, ok := modules[strings.ToLower(label)]
	if !ok {
		return "", fmt.Sprintf("%s=%s is unknown; allowed: %s", productLabel, label, strings.Join(slices.Sorted(maps.Keys(modules)), ", "))
	}
	if !slices.Contains(known.architectures, node.Status.NodeInfo.Architecture) {
		return "", fmt.Sprintf("mode %s has no image for %s", known.name, node.Status.NodeInfo.Architecture)
	}
	if cut := node.Labels["nvidia.com/mig.strategy"]; known.wholeCards && cut != "" && cut != "none" {
		return "", fmt.Sprintf("mode %s does not work with cards cut by MIG (nvidia.com/mig.strategy=%s); turn MIG off", known.name, cut)
	}
	return known.name, ""
}

func (r *nodes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	module, problem := wanted(node)
	current := node.Labels[moduleLabel]
	if problem != "" {
		said, err := r.say(ctx, node, AcceleratorNodeStatus{RequestedMode: node.Labels[productLabel], ActualMode: orNone(current), Phase: "Refused", Reason: "BadRequest", Message: problem})
		if said && err == nil {
			r.events.Eventf(node, nil, corev1.EventTypeWarning, "BadRequest", "Enrol", "%s", problem)
		}
		return ctrl.Result{}, err
	}
	if module == current {
		if module == "" {
			return ctrl.Result{}, nil
		}
		_, err := r.say(ctx, node, enrolled(module))
		return ctrl.Result{}, err
	}
	if !ready(node) {
		return ctrl.Result{}, nil // its next change comes with the watch
	}
	if r.taints && current != "" && !tainted(node) {
		if err := r.patch(ctx, node, func() {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: switchingTaint, Value: current + "." + module, Effect: corev1.TaintEffectNoSchedule})
		}); err != nil {
			return ctrl.Result{}, err
		}
		note := fmt.Sprintf("no new pods come here while the node changes from %s to %s", current, module)
		_, err := r.say(ctx, node, AcceleratorNodeStatus{RequestedMode: module, ActualMode: current, Phase: "Draining", Reason: "Begun", Message: note})
		r.events.Eventf(node, nil, corev1.EventTypeNormal, "Begun", "Enrol", "%s", note)
		return ctrl.Result{}, err
	}
	if err := r.patch(ctx, node, func() {
		if module == "" {
			delete(node.Labels, moduleLabel)
		} else {
			node.Labels[moduleLabel] = module
		}
	}); err != nil {
		return ctrl.Result{}, err
	}
	_, err := r.say(ctx, node, enrolled(module))
	if !r.taints || current == "" {
		r.events.Eventf(node, nil, corev1.EventTypeNormal, "Enrolled", "Enrol", "mode %s", orNone(module))
	}
	return ctrl.Result{}, err
}

// patch sends what `change` changes, and only if the node is as we know it.
func (r *nodes) patch(ctx context.Context, node *corev1.Node, change func()) error {
	before := node.DeepCopy()
	change()
	return r.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func enrolled(module string) AcceleratorNodeStatus {
	return AcceleratorNodeStatus{RequestedMode: orNone(module), ActualMode: orNone(module), Phase: "Ready", Reason: "Enrolled", Message: "the node has the label of mode " + orNone(module)}
}

func orNone(module string) string {
	if module == "" {
		return "none"
	}
	return module
}

// say brings AcceleratorNode.status to `now`; false where it says so already.
func (r *nodes) say(ctx context.Context, node *corev1.Node, now AcceleratorNodeStatus) (bool, error) {
	object := &AcceleratorNode{}
	err := r.Get(ctx, client.ObjectKeyFromObject(node), object)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err != nil {
		object = &AcceleratorNode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: map[string]string{managedBy: owner}}}
		if err := controllerutil.SetControllerReference(node, object, r.scheme); err != nil {
			return false, err
		}
		if err := r.Create(ctx, object); err != nil {
			return false, err
		}
	}
	now.Since = object.Status.Since
	if now == object.Status {
		return false, nil
	}
	if now.Phase != object.Status.Phase || now.RequestedMode != object.Status.RequestedMode {
		now.Since = time.Now().UTC().Format(time.RFC3339)
	}
	before := object.DeepCopy()
	object.Status = now
	return true, r.Status().Patch(ctx, object, client.MergeFrom(before))
}
