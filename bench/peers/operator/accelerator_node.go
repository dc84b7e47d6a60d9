package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AcceleratorNode is our CRD of that name, with the fields this operator writes: the server does the same for both sides.
type AcceleratorNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            AcceleratorNodeStatus `json:"status,omitempty"`
}

type AcceleratorNodeStatus struct {
	RequestedMode string `json:"requestedMode,omitempty"`
	ActualMode    string `json:"actualMode,omitempty"`
	Phase         string `json:"phase,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Message       string `json:"message,omitempty"`
	Since         string `json:"since,omitempty"`
}

type AcceleratorNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AcceleratorNode `json:"items"`
}

func (n *AcceleratorNode) DeepCopy() *AcceleratorNode {
	out := &AcceleratorNode{TypeMeta: n.TypeMeta, Status: n.Status}
	n.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

func (n *AcceleratorNode) DeepCopyObject() runtime.Object { return n.DeepCopy() }

func (l *AcceleratorNodeList) DeepCopyObject() runtime.Object {
	out := &AcceleratorNodeList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

func addAcceleratorNodes(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "quartermaster.io", Version: "v1alpha1"}
	scheme.AddKnownTypes(version, &AcceleratorNode{}, &AcceleratorNodeList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}
