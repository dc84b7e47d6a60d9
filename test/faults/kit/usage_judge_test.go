package kit

import (
	"testing"
	"time"
)

// correct is what an operator that saw everything has written between two moments of testdata/audit.log.
func correct(l *AuditLedger, begin, end int64) (before, after UsageReading) {
	before = UsageReading{Through: begin, Held: map[UsageKey]CardTime{}, Models: map[string]ModelTime{}}
	after = UsageReading{Through: end, Held: l.Held(begin, end), Models: map[string]ModelTime{}}
	for model, capacity := range Capacity(recorded) {
		row := ModelTime{Capacity: capacity.Times(end - begin)}
		for key, held := range after.Held {
			if key.Model == model {
				row.Parts = row.Parts.Plus(held)
			}
		}
		row.Idle = row.Capacity.Minus(row.Parts)
		after.Models[model] = row
	}
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

func (r UsageReading) add(key UsageKey, time CardTime) { r.Held[key] = r.Held[key].Plus(time) }
func (r UsageReading) set(model string, change func(*ModelTime)) {
	row := r.Models[model]
	change(&row)
	r.Models[model] = row
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
	judged(t, nil, func(r UsageReading) { delete(r.Held, redWhole) }, "the audit log says {1200 184320}")
}

func TestJudgeFindsAnotherRow(t *testing.T) {
	judged(t, nil, func(r UsageReading) {
		r.add(UsageKey{Namespace: "team-c", Model: "Tesla-T4", Mode: "vGPU"}, CardTime{1, 0})
	}, "team-c")
}

func TestJudgeFindsCardsThatWereThere(t *testing.T) {
	judged(t, nil, func(r UsageReading) { r.set("Tesla-T4", func(m *ModelTime) { m.Capacity.CoreSeconds -= 100 }) }, "were there for")
	judged(t, nil, func(r UsageReading) { r.set("Tesla-T4", func(m *ModelTime) { m.Unhealthy.CoreSeconds = 100 }) }, "all was well")
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
