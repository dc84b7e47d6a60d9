package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// grant is one card or a part of it, as the annotation says it.
type grant struct {
	Card      string `json:"card"`
	Whole     bool   `json:"whole,omitempty"`
	Cores     int64  `json:"cores,omitempty"`
	MemoryMiB int64  `json:"memoryMiB,omitempty"`
}

type placement struct {
	V          int                `json:"v"`
	Node       string             `json:"node"`
	Source     string             `json:"source"`
	Containers map[string][]grant `json:"containers"`
	Counts     map[string]int64   `json:"counts,omitempty"`
}

type holding struct {
	where    *placement
	assumed  time.Time // zero: the API has it
	inFlight bool
}

// ledger is who holds what. It is kept up to date by the informers' events and never rebuilt.
type ledger struct {
	mu       sync.RWMutex
	nodes    map[string]*node
	holdings map[types.UID]*holding
	onNode   map[string]map[types.UID]*holding
	declared map[string]bool
}

func newLedger() *ledger {
	return &ledger{nodes: map[string]*node{}, holdings: map[types.UID]*holding{}, onNode: map[string]map[types.UID]*holding{}, declared: map[string]bool{}}
}

func (l *ledger) setNode(from *corev1.Node) {
	fresh := nodeOf(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.nodes[from.Name]; old != nil && old.mode == fresh.mode && slices.Equal(old.cards, fresh.cards) {
		old.counts = fresh.counts
		return
	}
	l.nodes[from.Name] = fresh
	for _, h := range l.onNode[from.Name] {
		l.charge(h.where, 1)
	}
}

func (l *ledger) dropNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.nodes, name)
}

func (l *ledger) declare(keys map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.declared = keys
}

// charge adds (or with -1 takes away) what a placement has of its node.
func (l *ledger) charge(p *placement, sign int64) {
	n := l.nodes[p.Node]
	if n == nil {
		return
	}
	for _, grants := range p.Containers {
		for _, g := range grants {
			at := n.cardAt(g.Card)
			if at < 0 {
				continue
			}
			u := &n.used[at]
			if g.Whole {
				u.wholes += int(sign)
				continue
			}
			u.sharers, u.cores, u.memoryMiB = u.sharers+int(sign), u.cores+sign*g.Cores, u.memoryMiB+sign*g.MemoryMiB
		}
	}
	for key, amount := range p.Counts {
		n.taken[key] += sign * amount
	}
}

func (n *node) cardAt(id string) int {
	if rest, ours := strings.CutPrefix(id, n.name+"/"); ours {
		if at, err := strconv.Atoi(rest); err == nil && at >= 0 && at < len(n.cards) {
			return at
		}
	}
	return slices.IndexFunc(n.cards, func(c card) bool { return c.id == id })
}

func (l *ledger) book(uid types.UID, h *holding) {
	l.release(uid)
	l.holdings[uid] = h
	if l.onNode[h.where.Node] == nil {
		l.onNode[h.where.Node] = map[types.UID]*holding{}
	}
	l.onNode[h.where.Node][uid] = h
	l.charge(h.where, 1)
}

func (l *ledger) release(uid types.UID) bool {
	h := l.holdings[uid]
	if h == nil {
		return false
	}
	l.charge(h.where, -1)
	delete(l.holdings, uid)
	delete(l.onNode[h.where.Node], uid)
	return true
}

// fit: nil placement and a short, constant reason where it does not. `where` is wanted only when the pod is to be bound.
func (n *node) fit(d *demand, where *placement) (reason string) {
	if d.refusal != "" {
		return d.refusal
	}
	for key, amount := range d.counts {
		if n.taken[key]+amount > n.counts[key] {
			return "too little of a counted resource left"
		}
	}
	if len(d.needs) == 0 {
		return ""
	}
	if len(n.cards) == 0 {
		return "no usable card"
	}
	used := n.used
	if len(d.needs) > 1 || d.needs[0].cards > 1 || where != nil {
		used = slices.Clone(n.used)
	}
	if n.place(d.needs, used, where) {
		return ""
	}
	if len(d.needs) == 1 {
		if d.needs[0].whole {
			return "too few free cards"
		}
		for at := range n.cards {
			if c, u := &n.cards[at], &n.used[at]; c.usable && u.wholes == 0 && u.memoryMiB+d.needs[0].memoryOn(c) <= c.memoryMiB {
				return "no card with enough cores left"
			}
		}
		return "no card with enough memory left"
	}
	return "containers fit alone, not together"
}

func (n *node) admits(what *need, at int, now *cardUse) bool {
	c := &n.cards[at]
	if !c.usable || now.wholes > 0 {
		return false
	}
	if what.whole {
		return now.sharers == 0
	}
	if now.sharers >= c.maxSharers || now.memoryMiB+what.memoryOn(c) > c.memoryMiB {
		return false
	}
	switch what.cores {
	case 0:
		return now.cores < 100
	case 100:
		return now.sharers == 0
	}
	return now.cores+what.cores <= 100
}

// better: binpack. Cards in use before untouched ones, then the one with the least left.
func better(a, b *cardUse) int {
	if x := cmp.Compare(btoi(a.sharers == 0), btoi(b.sharers == 0)); x != 0 {
		return x
	}
	if x := cmp.Compare(b.memoryMiB, a.memoryMiB); x != 0 {
		return x
	}
	return cmp.Compare(b.cores, a.cores)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// place takes the cards for all needs, the hardest need first and for each the best cards, as Go extenders do: greedy.
func (n *node) place(needs []need, used []cardUse, where *placement) bool {
	for at := range needs {
		what := &needs[at]
		var mine []int
		for done := range what.cards {
			best := -1
			for i := range n.cards {
				if !n.admits(what, i, &used[i]) || (done > 0 && !what.anyCard && slices.Contains(mine, i)) {
					continue
				}
				if best < 0 || better(&used[i], &used[best]) < 0 {
					best = i
				}
			}
			if best < 0 {
				return false
			}
			if where == nil && at == len(needs)-1 && done == what.cards-1 {
				return true // the ordinary case, one share of one container, changes nothing
			}
			mine = append(mine, best)
			g := grant{Card: n.cards[best].id, Cores: what.cores, MemoryMiB: what.memoryOn(&n.cards[best])}
			if what.whole {
				g = grant{Card: g.Card, Whole: true, Cores: 100, MemoryMiB: n.cards[best].memoryMiB}
				used[best].wholes++
			} else {
				used[best].sharers, used[best].cores, used[best].memoryMiB = used[best].sharers+1, used[best].cores+g.Cores, used[best].memoryMiB+g.MemoryMiB
			}
			if where != nil {
				where.Containers[what.container] = append(where.Containers[what.container], g)
			}
		}
	}
	return true
}

// demands of one pod, by mode.
type demands struct {
	pod      *corev1.Pod
	declared map[string]bool
	byMode   map[string]*demand
}

func (d *demands) of(mode string) *demand {
	if found := d.byMode[mode]; found != nil {
		return found
	}
	made := demandOf(d.pod, mode, d.declared)
	d.byMode[mode] = &made
	return &made
}

// filter says for each name why not; "" where it fits. Nothing is changed.
func (l *ledger) filter(pod *corev1.Pod, names []string, reasons []string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !asks(pod, l.declared) {
		return
	}
	what := demands{pod, l.declared, map[string]*demand{}}
	for i, name := range names {
		if n := l.nodes[name]; n == nil {
			reasons[i] = "cards not known yet"
		} else {
			reasons[i] = n.fit(what.of(n.mode), nil)
		}
	}
}

// scores from 0 to 10: the fuller the better, as binpack wants it.
func (l *ledger) scores(names []string, out []int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for i, name := range names {
		n := l.nodes[name]
		if n == nil || len(n.cards) == 0 {
			continue
		}
		var all int64
		for at, u := range n.used {
			part := u.cores
			if n.cards[at].memoryMiB > 0 {
				part = max(part, u.memoryMiB*100/n.cards[at].memoryMiB)
			}
			if u.wholes > 0 {
				part = 100
			}
			all += part
		}
		out[i] = min(10, all/int64(10*len(n.cards)))
	}
}

// assume decides and books in one step.
func (l *ledger) assume(pod *corev1.Pod, name string, now time.Time) (*placement, *node, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name]
	if n == nil {
		return nil, nil, "cards not known yet"
	}
	if h := l.holdings[pod.UID]; h != nil && (h.assumed.IsZero() || h.inFlight) {
		return h.where, n, ""
	}
	l.release(pod.UID)
	d := demandOf(pod, n.mode, l.declared)
	where := &placement{V: 1, Node: name, Source: "planned", Containers: map[string][]grant{}}
	if len(d.counts) > 0 {
		where.Counts = maps.Clone(d.counts)
	}
	if reason := n.fit(&d, where); reason != "" {
		return nil, nil, reason
	}
	l.book(pod.UID, &holding{where: where, assumed: now, inFlight: true})
	return where, n, ""
}

// settle ends what assume began. Where the outcome is not known, the share stays taken until it is.
func (l *ledger) settle(uid types.UID, bound bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holdings[uid]
	if h == nil {
		return
	}
	if !bound {
		l.release(uid)
		return
	}
	h.assumed, h.inFlight = time.Time{}, false
}
