package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ModeMoment is one change of a node or of a pod, as the API server ordered it: versions of one etcd can be compared across resources,
// so nodes and pods are put into the order in which they really changed, whatever the two watches' lag was.
type ModeMoment struct {
	Version uint64
	Gone    bool
	Node    *NodeSeen
	Pod     *PodSeen
}

// NodeSeen is what counts of a node in a change of modes.
type NodeSeen struct {
	Name, Module string
	UID          types.UID
	Tainted      bool
}

// PodSeen is a pod on a node. Module: of a plugin, else empty. Holds: the mode whose cards the pod asks for.
type PodSeen struct {
	Name, Node, Module, Holds string
	UID                       types.UID
	Leaving                   bool
}

// ModeHistory collects moments from watches, in any order.
type ModeHistory struct {
	Units map[string]string // module -> a resource that pods of it ask for

	mu      sync.Mutex
	moments []ModeMoment
}

// Note takes an object of a watch in; others than nodes and pods on nodes are left out.
func (h *ModeHistory) Note(object any, gone bool) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return
	}
	version, _ := strconv.ParseUint(meta.GetResourceVersion(), 10, 64)
	m := ModeMoment{Version: version, Gone: gone}
	switch o := object.(type) {
	case *corev1.Node:
		m.Node = &NodeSeen{Name: o.Name, Module: o.Labels[ModuleLabel], UID: o.UID, Tainted: slices.ContainsFunc(o.Spec.Taints,
			func(t corev1.Taint) bool { return t.Key == SwitchingTaint })}
	case *corev1.Pod:
		if o.Spec.NodeName == "" {
			return
		}
		m.Pod = &PodSeen{Name: o.Namespace + "/" + o.Name, Node: o.Spec.NodeName, UID: o.UID, Leaving: o.DeletionTimestamp != nil}
		if o.Namespace == Namespace {
			m.Pod.Module = o.Labels[ModuleLabel]
		}
		for module, unit := range h.Units {
			for _, c := range o.Spec.Containers {
				if _, asks := c.Resources.Limits[corev1.ResourceName(unit)]; asks {
					m.Pod.Holds = module
				}
			}
		}
	default:
		return
	}
	h.mu.Lock()
	h.moments = append(h.moments, m)
	h.mu.Unlock()
}

// Moments is a copy of what has been noted so far.
func (h *ModeHistory) Moments() []ModeMoment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.moments)
}

// ModeRules are the exceptions of one test. Both may be nil.
type ModeRules struct {
	// MayLeaveQuietly: this node had no mode before, so a plugin may still be there without a label and a taint until it is taken away.
	MayLeaveQuietly func(node string) bool
	// MayEnd: someone has asked for the end of this pod, or of its node.
	MayEnd func(pod string) bool
}

// ModeFaults replays a history and says what must never have been, at no version at all: plugins of two modules on a node; a plugin that no one
// deletes on a node that is neither labelled for it nor tainted; a node that leaves a mode while a pod has cards of it; a pod that is deleted
// though no one asked.
func ModeFaults(moments []ModeMoment, rules ModeRules) (wrong []string) {
	moments = slices.Clone(moments)
	slices.SortStableFunc(moments, func(a, b ModeMoment) int { return cmp.Compare(a.Version, b.Version) })
	nodes := map[string]NodeSeen{}
	plugins := map[string]map[types.UID]PodSeen{}
	holders := map[string]map[types.UID]PodSeen{}
	lost := map[types.UID]bool{}
	for _, m := range moments {
		var at string
		switch {
		case m.Node != nil:
			at = m.Node.Name
			was := nodes[at]
			for _, p := range holders[at] {
				if !m.Gone && was.UID == m.Node.UID && was.Module == p.Holds && m.Node.Module != p.Holds {
					wrong = append(wrong, fmt.Sprintf("version %d: node %s leaves mode %s, of which pod %s has cards", m.Version, at, p.Holds, p.Name))
				}
			}
			if !m.Gone {
				nodes[at] = *m.Node
			} else if nodes[at].UID == m.Node.UID {
				delete(nodes, at)
			}
		case m.Pod.Module == "":
			if holders[m.Pod.Node] == nil {
				holders[m.Pod.Node] = map[types.UID]PodSeen{}
			}
			delete(holders[m.Pod.Node], m.Pod.UID)
			if m.Pod.Holds != "" && !m.Gone && !m.Pod.Leaving {
				holders[m.Pod.Node][m.Pod.UID] = *m.Pod
			}
			if (m.Gone || m.Pod.Leaving) && !lost[m.Pod.UID] && (rules.MayEnd == nil || !rules.MayEnd(m.Pod.Name)) {
				lost[m.Pod.UID] = true
				wrong = append(wrong, fmt.Sprintf("version %d: pod %s on node %s was taken away though no one asked", m.Version, m.Pod.Name, m.Pod.Node))
			}
			continue
		default:
			at = m.Pod.Node
			if plugins[at] == nil {
				plugins[at] = map[types.UID]PodSeen{}
			}
			delete(plugins[at], m.Pod.UID)
			if !m.Gone {
				plugins[at][m.Pod.UID] = *m.Pod
			}
		}
		wrong = append(wrong, badNode(m.Version, at, nodes, plugins[at], rules)...)
	}
	return
}

func badNode(version uint64, name string, nodes map[string]NodeSeen, plugins map[types.UID]PodSeen, rules ModeRules) (wrong []string) {
	modules := map[string]string{}
	for _, p := range plugins {
		modules[p.Module] = p.Name
	}
	if len(modules) > 1 {
		var names []string
		for module, pod := range modules {
			names = append(names, module+" ("+pod+")")
		}
		slices.Sort(names)
		wrong = append(wrong, fmt.Sprintf("version %d: plugins of %d modules on node %s: %s", version, len(modules), name, strings.Join(names, ", ")))
	}
	node, there := nodes[name]
	for _, p := range plugins {
		quiet := node.Module == "" && rules.MayLeaveQuietly != nil && rules.MayLeaveQuietly(name)
		if there && !p.Leaving && !node.Tainted && node.Module != p.Module && !quiet {
			wrong = append(wrong, fmt.Sprintf("version %d: plugin pod %s of %s on node %s, which has module label %q and no taint", version, p.Name, p.Module, name, node.Module))
		}
	}
	return
}
