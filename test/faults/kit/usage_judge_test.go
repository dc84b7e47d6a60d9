package kit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// between is what an operator that saw everything has written of a month between two moments of testdata/audit.log.
func between(l *AuditLedger, begin, end, since, through int64) MonthUsage {
	m := MonthUsage{Begin: begin, End: end, Since: since, Through: through, Held: l.Held(since, through), Models: map[string]ModelTime{}}
	for model, capacity := range Capacity(recorded) {
		row := ModelTime{Capacity: capacity.Times(through - since)}
		for key, held := range m.Held {
			if key.Model == model {
				row.Parts = row.Parts.Plus(held)
			}
		}
		row.Idle = row.Capacity.Minus(row.Parts)
		m.Models[model] = row
	}
	return m
}

const (
	november = "2026-11"
	december = "2026-12"
)

var monthBegin, monthEnd = clock(-40_000, 0), clock(40_000, 0)

func correct(l *AuditLedger, begin, end int64) (before, after UsageReading) {
	before = UsageReading{begin, map[string]MonthUsage{november: between(l, monthBegin, monthEnd, begin, begin)}}
	after = UsageReading{end, map[string]MonthUsage{november: between(l, monthBegin, monthEnd, begin, end)}}
	return
}

var (
	redShares = UsageKey{"team-b", "Tesla-T4", "vGPU", "red", 0}
	redWhole  = UsageKey{"team-b", "Tesla-T4", "pGPU", "red", 1000}
	moment    = func(minute, second int64) time.Time { return time.Unix(clock(minute, second), 0) }
)

func judged(t *testing.T, blind []Blindness, edit func(UsageReading), want ...string) {
	t.Helper()
	l := readRecorded(t, "testdata/audit.log")
	before, after := correct(l, clock(34, 40), clock(35, 0))
	if edit != nil {
		edit(after)
	}
	wrong, _ := l.Judge(before, after, blind)
	expect(t, wrong, want...)
}

func (r UsageReading) add(key UsageKey, time CardTime) { r.Months[november].add(key, time) }
func (r UsageReading) set(model string, change func(*ModelTime)) {
	r.Months[november].set(model, change)
}
func (m MonthUsage) add(key UsageKey, time CardTime) { m.Held[key] = m.Held[key].Plus(time) }
func (m MonthUsage) set(model string, change func(*ModelTime)) {
	row := m.Models[model]
	change(&row)
	m.Models[model] = row
}

func TestJudgeTakesWhatIsRight(t *testing.T) { judged(t, nil, nil) }

func TestJudgeAllowsASecondAtEachEnd(t *testing.T) {
	// the priority's pod has two ends, and its end was reported a second late
	judged(t, nil, func(r UsageReading) { r.add(redWhole, CardTime{600, 3 * 30720}) })
	judged(t, nil, func(r UsageReading) { r.add(redWhole, CardTime{800, 4 * 30720}) }, "may be {600 92160} more")
	judged(t, nil, func(r UsageReading) { r.add(redWhole, CardTime{-600, -3 * 30720}) }, "or {400 61440} less")
	judged(t, nil, func(r UsageReading) { r.add(redWhole, CardTime{0, 4 * 30720}) }, "more")
}

func TestJudgeFindsAForgottenPod(t *testing.T) {
	judged(t, nil, func(r UsageReading) { delete(r.Months[november].Held, redWhole) }, "the audit log says {1200 184320}")
}

func TestJudgeFindsAnotherRow(t *testing.T) {
	judged(t, nil, func(r UsageReading) {
		r.add(UsageKey{Namespace: "team-c", Model: "Tesla-T4", Mode: "vGPU"}, CardTime{1, 0})
	}, "team-c")
}

func TestJudgeFindsCardsThatWereThere(t *testing.T) {
	judged(t, nil, func(r UsageReading) { r.set("Tesla-T4", func(m *ModelTime) { m.Capacity.CoreSeconds -= 100 }) }, "were there for")
	judged(t, nil, func(r UsageReading) { r.set("Tesla-T4", func(m *ModelTime) { m.Unhealthy.CoreSeconds = 100 }) }, "withdrawn for {0 0} to {0 0}")
	judged(t, nil, func(r UsageReading) { r.set("Tesla-T4", func(m *ModelTime) { m.Beyond.CoreSeconds = 10000 }) }, "beyond its cards")
}

func TestJudgeAllowsNothingUnattributedWhereSomeoneWatched(t *testing.T) {
	unknown := func(r UsageReading) { r.set("Tesla-T4", func(m *ModelTime) { m.Unattributed.CoreSeconds = 1 }) }
	judged(t, nil, unknown, "unattributed, at most {0 0}")
	judged(t, []Blindness{{Kind: Broken, Begin: moment(34, 56), End: moment(34, 58)}}, unknown, "unattributed, at most {0 0}") // no pod vanished then
}

func TestJudgeKnowsWhatABreakHides(t *testing.T) {
	// the share that is deleted in 34:52, 20 cores, was not seen to go: its last seconds may be nobody's
	hidden := []Blindness{{Kind: Broken, Begin: moment(34, 51), End: moment(34, 53)}}
	lose := func(seconds int64) func(UsageReading) {
		return func(r UsageReading) {
			r.add(redShares, CardTime{-20 * seconds, -2048 * seconds})
			r.set("Tesla-T4", func(m *ModelTime) { m.Unattributed = CardTime{20 * seconds, 2048 * seconds} })
		}
	}
	judged(t, hidden, lose(2))
	judged(t, hidden, lose(5), "unattributed, at most {80 8192}")
	judged(t, hidden, func(r UsageReading) { // who lost it noticed that a second later
		lose(2)(r)
		r.set("Tesla-T4", func(m *ModelTime) { m.Unattributed.CoreSeconds += 20 })
	})
	judged(t, nil, lose(2), "unattributed")
	judged(t, []Blindness{{Kind: Late, Begin: moment(34, 51), End: moment(34, 53)}}, lose(2), "unattributed")
}

func TestJudgeWantsTheTimeWithoutAnOperatorUnattributed(t *testing.T) {
	dark := []Blindness{{Kind: Unwatched, Begin: moment(34, 40), End: moment(34, 46), Died: moment(34, 41), Followed: moment(34, 45)}}
	judged(t, dark, nil, "nobody can know of {3200", "nobody can know of {800")
	unknown := func(seconds int64) func(UsageReading) {
		return func(r UsageReading) {
			for model, capacity := range Capacity(recorded) {
				r.set(model, func(m *ModelTime) { m.Unattributed = capacity.Times(seconds) })
			}
		}
	}
	judged(t, dark, unknown(5))
	judged(t, dark, unknown(8), "at most", "at most")
}

// twoMonths: one ended at 34:50, while pods held cards.
func twoMonths(t *testing.T, blind []Blindness, edit func(old, young MonthUsage), want ...string) {
	t.Helper()
	l := readRecorded(t, "testdata/audit.log")
	begin, middle, end := clock(34, 40), clock(34, 50), clock(35, 0)
	before := UsageReading{begin, map[string]MonthUsage{november: between(l, monthBegin, middle, begin, begin)}}
	after := UsageReading{end, map[string]MonthUsage{november: between(l, monthBegin, middle, begin, middle), december: between(l, middle, monthEnd, middle, end)}}
	if edit != nil {
		edit(after.Months[november], after.Months[december])
	}
	if want != nil && want[0] == "" {
		delete(after.Months, december)
		want[0] = "months have 10 s of 20 s"
	}
	wrong, _ := l.Judge(before, after, blind)
	expect(t, wrong, want...)
}

func TestJudgeLooksAtEachMonth(t *testing.T) {
	twoMonths(t, nil, nil)
	twoMonths(t, nil, nil, "")
	// the priority's pod held its cards in both; a second at the end of the month is none that clocks explain
	twoMonths(t, nil, func(old, young MonthUsage) {
		old.add(redWhole, CardTime{-600, 0})
		young.add(redWhole, CardTime{600, 0})
	}, "2026-11: {Namespace:team-b Model:Tesla-T4 Mode:pGPU", "2026-12: {Namespace:team-b Model:Tesla-T4 Mode:pGPU")
	twoMonths(t, nil, func(old, young MonthUsage) {
		old.set("Tesla-T4", func(m *ModelTime) { m.Capacity.CoreSeconds += 1600 })
		young.set("Tesla-T4", func(m *ModelTime) { m.Capacity.CoreSeconds -= 1600 })
	}, "2026-11: the cards of Tesla-T4 were there", "2026-12, which began 10 s before its checkpoint", "2026-12: the cards of Tesla-T4 were there")
}

func TestJudgeKnowsWhatABreakHidesInTheNextMonth(t *testing.T) {
	// the FPGAs' pod left at 34:50, the last second of the month, and that was seen in 34:52
	late := []Blindness{{Kind: Broken, Begin: moment(34, 49), End: moment(34, 52)}}
	fpgas := func(seconds int64) func(old, young MonthUsage) {
		return func(_, young MonthUsage) {
			young.set("example.com/fpga", func(m *ModelTime) { m.Unattributed.CoreSeconds = 300 * seconds })
		}
	}
	twoMonths(t, late, fpgas(2))
	twoMonths(t, late, fpgas(4), "2026-12: {1200 0} of example.com/fpga is unattributed")
	twoMonths(t, nil, fpgas(2), "2026-12: {600 0} of example.com/fpga is unattributed")
}

func TestJudgeKnowsWhatABreakHidesInTheMonthBefore(t *testing.T) {
	// the share that was deleted in 34:52, after the month's end, is no one's since the break before
	across := []Blindness{{Kind: Broken, Begin: moment(34, 48), End: moment(34, 53)}}
	lost := func(old, _ MonthUsage) {
		old.add(redShares, CardTime{-40, -4096})
		old.set("Tesla-T4", func(m *ModelTime) { m.Unattributed = CardTime{40, 4096} })
	}
	twoMonths(t, across, lost)
	twoMonths(t, nil, lost, "2026-11: {40 4096} of Tesla-T4 is unattributed", "2026-11: {Namespace:team-b Model:Tesla-T4 Mode:vGPU")
}

func TestJudgeComparesSickCards(t *testing.T) {
	sick := func(blind []Blindness, seconds int64, want ...string) {
		t.Helper()
		l := readRecorded(t, "testdata/audit.log")
		l.SickNode = "vgpu-0"
		l.Sick = []Sickness{{0, moment(30, 0), moment(30, 0)}, {2, moment(34, 44), moment(34, 44)}, {0, moment(34, 54), moment(34, 54)}}
		before, after := correct(l, clock(34, 40), clock(35, 0))
		after.set("Tesla-T4", func(m *ModelTime) { m.Unhealthy = CardTime{100, 15360}.Times(2 * seconds) })
		wrong, _ := l.Judge(before, after, blind)
		expect(t, wrong, want...)
	}
	for _, seconds := range []int64{8, 9, 10, 11, 12} {
		sick(nil, seconds)
	}
	sick(nil, 7, "withdrawn for {1600 245760} to {2400 368640}")
	sick(nil, 13, "withdrawn for")
	sick(nil, 0, "withdrawn for")
	sick([]Blindness{{Kind: Broken, Begin: moment(34, 43), End: moment(34, 47)}}, 6)
	sick([]Blindness{{Kind: Broken, Begin: moment(34, 53), End: moment(34, 57)}}, 14)
	sick([]Blindness{{Kind: Broken, Begin: moment(34, 47), End: moment(34, 51)}}, 6, "withdrawn for")
}

// The API server was away for longer than the node's lease: the controller manager took the node for lost, and it was back 0.6 s later.
func TestJudgeKnowsOfNodesThatWereNotReady(t *testing.T) {
	l := NewAuditLedger("testdata/node_lost.log", map[string]CardStock{
		"pgpu-0": {Module: "pgpu", Model: "Tesla-T4", Cards: 8, MemoryMiB: 15360, Counts: map[string]int64{"example.com/fpga": 2}}})
	Must(t, l.Follow())
	lost := time.Date(2026, 11, 26, 5, 54, 12, 0, time.UTC).Unix()
	for _, c := range []struct {
		begin, end int64
		want       CardTime
	}{
		{lost - 60, lost + 60, CardTime{400, 0}}, // and a second before
		{lost, lost + 60, CardTime{200, 0}},
		{lost + 1, lost + 60, CardTime{}},
		{lost - 60, lost - 1, CardTime{}},
	} {
		if got := l.absent("example.com/fpga", c.begin, c.end, nil); got != c.want {
			t.Errorf("from %d s to %d s of it: %v, not %v", c.begin-lost, c.end-lost, got, c.want)
		}
	}
	late := []Blindness{{Kind: Late, Begin: time.Unix(lost-2, 0), End: time.Unix(lost+5, 0)}}
	if got, want := l.absent("example.com/fpga", lost-60, lost+60, late), (CardTime{1400, 0}); got != want {
		t.Errorf("seen late: %v, not %v", got, want)
	}
}

// The server gave up waiting for its own store, and the pod was deleted before anyone asked for it again.
func TestJudgeKnowsThatAFailedBindingMayHaveHappened(t *testing.T) {
	whole, err := os.ReadFile("testdata/audit.log")
	Must(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	binding := `{"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/team-b/pods/waits/binding","verb":"create","objectRef":{"resource":"pods",` +
		`"namespace":"team-b","name":"waits","subresource":"binding"},"responseStatus":{"code":504},"requestObject":{"kind":"Binding","target":{"kind":"Node",` +
		`"name":"pgpu-0"}},"responseObject":{"kind":"Status"},"requestReceivedTimestamp":"2026-11-25T16:34:49.1Z","stageTimestamp":"2026-11-25T16:34:49.2Z"}` + "\n"
	file := filepath.Join(t.TempDir(), "audit.log")
	Must(t, os.WriteFile(file, slices.Concat(slices.Concat(lines[:45]...), []byte(binding), slices.Concat(lines[45:]...)), 0o600))
	l := readRecorded(t, file)
	before, after := correct(l, clock(34, 40), clock(35, 0))
	wrong, _ := l.Judge(before, after, nil)
	expect(t, wrong) // it did not happen
	eight := CardTime{800, 8 * 15360}
	waits := UsageKey{"team-b", "Tesla-T4", "pGPU", "red", 0}
	give := func(seconds int64) {
		after.add(waits, eight.Times(seconds))
		after.set("Tesla-T4", func(m *ModelTime) {
			m.Parts, m.Idle = m.Parts.Plus(eight.Times(seconds)), m.Idle.Minus(eight.Times(seconds))
		})
	}
	give(2)
	wrong, _ = l.Judge(before, after, nil)
	expect(t, wrong)
	give(3)
	wrong, _ = l.Judge(before, after, nil)
	expect(t, wrong, "the audit log says {800 122880}; it may be {3300 506880} more")
}
