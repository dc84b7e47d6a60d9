package main

import (
	"sort"

	corev1 "k8s.io/api/core/v1"
)

// words are the keys of one mode. A container that asks in them gets `need`s.
type words struct {
	whole, slot, replica, cores, memory, percent, cards string
	unitMiB                                             int64
}

var vocabularies = map[string]words{
	"pgpu":     {whole: "nvidia.com/gpu"},
	"share":    {replica: "nvidia.com/gpu.shared"},
	"vgpu":     {cores: "tencent.com/vcuda-core", memory: "tencent.com/vcuda-memory", unitMiB: 256},
	"mps":      {cores: "nvidia.com/mps-core", memory: "nvidia.com/mps-memory", unitMiB: 1024},
	"hami":     {slot: "nvidia.com/gpualloc", cores: "nvidia.com/gpucores", memory: "nvidia.com/gpumem", percent: "nvidia.com/gpumem-percentage", unitMiB: 1},
	"hami-gpu": {slot: "nvidia.com/gpu", cores: "nvidia.com/gpucores", memory: "nvidia.com/gpumem", percent: "nvidia.com/gpumem-percentage", unitMiB: 1},
	"gpushare": {memory: "aliyun.com/gpu-mem", cards: "aliyun.com/gpu-count", cores: "aliyun.com/gpu-core.percentage", unitMiB: 1024},
}

// otherWords are known too: no node of these vocabularies' own serves them here, or they only go with others.
var otherWords = []string{"nvidia.com/priority", "tencent.com/vcuda-core-limit"}

var knownKeys = func() map[corev1.ResourceName]bool {
	all := map[corev1.ResourceName]bool{}
	for _, w := range vocabularies {
		for _, key := range []string{w.whole, w.slot, w.replica, w.cores, w.memory, w.percent, w.cards} {
			if key != "" {
				all[corev1.ResourceName(key)] = true
			}
		}
	}
	for _, key := range otherWords {
		all[corev1.ResourceName(key)] = true
	}
	return all
}()

// need is what one container asks of cards: so many whole ones, or so many equal shares.
type need struct {
	container     string
	index         int // of the container in spec.containers, -1 for a sidecar
	cards         int
	whole         bool
	anyCard       bool // replicas may lie on one card
	cores         int64
	memoryMiB     int64
	memoryPercent int64
}

func (n need) memoryOn(card *card) int64 {
	if n.memoryPercent > 0 {
		return card.memoryMiB * n.memoryPercent / 100
	}
	return n.memoryMiB
}

type demand struct {
	needs   []need
	counts  map[string]int64
	refusal string // why it can never run in this mode; empty: it can
}

// asks: does the pod ask for anything we decide? Declared keys are those the tables do not know.
func asks(pod *corev1.Pod, declared map[string]bool) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for key, amount := range containers[i].Resources.Limits {
				if (knownKeys[key] || declared[string(key)]) && !amount.IsZero() {
					return true
				}
			}
		}
	}
	return false
}

// demandOf reads a pod for nodes of one mode.
func demandOf(pod *corev1.Pod, mode string, declared map[string]bool) demand {
	out := demand{counts: map[string]int64{}}
	read := func(c *corev1.Container, index int) {
		if out.refusal != "" {
			return
		}
		n, refusal := needOf(c, mode, declared, out.counts)
		if out.refusal = refusal; n.cards > 0 {
			n.container, n.index = c.Name, index
			out.needs = append(out.needs, n)
		}
	}
	for i := range pod.Spec.InitContainers { // only sidecars run in parallel with the others
		if always := pod.Spec.InitContainers[i].RestartPolicy; always != nil && *always == corev1.ContainerRestartPolicyAlways {
			read(&pod.Spec.InitContainers[i], -1)
		}
	}
	for i := range pod.Spec.Containers {
		read(&pod.Spec.Containers[i], i)
	}
	// Whole cards first, then the largest shares: what is hardest to place has the most choice.
	sort.SliceStable(out.needs, func(i, j int) bool {
		a, b := out.needs[i], out.needs[j]
		if a.whole != b.whole {
			return a.whole
		}
		if a.memoryMiB != b.memoryMiB {
			return a.memoryMiB > b.memoryMiB
		}
		return a.cores > b.cores
	})
	return out
}

func needOf(c *corev1.Container, mode string, declared map[string]bool, counts map[string]int64) (n need, refusal string) {
	w := vocabularies[mode]
	said := map[string]int64{}
	for key, amount := range c.Resources.Limits {
		value, name := amount.Value(), string(key)
		switch {
		case value == 0:
		case name == w.whole || name == w.slot || name == w.replica || name == w.cores || name == w.memory || name == w.percent || name == w.cards:
			said[name] = value
		case knownKeys[key]:
			return n, "request not served by this node's mode"
		case declared[name]:
			counts[name] += value
		}
	}
	if len(said) == 0 {
		return n, ""
	}
	switch {
	case w.whole != "":
		return need{cards: int(said[w.whole]), whole: true}, ""
	case w.replica != "":
		return need{cards: int(said[w.replica]), anyCard: true}, ""
	case w.slot != "":
		n = need{cards: int(max(said[w.slot], 1)), cores: said[w.cores], memoryMiB: said[w.memory], memoryPercent: said[w.percent]}
		if n.memoryMiB > 0 {
			n.memoryPercent = 0
		} else if n.memoryPercent == 0 {
			n.memoryPercent = 100
		}
		if n.cores > 100 || n.memoryPercent > 100 {
			return need{}, "request not valid on this node"
		}
	case w.cards != "":
		n = need{cards: int(max(said[w.cards], 1)), cores: said[w.cores]}
		total := said[w.memory]
		if total == 0 || total%int64(n.cards) != 0 || (n.cards > 1 && n.cores > 0) || n.cores%5 != 0 {
			return need{}, "request not valid on this node"
		}
		n.memoryMiB = total / int64(n.cards) * w.unitMiB
	default:
		switch cores := said[w.cores]; {
		case cores >= 100 && cores%100 == 0:
			return need{cards: int(cores / 100), whole: true}, ""
		case cores <= 0 || cores > 100 || said[w.memory] == 0:
			return need{}, "request not valid on this node"
		default:
			n = need{cards: 1, cores: cores, memoryMiB: said[w.memory] * w.unitMiB}
		}
	}
	return n, ""
}
