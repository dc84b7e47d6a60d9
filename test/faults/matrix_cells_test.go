package faults

import (
	"fmt"
	"math/rand"
	"slices"
)

// The proof of the mode transaction. A cell is one node that is asked to go from one mode to another while one thing goes wrong; a round has
// many cells side by side on one control plane, and lets each of them have n writes of the operator before the operator is killed, again and
// again. So every write of every cell is the last one before a crash, of some round at the latest.
const (
	smooth    = "smooth"    // nothing goes wrong
	kept      = "kept"      // the pods that hold the old mode's cards do not end
	unready   = "unready"   // the new plugin's pod never becomes ready
	absent    = "absent"    // what the new plugin advertises never appears
	stuck     = "stuck"     // neither does what the old one advertised, on the way back
	lingering = "lingering" // the old plugin's pod does not end
	deleted   = "deleted"   // the node is deleted on its way
	remade    = "remade"    // and made again, under the same name
	back      = "back"      // the old label is put back on the way
)

var (
	allModes  = []string{"", "pgpu", "vgpu", "mps", "hami", "share", "gpushare"}
	allFaults = []string{smooth, kept, unready, absent, stuck, lingering, deleted, remade, back}
)

const (
	foreignNote  = "team.example.com/note"
	brokenInSim  = "sim.quartermaster.io/broken"
	profileInSim = "sim.quartermaster.io/profile"
	cellLabel    = "quartermaster.example.com/cell"
)

type cell struct {
	from, to, fault string
	held            bool // a pod holds the old mode's cards
	node, pod       string

	strikeAt int  // the write of the operator after which the node is deleted, or the label put back
	inWrite  bool // at that very moment, before the operator has its answer; otherwise while it is dead

	// Under the round's lock.
	used, total   int // writes in this life of the operator, in all
	more          bool
	struck, ended bool // ended: its pod may go
	seenDraining  int  // in which life of the operator the pod was named as what is waited for; -1: not yet
}

func (c *cell) String() string {
	use := "idle"
	if c.held {
		use = "held"
	}
	return fmt.Sprintf("%s.%s.%s.%s", c.fault, named(c.to), named(c.from), use)
}

// possible leaves out what means nothing: an unknown mode has no plugin that could fail.
func (c *cell) possible() bool {
	switch {
	case c.held && c.from == "", c.fault == kept && !c.held:
		return false
	case c.from == c.to:
		return c.fault == smooth
	case c.fault == unready || c.fault == absent:
		return c.to != ""
	case c.fault == stuck:
		return c.to != "" && c.from != ""
	case c.fault == lingering:
		return c.from != ""
	}
	return true
}

func allCells() (out []*cell) {
	for _, fault := range allFaults {
		for _, from := range allModes {
			for _, to := range allModes {
				for _, held := range []bool{false, true} {
					c := &cell{from: from, to: to, fault: fault, held: held}
					if c.possible() {
						out = append(out, c)
					}
				}
			}
		}
	}
	return
}

// sample has each fault in both uses, each mode as the old and as the new one, and chance says which pairs.
func sample(of []*cell, count int, chance *rand.Rand) (out []*cell) {
	of = slices.Clone(of)
	chance.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	seen := map[string]int{}
	marks := func(c *cell) []string {
		return []string{fmt.Sprint(c.fault, c.held), "from " + c.from + fmt.Sprint(c.held), "to " + c.to + c.fault[:1]}
	}
	for len(out) < min(count, len(of)) {
		best, least := -1, 0
		for i, c := range of {
			if c == nil {
				continue
			}
			sum := 0
			for _, m := range marks(c) {
				sum += seen[m]
			}
			if best < 0 || sum < least {
				best, least = i, sum
			}
		}
		for _, m := range marks(of[best]) {
			seen[m]++
		}
		out, of[best] = append(out, of[best]), nil
	}
	return
}

// end is one of the four in which a change may end.
type end struct {
	gone          bool // the node is
	phase, actual string
	reasons       []string
	tainted       bool
	label         string
	plugin        string // the module whose pod is on the node
	ready         bool   // and is ready
}

func (c *cell) end() end {
	settled := func(mode string) end {
		if mode == "" {
			return end{actual: "none"} // no AcceleratorNode either
		}
		return end{phase: "Ready", actual: mode, reasons: []string{"Enrolled"}, label: mode, plugin: mode, ready: true}
	}
	rolledBack := func(reason string) end {
		return end{phase: "RolledBack", actual: named(c.from), reasons: []string{reason}, label: c.from, plugin: c.from, ready: c.from != ""}
	}
	switch c.fault {
	case kept:
		return rolledBack("DrainTimeout")
	case unready, absent:
		return rolledBack("VerifyTimeout")
	case stuck:
		return end{phase: "Stuck", actual: c.from, reasons: []string{"NothingAdvertised"}, tainted: true, label: c.from, plugin: c.from, ready: true}
	case lingering:
		return end{phase: "Stuck", actual: "none", reasons: []string{"PluginLeaving"}, tainted: true, plugin: c.from, ready: true}
	case deleted:
		return end{gone: true}
	case back:
		return settled(c.from)
	}
	return settled(c.to)
}

// asks is what the label says in the end.
func (c *cell) asks() string {
	if c.fault == back {
		return c.from
	}
	return c.to
}
