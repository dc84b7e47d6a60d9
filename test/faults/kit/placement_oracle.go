package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// O2: who holds what, recomputed from API objects alone: Pods, Nodes and AcceleratorNodes. It is written from docs/engine.md, not from the
// code, and shares none with it.

// PlacementKey is the annotation a pod gets with its Binding.
const PlacementKey = "quartermaster.io/placement"

// Share is one card or a part of it, in that annotation.
type Share struct {
	Card      string `json:"card"`
	Whole     bool   `json:"whole"`
	Cores     int64  `json:"cores"`
	MemoryMiB int64  `json:"memoryMiB"`
}

// Placement is that annotation.
type Placement struct {
	V          int                `json:"v"`
	Node       string             `json:"node"`
	Source     string             `json:"source"`
	Containers map[string][]Share `json:"containers"`
	Counts     map[string]int64   `json:"counts"`
}

// PlacementOf a pod; nil where it has none.
func PlacementOf(pod *corev1.Pod) (*Placement, error) {
	text, there := pod.Annotations[PlacementKey]
	if !there {
		return nil, nil
	}
	out := &Placement{}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return nil, fmt.Errorf("pod %s/%s has the placement %q: %w", pod.Namespace, pod.Name, text, err)
	}
	return out, nil
}

// CardSeen is a card of a node; FleetNode is a node as far as cards go.
type CardSeen struct {
	Index     int
	MemoryMiB int64
	Usable    bool
}
type FleetNode struct {
	Mode   string
	Cards  map[string]CardSeen
	Counts map[string]int64 // allocatable of keys no vocabulary knows
	Offers map[string]bool  // keys the kubelet advertises
}

// speech is what each mode's keys mean; docs/engine.md has the table.
type speech struct {
	cards   []string // number of cards: whole ones, slots or seats
	whole   bool     // cards are given whole
	loose   bool     // seats may lie on one card
	cores   string
	memory  string
	percent string
	mib     int64
	byTotal bool // memory is the sum over the cards
}

var speeches = map[string]speech{
	"pgpu":     {cards: []string{"nvidia.com/gpu"}, whole: true},
	"share":    {cards: []string{"nvidia.com/gpu.shared", "nvidia.com/gpu"}, loose: true},
	"vgpu":     {cores: "tencent.com/vcuda-core", memory: "tencent.com/vcuda-memory", mib: 256},
	"mps":      {cores: "nvidia.com/mps-core", memory: "nvidia.com/mps-memory", mib: 1024},
	"hami":     {cards: []string{"nvidia.com/gpualloc", "nvidia.com/gpu"}, cores: "nvidia.com/gpucores", memory: "nvidia.com/gpumem", percent: "nvidia.com/gpumem-percentage", mib: 1},
	"gpushare": {cards: []string{"aliyun.com/gpu-count"}, cores: "aliyun.com/gpu-core.percentage", memory: "aliyun.com/gpu-mem", mib: 1024, byTotal: true},
}

var spoken = func() map[string]bool {
	all := map[string]bool{"nvidia.com/priority": true, "tencent.com/vcuda-core-limit": true}
	for _, s := range speeches {
		for _, key := range append([]string{s.cores, s.memory, s.percent}, s.cards...) {
			all[key] = key != ""
		}
	}
	return all
}()

// wanted is what a container asks for on a node of a mode: `cards` times the same.
type wanted struct {
	cards         int64
	whole, loose  bool
	cores         int64
	mib, percent  int64
	counts        map[string]int64
	notServedHere bool
}

func wantedOf(c *corev1.Container, mode string, declared map[string]bool) wanted {
	s, out := speeches[mode], wanted{counts: map[string]int64{}}
	get := func(key string) int64 { q := c.Resources.Limits[corev1.ResourceName(key)]; return q.Value() }
	own := map[string]bool{s.cores: true, s.memory: true, s.percent: true, "nvidia.com/priority": mode == "hami", "tencent.com/vcuda-core-limit": mode == "vgpu"}
	for _, key := range s.cards {
		own[key] = true
		if out.cards == 0 {
			out.cards = get(key)
		}
	}
	for key, amount := range c.Resources.Limits {
		switch name := string(key); {
		case amount.IsZero() || own[name]:
		case spoken[name]:
			out.notServedHere = true
		case declared[name]:
			out.counts[name] += amount.Value()
		}
	}
	out.whole, out.loose = s.whole, s.loose
	if s.whole || s.loose {
		return out
	}
	cores, memory, percent := get(s.cores), get(s.memory), int64(0)
	if s.percent != "" {
		percent = get(s.percent)
	}
	if cores+memory+percent+out.cards == 0 {
		return out
	}
	if mode == "vgpu" || mode == "mps" {
		if out.cards = 1; cores >= 100 {
			out.cards, out.whole = cores/100, true
			return out
		}
	}
	out.cards = max(out.cards, 1)
	out.cores, out.mib, out.percent = cores, memory*s.mib, percent
	if s.byTotal {
		out.mib /= out.cards
	}
	if mode == "hami" && memory > 0 {
		out.percent = 0
	} else if mode == "hami" && percent == 0 {
		out.percent = 100
	}
	return out
}

// running are the containers that hold cards at the same time.
func running(pod *corev1.Pod) (out []*corev1.Container) {
	for i := range pod.Spec.InitContainers {
		if p := pod.Spec.InitContainers[i].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			out = append(out, &pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return
}

// HamiRegisterKey is the annotation of a node in which HAMi's device plugin lists its cards.
const HamiRegisterKey = "hami.io/node-nvidia-register"

// HamiRegister is such a list; its cards are named <node>/<number>.
func HamiRegister(node, model string, cards, memoryMiB int64) string {
	var list []map[string]any
	for i := range cards {
		list = append(list, map[string]any{"id": fmt.Sprintf("%s/%d", node, i), "index": i, "count": 10, "devmem": memoryMiB, "devcore": 100, "type": model,
			"mode": "hami-core", "health": true})
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// FleetNodeOf reads a node; `accelerator` is its AcceleratorNode or nil.
func FleetNodeOf(n *corev1.Node, accelerator *unstructured.Unstructured) FleetNode {
	amount := func(key string) int64 { q := n.Status.Allocatable[corev1.ResourceName(key)]; return q.Value() }
	out := FleetNode{Mode: n.Labels[ModuleLabel], Cards: map[string]CardSeen{}, Counts: map[string]int64{}, Offers: map[string]bool{}}
	for key, q := range n.Status.Allocatable {
		out.Offers[string(key)] = !q.IsZero()
		if strings.Contains(string(key), "/") && !spoken[string(key)] {
			out.Counts[string(key)] = q.Value()
		}
	}
	registered := n.Annotations[HamiRegisterKey]
	for _, guess := range []struct{ key, mode string }{{"tencent.com/vcuda-core", "vgpu"}, {"nvidia.com/mps-core", "mps"}, {"aliyun.com/gpu-mem", "gpushare"},
		{"nvidia.com/gpualloc", "hami"}, {"nvidia.com/gpu.shared", "share"}, {"nvidia.com/gpu", "pgpu"}} {
		if out.Mode == "" && amount(guess.key) > 0 {
			if out.Mode = guess.mode; guess.mode == "pgpu" && registered != "" {
				out.Mode = "hami"
			}
		}
	}
	gone := strings.Split(n.Annotations["quartermaster.io/cordon"], ",")
	add := func(name string, card CardSeen) {
		card.Usable = card.Usable && !slices.Contains(gone, name)
		out.Cards[name] = card
	}
	if accelerator != nil {
		cards, _, _ := unstructured.NestedSlice(accelerator.Object, "status", "cards")
		for i, raw := range cards {
			c, _ := raw.(map[string]any)
			uuid, _ := c["uuid"].(string)
			memory, _ := c["memoryMiB"].(int64)
			health, _ := c["health"].(string)
			index, known := c["index"].(int64)
			if !known {
				index = int64(i)
			}
			add(uuid, CardSeen{int(index), memory, health == "" || strings.EqualFold(health, "healthy")})
		}
	}
	var hami []struct {
		ID     string `json:"id"`
		Index  int    `json:"index"`
		Devmem int64  `json:"devmem"`
		Health bool   `json:"health"`
	}
	if len(out.Cards) == 0 && registered != "" && json.Unmarshal([]byte(registered), &hami) == nil {
		for _, c := range hami {
			add(c.ID, CardSeen{c.Index, c.Devmem, c.Health})
		}
	}
	if len(out.Cards) > 0 || out.Mode == "hami" { // its plugin knows no others than those it has registered
		return out
	}
	count, _ := strconv.ParseInt(n.Labels["nvidia.com/gpu.count"], 10, 64)
	memory, _ := strconv.ParseInt(n.Labels["nvidia.com/gpu.memory"], 10, 64)
	s := speeches[out.Mode]
	if count == 0 && s.cores != "" && out.Mode != "gpushare" {
		count = amount(s.cores) / 100
	}
	for _, key := range s.cards {
		if count == 0 && out.Mode != "share" {
			count = amount(key)
		}
	}
	if memory == 0 && count > 0 && s.memory != "" {
		memory = amount(s.memory) * s.mib / count
	}
	for i := range count {
		add(fmt.Sprintf("%s/%d", n.Name, i), CardSeen{int(i), memory, true})
	}
	return out
}

type cardNow struct {
	cores, mib    int64
	shares, whole int
	alone         bool // a share of 100 cores lies on it
}

type podNow struct {
	name string
	text string
	node string
	has  *Placement
}

// PlacementBook replays what the API said, in the order of versions, and notes what must never have been. Nodes are to be known before
// pods that lie on them.
type PlacementBook struct {
	AtFilter bool // a placement may stand on a pod before it is bound: its scheduler binds by itself
	mu       sync.Mutex
	declared map[string]bool
	nodes    map[string]FleetNode
	pods     map[types.UID]*podNow
	waiting  map[types.UID]*corev1.Pod
	cards    map[string]map[string]*cardNow // node -> card
	counts   map[string]map[string]int64
	bound    map[types.UID]time.Time // when the first sight of its binding was
	born     map[types.UID]time.Time
	wrong    []string
	moments  int
}

// NewPlacementBook for these nodes; `declared` are the keys that are counted.
func NewPlacementBook(nodes []corev1.Node, accelerators []unstructured.Unstructured, declared ...string) *PlacementBook {
	b := &PlacementBook{declared: map[string]bool{}, nodes: map[string]FleetNode{}, pods: map[types.UID]*podNow{}, waiting: map[types.UID]*corev1.Pod{},
		cards: map[string]map[string]*cardNow{}, counts: map[string]map[string]int64{}, bound: map[types.UID]time.Time{}, born: map[types.UID]time.Time{}}
	for _, key := range declared {
		b.declared[key] = true
	}
	for i := range nodes {
		var of *unstructured.Unstructured
		for j := range accelerators {
			if accelerators[j].GetName() == nodes[i].Name {
				of = &accelerators[j]
			}
		}
		b.nodes[nodes[i].Name] = FleetNodeOf(&nodes[i], of)
	}
	return b
}

func (b *PlacementBook) say(format string, args ...any) {
	if len(b.wrong) < 200 {
		b.wrong = append(b.wrong, "O2 "+fmt.Sprintf(format, args...))
	}
}

// Wrong is what was found so far; Moments is how many changes were looked at.
func (b *PlacementBook) Wrong() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrong)
}
func (b *PlacementBook) Moments() int { b.mu.Lock(); defer b.mu.Unlock(); return b.moments }

// Bound says when the binding of a pod was first seen.
func (b *PlacementBook) Bound(uid types.UID) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, there := b.bound[uid]
	return at, there
}

// Holders are the pods that hold cards now.
func (b *PlacementBook) Holders() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pods {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return
}

// Waiting are the pods of the scheduler under test that are on no node.
func (b *PlacementBook) Waiting() (out []*corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.waiting))
}

// See takes one change in.
func (b *PlacementBook) See(pod *corev1.Pod, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moments++
	name := pod.Namespace + "/" + pod.Name
	if _, known := b.born[pod.UID]; !known {
		b.born[pod.UID] = time.Now()
	}
	delete(b.waiting, pod.UID)
	if gone || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		if p := b.pods[pod.UID]; p != nil {
			b.charge(p, -1)
			delete(b.pods, pod.UID)
		}
		return
	}
	text := pod.Annotations[PlacementKey]
	if pod.Spec.NodeName == "" {
		if text != "" && !b.AtFilter {
			b.say("pod %s is on no node and has the placement %s", name, text)
		}
		if pod.Spec.SchedulerName == SchedulerName {
			b.waiting[pod.UID] = pod.DeepCopy()
		}
		return
	}
	if _, seen := b.bound[pod.UID]; !seen {
		b.bound[pod.UID] = time.Now()
	}
	if before := b.pods[pod.UID]; before != nil {
		if before.text != text || before.node != pod.Spec.NodeName {
			b.say("pod %s has two placements: %s on %s, then %s on %s", name, before.text, before.node, text, pod.Spec.NodeName)
		}
		return
	}
	has, err := PlacementOf(pod)
	if err != nil {
		b.say("%v", err)
		return
	}
	on, known := b.nodes[pod.Spec.NodeName]
	if has == nil {
		if known && pod.Spec.SchedulerName == SchedulerName && b.asks(pod) {
			b.say("pod %s is on node %s without a placement", name, pod.Spec.NodeName)
		}
		return
	}
	if !known {
		b.say("pod %s is on node %s, which has no cards", name, pod.Spec.NodeName)
		return
	}
	if has.Node != pod.Spec.NodeName {
		b.say("pod %s is on node %s and its placement says %s", name, pod.Spec.NodeName, has.Node)
	}
	b.agrees(pod, has, on)
	p := &podNow{name, text, pod.Spec.NodeName, has}
	b.pods[pod.UID] = p
	b.charge(p, 1)
	b.judge(p, on)
}

func (b *PlacementBook) asks(pod *corev1.Pod) bool {
	for _, c := range running(pod) {
		for key, amount := range c.Resources.Limits {
			if !amount.IsZero() && (spoken[string(key)] || b.declared[string(key)]) {
				return true
			}
		}
	}
	return false
}

// agrees: the annotation gives what the limits say, no more and no less.
func (b *PlacementBook) agrees(pod *corev1.Pod, has *Placement, on FleetNode) {
	name := pod.Namespace + "/" + pod.Name
	counts, seen := map[string]int64{}, map[string]bool{}
	for _, c := range running(pod) {
		want, got := wantedOf(c, on.Mode, b.declared), has.Containers[c.Name]
		seen[c.Name] = true
		for key, amount := range want.counts {
			counts[key] += amount
		}
		if want.notServedHere {
			b.say("pod %s container %s asks in words that node %s, mode %s, does not know: %v", name, c.Name, has.Node, on.Mode, c.Resources.Limits)
			continue
		}
		if int64(len(got)) != want.cards {
			b.say("pod %s container %s asks for %d cards or parts of them and has %d: %+v", name, c.Name, want.cards, len(got), got)
			continue
		}
		distinct := map[string]bool{}
		for _, share := range got {
			card, there := on.Cards[share.Card]
			if !there {
				b.say("pod %s container %s has card %q, which node %s does not have", name, c.Name, share.Card, has.Node)
				continue
			}
			distinct[share.Card] = true
			memory, cores := want.mib, want.cores
			if want.percent > 0 {
				memory = card.MemoryMiB * want.percent / 100
			}
			if want.whole {
				memory, cores = card.MemoryMiB, 100
			}
			if want.loose { // a seat: the oracle does not know what it has
				memory, cores = share.MemoryMiB, share.Cores
			}
			if share.Whole != want.whole || share.Cores != cores || share.MemoryMiB != memory {
				b.say("pod %s container %s has %+v of a card, its limits say %d cores and %d MiB, whole: %v", name, c.Name, share, cores, memory, want.whole)
			}
		}
		if !want.loose && len(distinct) != len(got) {
			b.say("pod %s container %s has a card twice: %+v", name, c.Name, got)
		}
	}
	for container, got := range has.Containers {
		if !seen[container] && len(got) > 0 {
			b.say("pod %s has cards for a container %q it does not have", name, container)
		}
	}
	got := maps.Clone(has.Counts)
	maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
	if len(got)+len(counts) > 0 && !maps.Equal(got, counts) {
		b.say("pod %s has counts %v, its limits say %v", name, got, counts)
	}
}

func (b *PlacementBook) charge(p *podNow, sign int64) {
	if b.cards[p.node] == nil {
		b.cards[p.node], b.counts[p.node] = map[string]*cardNow{}, map[string]int64{}
	}
	for _, shares := range p.has.Containers {
		for _, s := range shares {
			now := b.cards[p.node][s.Card]
			if now == nil {
				now = &cardNow{}
				b.cards[p.node][s.Card] = now
			}
			if s.Whole {
				now.whole += int(sign)
				continue
			}
			now.shares, now.cores, now.mib = now.shares+int(sign), now.cores+sign*s.Cores, now.mib+sign*s.MemoryMiB
			if s.Cores == 100 {
				now.alone = sign > 0
			}
		}
	}
	for key, amount := range p.has.Counts {
		b.counts[p.node][key] += sign * amount
	}
}

// judge the node of a pod that has just come.
func (b *PlacementBook) judge(p *podNow, on FleetNode) {
	looked := map[string]bool{}
	for _, shares := range p.has.Containers {
		for _, s := range shares {
			card, there := on.Cards[s.Card]
			if !there || looked[s.Card] {
				continue
			}
			looked[s.Card] = true
			now := b.cards[p.node][s.Card]
			switch {
			case now.whole > 1, now.whole == 1 && now.shares > 0:
				b.say("card %s is given whole to %d and in parts to %d: %s", s.Card, now.whole, now.shares, b.who(p.node, s.Card))
			case now.cores > 100:
				b.say("card %s has given out %d of 100 cores: %s", s.Card, now.cores, b.who(p.node, s.Card))
			case now.mib > card.MemoryMiB:
				b.say("card %s has given out %d of %d MiB: %s", s.Card, now.mib, card.MemoryMiB, b.who(p.node, s.Card))
			case now.alone && now.shares > 1:
				b.say("card %s is shared with one that has all its cores: %s", s.Card, b.who(p.node, s.Card))
			}
		}
	}
	for key := range p.has.Counts {
		if given := b.counts[p.node][key]; given > on.Counts[key] {
			b.say("node %s has given out %d of %d %s", p.node, given, on.Counts[key], key)
		}
	}
}

func (b *PlacementBook) who(node, card string) string {
	var names []string
	for _, p := range b.pods {
		for _, shares := range p.has.Containers {
			if p.node == node && slices.ContainsFunc(shares, func(s Share) bool { return s.Card == card }) {
				names = append(names, p.name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// FitsOn says on which node a waiting pod of one container would fit now; "": nowhere. It counts fewer than `sharers` parts on a card as room,
// for how many a card may have is not in the API of every mode.
func (b *PlacementBook) FitsOn(pod *corev1.Pod, sharers int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	containers := running(pod)
	if len(containers) != 1 {
		return ""
	}
	for name, on := range b.nodes {
		want := wantedOf(containers[0], on.Mode, b.declared)
		for key := range containers[0].Resources.Limits { // the kubelet would not take it
			want.notServedHere = want.notServedHere || (spoken[string(key)] && !managed[string(key)] && !on.Offers[string(key)])
		}
		if want.notServedHere || want.loose || want.cards+int64(len(want.counts)) == 0 {
			continue
		}
		enough := true
		for key, amount := range want.counts {
			enough = enough && b.counts[name][key]+amount <= on.Counts[key]
		}
		room := int64(0)
		for id, card := range on.Cards {
			now := b.cards[name][id]
			if now == nil {
				now = &cardNow{}
			}
			memory := want.mib
			if want.percent > 0 {
				memory = card.MemoryMiB * want.percent / 100
			}
			free := card.Usable && now.whole == 0 && !now.alone && now.shares < sharers && now.cores+want.cores <= 100 && now.cores < 100 && now.mib+memory <= card.MemoryMiB
			if want.whole || want.cores == 100 {
				free = card.Usable && now.whole == 0 && now.shares == 0
			}
			if free {
				room++
			}
		}
		if enough && room >= want.cards {
			return name
		}
	}
	return ""
}

// WrongNow is the same from one list of everything: what the API shows at this moment.
func WrongNow(ctx context.Context, c *Cluster, declared ...string) ([]string, error) {
	b, err := c.PlacementBook(ctx, declared...)
	if err != nil {
		return nil, err
	}
	pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		b.See(&pods.Items[i], false)
	}
	return b.Wrong(), nil
}

// PlacementBook of the cluster's nodes as they are now, without pods.
func (c *Cluster) PlacementBook(ctx context.Context, declared ...string) (*PlacementBook, error) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	accelerators, err := c.Dynamic.Resource(AccelNodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return NewPlacementBook(nodes.Items, accelerators.Items, declared...), nil
}

// Follow feeds the book from a watch of its own until the context ends. A watch that is lost is something wrong: the book would have a gap.
func (b *PlacementBook) Follow(ctx context.Context, c *Cluster) error {
	all, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		b.See(&all.Items[i], false)
	}
	pods := cache.NewFilteredListWatchFromClient(c.Client.CoreV1().RESTClient(), "pods", "", func(*metav1.ListOptions) {})
	from, err := watchtools.NewRetryWatcherWithContext(ctx, all.ResourceVersion, pods)
	if err != nil {
		return err
	}
	go func() {
		for event := range from.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Bookmark {
				b.See(pod, event.Type == watch.Deleted)
			} else if event.Type == watch.Error {
				b.mu.Lock()
				b.say("the checker lost its watch: %v", event.Object)
				b.mu.Unlock()
			}
		}
	}()
	return nil
}
