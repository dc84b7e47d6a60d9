package load

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Mode of a node with cards: what it advertises for a card, what a pod there asks for, and how that lies on a card.
type Mode struct {
	Name   string
	Offer  map[string]int64
	Limits map[string]string
	Share  map[string]any
}

// Amounts that so many cards are advertised as.
func (m Mode) Amounts(cards int) corev1.ResourceList {
	out := corev1.ResourceList{}
	for key, amount := range m.Offer {
		out[corev1.ResourceName(key)] = *resource.NewQuantity(amount*int64(cards), resource.DecimalSI)
	}
	return out
}

// Advertise so many cards on a node, in place of what it has.
func (m Mode) Advertise(node *corev1.Node, cards int) {
	node.Labels["nvidia.com/gpu.count"], node.Labels["nvidia.com/mig.strategy"] = fmt.Sprint(cards), "none"
	for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		delete(list, "nvidia.com/gpu")
		for key, amount := range m.Amounts(cards) {
			list[key] = amount
		}
	}
}

// Place a pod, which asks for what pods of the mode do, on a card of a node.
func (m Mode) Place(pod *corev1.Pod, node string, card int) {
	pod.Spec.NodeName = node
	limits := corev1.ResourceList{"cpu": resource.MustParse("1")}
	for key, amount := range m.Limits {
		limits[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	main := &pod.Spec.Containers[0]
	main.Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits}
	share := map[string]any{"card": fmt.Sprintf("%s/%d", node, card)}
	for key, value := range m.Share {
		share[key] = value
	}
	text, err := json.Marshal(map[string]any{"v": 1, "node": node, "source": "planned", "containers": map[string]any{main.Name: []any{share}}})
	if err != nil {
		panic(err)
	}
	pod.Annotations["quartermaster.io/placement"] = string(text)
}
