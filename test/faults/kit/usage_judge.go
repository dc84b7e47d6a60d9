package kit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// BlindKind is why the operator did not see what happened.
type BlindKind string

const (
	Unwatched BlindKind = "no operator ran"     // all that no surviving pod held is unattributed
	Broken    BlindKind = "the watch was cut"   // pods that vanished meanwhile are unattributed
	Late      BlindKind = "everything was late" // ends are seen when it goes on, and nobody can know that there are some
)

// Blindness is a time in which the operator saw nothing, or saw it late.
type Blindness struct {
	Kind           BlindKind
	Begin, End     time.Time // Unwatched: from the last checkpoint until another one watches for sure
	Died, Followed time.Time // Unwatched: surely nobody watched between
}

// Sickness is how many cards of a node were withdrawn, since some moment between `Asked` and `Done`. On such a node nothing may run.
type Sickness struct {
	Cards       int64
	Asked, Done time.Time
}

// Judge compares what was written between two checkpoints with what the log says, each month by itself. One second may be missing or too much
// at each end of each pod's time, and what `blind` explains; the second result is for people.
func (l *AuditLedger) Judge(before, after UsageReading, blind []Blindness) (wrong []string, report string) {
	say := func(format string, args ...any) { wrong = append(wrong, "usage: "+fmt.Sprintf(format, args...)) }
	var reports []string
	judged := int64(0)
	for _, name := range slices.Sorted(maps.Keys(after.Months)) {
		month, was := after.Months[name], before.Months[name]
		if month.Since == month.Begin {
			for model, capacity := range Capacity(l.stock) {
				if got, want := month.Models[model].Capacity, capacity.Times(month.Through-month.Begin); got != want {
					say("%s, which began %d s before its checkpoint: the cards of %s were there for %v, and the object says %v", name, month.Through-month.Begin, model, want, got)
				}
			}
		}
		begin, end := max(before.Through, month.Begin), min(after.Through, month.End)
		if begin >= end {
			continue
		}
		judged += end - begin
		faults, text := l.judgeMonth(was, month, begin, end, blind)
		for _, fault := range faults {
			say("%s: %s", name, fault)
		}
		reports = append(reports, name+": "+text)
	}
	if judged != after.Through-before.Through {
		say("months have %d s of %d s", judged, after.Through-before.Through)
	}
	slices.Sort(wrong)
	return wrong, strings.Join(reports, "\n")
}

func (l *AuditLedger) judgeMonth(before, after MonthUsage, begin, end int64, blind []Blindness) (wrong []string, report string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	truth, over, under := l.Held(begin, end), map[UsageKey]CardTime{}, map[UsageKey]CardTime{}
	vanished, slack := map[string]CardTime{}, map[string]CardTime{} // by model
	pods := 0
	for _, stay := range l.Stays() {
		if stay.Since > end || (stay.Until != 0 && stay.known(blind) < begin-1) {
			continue
		}
		if stay.Seconds(begin, end) > 0 {
			pods++
		}
		more, less, lost, dark := stay.doubt(begin, end, blind)
		for key, part := range l.Parts(stay) {
			over[key], under[key] = over[key].Plus(part.Times(more)), under[key].Plus(part.Times(less+lost))
			vanished[key.Model] = vanished[key.Model].Plus(part.Times(dark))
			slack[key.Model] = slack[key.Model].Plus(part.Times(more + less + dark))
		}
	}
	for _, stay := range l.Tried() {
		more, _, _, dark := stay.doubt(begin, end, blind)
		more += stay.Seconds(begin, end)
		for key, part := range l.Parts(stay) {
			over[key] = over[key].Plus(part.Times(more))
			vanished[key.Model] = vanished[key.Model].Plus(part.Times(dark))
			slack[key.Model] = slack[key.Model].Plus(part.Times(more + dark))
		}
	}
	keys := maps.Clone(truth)
	maps.Copy(keys, after.Held)
	var nothing CardTime
	for key := range keys {
		got := after.Held[key].Minus(before.Held[key])
		if more := got.Minus(truth[key]); !more.Within(over[key]) || !nothing.Minus(more).Within(under[key]) {
			say("%+v has %v, the audit log says %v; it may be %v more or %v less", key, got, truth[key], over[key], under[key])
		}
	}
	var models []string
	for model, capacity := range Capacity(l.stock) {
		got := after.Models[model].Minus(before.Models[model])
		if want := capacity.Times(end - begin); got.Capacity != want {
			say("the cards of %s were there for %v, and the object says %v", model, want, got.Capacity)
		}
		least, most := l.darkness(model, capacity, begin, end, blind)
		if most = most.Plus(vanished[model]); !got.Unattributed.Within(most) {
			say("%v of %s is unattributed, at most %v can be", got.Unattributed, model, most)
		}
		if !least.Within(got.Unattributed) {
			say("%v of %s is unattributed, and nobody can know of %v", got.Unattributed, model, least)
		}
		if !got.Beyond.Within(slack[model]) {
			say("%v of %s is beyond its cards, clocks explain %v", got.Beyond, model, slack[model])
		}
		fewest, sickest := l.sickness(model, begin, end, blind)
		sickest = sickest.Plus(l.absent(model, begin, end, blind))
		if !got.Unhealthy.Within(sickest) || !fewest.Within(got.Unhealthy) {
			say("%v of %s is unhealthy, and its cards were withdrawn for %v to %v", got.Unhealthy, model, fewest, sickest)
		}
		models = append(models, fmt.Sprintf("%s: parts %d, idle %d, unhealthy %d (%d to %d), unattributed %d (%d to %d), beyond %d of %d core seconds", model,
			got.Parts.CoreSeconds, got.Idle.CoreSeconds, got.Unhealthy.CoreSeconds, fewest.CoreSeconds, sickest.CoreSeconds, got.Unattributed.CoreSeconds,
			least.CoreSeconds, most.CoreSeconds, got.Beyond.CoreSeconds, got.Capacity.CoreSeconds))
	}
	slices.Sort(models)
	return wrong, fmt.Sprintf("%d s, %d pods held cards, %d rows; %s", end-begin, pods, len(truth), strings.Join(models, "; "))
}

// known: by then whoever watches knows of its end.
func (s *Stay) known(blind []Blindness) int64 {
	last := max(s.Until, s.Reported.Unix())
	for _, b := range blind {
		if last >= b.Begin.Unix()-1 {
			last = max(last, b.End.Unix())
		}
	}
	return last
}

// doubt in seconds: how much more may be written, how much less, how much less because nobody saw the end, and how much can be no one's
// for that reason: the last one goes on until the end is seen.
func (s *Stay) doubt(begin, end int64, blind []Blindness) (more, less, lost, dark int64) {
	if s.Since >= begin-1 {
		more, less = 1, 1
	}
	less += max(0, min(s.retold, end)-max(s.Since, begin))
	if s.Until == 0 {
		return
	}
	settled := max(s.Until, begin)
	ended := s.Until <= end+1
	if ended {
		more, less = more+1, less+1
		if !s.Removed { // a report that comes later than a checkpoint is too late for it
			more += max(0, s.Reported.Unix()-settled)
		}
	}
	for _, b := range blind {
		if ended && b.Kind == Late && !s.Removed && !s.Reported.Before(b.Begin) && !s.Reported.After(b.End) {
			more += max(0, b.End.Unix()-max(s.Reported.Unix(), begin)) // what came late may be behind a checkpoint
		}
		seen := s.Gone.IsZero() || s.Gone.Before(b.Begin) || s.Gone.After(b.End) || (!s.Removed && s.Reported.Before(b.Begin))
		since := max(begin, s.Since, b.Begin.Unix()-1)
		switch {
		case seen || since > end:
		case b.Kind != Late: // also one that ended later, in the next month: it may be no one's since the break
			lost = max(lost, s.Seconds(since, end)+1)
			dark = max(dark, min(end, b.End.Unix())-since+1)
		case ended:
			more += max(0, b.End.Unix()-settled) + 1
		}
	}
	return
}

// darkness: how much of a model can be unattributed at least and at most, because no operator ran.
func (l *AuditLedger) darkness(model string, capacity CardTime, begin, end int64, blind []Blindness) (least, most CardTime) {
	for _, b := range blind {
		if b.Kind != Unwatched || b.End.Unix() < begin || b.Begin.Unix() > end {
			continue
		}
		most = most.Plus(capacity.Times(min(end, b.End.Unix()) - max(begin, b.Begin.Unix()) + 1))
		since, until := max(begin, b.Died.Unix()+1), min(end, b.Followed.Unix()-1)
		if since >= until {
			continue
		}
		dark := capacity.Times(until - since)
		for key, held := range l.Held(since, until) {
			if key.Model == model {
				dark = dark.Minus(held)
			}
		}
		least = least.Plus(dark)
	}
	return
}

// absent: how much of a model was on nodes that were not Ready, at most. A change is seen within a second where someone watches.
func (l *AuditLedger) absent(model string, begin, end int64, blind []Blindness) (most CardTime) {
	for _, a := range l.absences {
		since, till := a.since.Unix()-1, end
		if !a.till.IsZero() {
			till = a.till.Unix() + 1
		}
		for _, b := range blind {
			if till >= b.Begin.Unix()-1 {
				till = max(till, min(b.End.Unix()+1, end))
			}
		}
		stock := map[string]CardStock{a.node: l.stock[a.node]}
		most = most.Plus(Capacity(stock)[model].Times(max(0, min(end, till)-max(begin, since))))
	}
	return
}

// sickness: how much of a model was withdrawn, at least and at most. A change is seen within a second where someone watches, and what is
// dark is not sick.
func (l *AuditLedger) sickness(model string, begin, end int64, blind []Blindness) (least, most CardTime) {
	stock, known := l.stock[l.SickNode]
	if !known || stock.Model != model {
		return
	}
	var sick, less, more int64 // seconds of cards
	within := func(from, until int64) int64 { return max(0, min(end, until)-max(begin, from)) }
	for i, state := range l.Sick {
		until := end
		if i+1 < len(l.Sick) {
			until = l.Sick[i+1].Done.Unix()
		}
		length := within(state.Done.Unix(), until)
		sick += length * state.Cards
		for _, b := range blind {
			if b.Kind == Unwatched {
				less += state.Cards * within(max(state.Done.Unix(), b.Begin.Unix()-1), min(until, b.End.Unix()+1))
			}
		}
		if i == 0 {
			continue
		}
		change := state.Cards - l.Sick[i-1].Cards
		early, late := state.Asked.Unix()-1, state.Done.Unix()+1
		for _, b := range blind {
			if late >= b.Begin.Unix()-1 && early <= b.End.Unix() {
				late = max(late, b.End.Unix()+1)
			}
		}
		before, after := within(early, state.Done.Unix()), within(state.Done.Unix(), late)
		if change > 0 {
			more, less = more+change*before, less+change*after
		} else {
			more, less = more-change*after, less-change*before
		}
	}
	card := CardTime{100, stock.MemoryMiB}
	return card.Times(max(0, sick-less)), card.Times(sick + more)
}
