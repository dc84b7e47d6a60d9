package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	moduleLabel  = "quartermaster.io/module"
	cordonKey    = "quartermaster.io/cordon"
	placementKey = "quartermaster.io/placement"
	registerKey  = "hami.io/node-nvidia-register"
)

type card struct {
	id, model  string
	memoryMiB  int64
	maxSharers int
	usable     bool
}

type cardUse struct {
	cores, memoryMiB int64
	sharers, wholes  int
}

// node is what is known of a node and what is given out of it. The ledger's lock guards it.
type node struct {
	name   string
	mode   string
	cards  []card
	used   []cardUse
	counts map[string]int64 // allocatable of keys that are plain counts
	taken  map[string]int64
}

// nodeOf reads a Node: which mode, which cards.
func nodeOf(from *corev1.Node) *node {
	n := &node{name: from.Name, counts: map[string]int64{}, taken: map[string]int64{}, mode: modeOf(from)}
	n.cards = cardsOf(from, n.mode)
	n.used = make([]cardUse, len(n.cards))
	for key, amount := range from.Status.Allocatable {
		if strings.Contains(string(key), "/") && !knownKeys[key] {
			n.counts[string(key)] = amount.Value()
		}
	}
	return n
}

// modeOf: what serves the node, and for HAMi by which name of its slots, which is configurable.
func modeOf(from *corev1.Node) string {
	mode := servedBy(from)
	if slots := from.Status.Allocatable["nvidia.com/gpualloc"]; mode == "hami" && slots.IsZero() {
		return "hami-gpu"
	}
	return mode
}

func servedBy(from *corev1.Node) string {
	if mode := from.Labels[moduleLabel]; mode != "" {
		return mode
	}
	for _, one := range []struct{ key, mode string }{{"tencent.com/vcuda-core", "vgpu"}, {"nvidia.com/mps-core", "mps"}, {"aliyun.com/gpu-mem", "gpushare"},
		{"nvidia.com/gpualloc", "hami"}, {"nvidia.com/gpu.shared", "share"}, {"nvidia.com/gpu", "pgpu"}} {
		if amount, there := from.Status.Allocatable[corev1.ResourceName(one.key)]; there && !amount.IsZero() {
			if one.mode == "pgpu" && from.Annotations[registerKey] != "" {
				return "hami"
			}
			return one.mode
		}
	}
	return ""
}

func cardsOf(from *corev1.Node, mode string) (out []card) {
	cordoned := strings.Split(from.Annotations[cordonKey], ",")
	defer func() {
		for i := range out {
			out[i].usable = out[i].usable && !slices.Contains(cordoned, out[i].id)
		}
	}()
	if text := from.Annotations[registerKey]; text != "" {
		var registered []struct {
			ID, Type      string
			Count, Devmem int64
			Health        bool
		}
		if json.Unmarshal([]byte(text), &registered) == nil {
			for _, r := range registered {
				out = append(out, card{r.ID, r.Type, r.Devmem, int(r.Count), r.Health})
			}
			return out
		}
	}
	amount := func(key string) int64 { q := from.Status.Allocatable[corev1.ResourceName(key)]; return q.Value() }
	count, _ := strconv.ParseInt(from.Labels["nvidia.com/gpu.count"], 10, 64)
	memory, _ := strconv.ParseInt(from.Labels["nvidia.com/gpu.memory"], 10, 64)
	w := vocabularies[mode]
	if count == 0 {
		switch {
		case w.whole != "":
			count = amount(w.whole)
		case w.cards != "":
			count = amount(w.cards)
		case w.cores != "":
			count = amount(w.cores) / 100
		}
	}
	if memory == 0 && count > 0 && w.memory != "" {
		memory = amount(w.memory) * w.unitMiB / count
	}
	for i := range count {
		out = append(out, card{fmt.Sprintf("%s/%d", from.Name, i), from.Labels["nvidia.com/gpu.product"], memory, 16, true})
	}
	return out
}
