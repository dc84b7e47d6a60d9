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

// Judge compares what was written between two checkpoints with what the log says. One second may be missing or too much at each end of each
// pod's time, and what `blind` explains; the second result is for people.
func (l *AuditLedger) Judge(before, after UsageReading, blind []Blindness) (wrong []string, report string) {
	say := func(format string, args ...any) { wrong = append(wrong, "usage: "+fmt.Sprintf(format, args...)) }
	begin, end := before.Through, after.Through
	truth, over, under := l.Held(begin, end), map[UsageKey]CardTime{}, map[UsageKey]CardTime{}
	vanished, slack := map[string]CardTime{}, map[string]CardTime{} // by model
	pods := 0
	for _, stay := range l.Stays() {
		if (stay.Until != 0 && stay.Until < begin-1) || stay.Since > end {
			continue
		}
		pods++
		more, less, lost := stay.doubt(begin, end, blind)
		for key, part := range l.Parts(stay) {
			over[key], under[key] = over[key].Plus(part.Times(more)), under[key].Plus(part.Times(less+lost))
			vanished[key.Model] = vanished[key.Model].Plus(part.Times(lost))
			slack[key.Model] = slack[key.Model].Plus(part.Times(more + less))
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
		if got.Unhealthy != nothing {
			say("%v of %s is unhealthy, and all was well", got.Unhealthy, model)
		}
		models = append(models, fmt.Sprintf("%s: parts %d, idle %d, unattributed %d (%d to %d), beyond %d of %d core seconds", model, got.Parts.CoreSeconds,
			got.Idle.CoreSeconds, got.Unattributed.CoreSeconds, least.CoreSeconds, most.CoreSeconds, got.Beyond.CoreSeconds, got.Capacity.CoreSeconds))
	}
	slices.Sort(wrong)
	slices.Sort(models)
	return wrong, fmt.Sprintf("%d s, %d pods held cards, %d rows; %s", end-begin, pods, len(truth), strings.Join(models, "; "))
}

// doubt in seconds: how much more may be written, how much less, and how much less because nobody saw the end.
func (s *Stay) doubt(begin, end int64, blind []Blindness) (more, less, lost int64) {
	if s.Since >= begin-1 {
		more, less = 1, 1
	}
	if s.Until == 0 || s.Until > end+1 {
		return
	}
	more, less = more+1, less+1
	if !s.Removed { // a report that comes later than a checkpoint is too late for it
		more += max(0, s.Reported.Unix()-s.Until)
	}
	for _, b := range blind {
		if b.Kind == Late && !s.Removed && !s.Reported.Before(b.Begin) && !s.Reported.After(b.End) {
			more += max(0, b.End.Unix()-s.Reported.Unix()) // what came late may be behind a checkpoint
		}
		seen := s.Gone.IsZero() || s.Gone.Before(b.Begin) || s.Gone.After(b.End) || (!s.Removed && s.Reported.Before(b.Begin))
		switch {
		case seen:
		case b.Kind == Late:
			more += b.End.Unix() - s.Until + 1
		default:
			lost = max(lost, s.Seconds(max(begin, b.Begin.Unix()-1), end)+1)
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
		since, until := b.Died.Unix()+1, b.Followed.Unix()-1
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
