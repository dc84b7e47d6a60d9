package kit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the operator has written into AcceleratorUsage objects, read as docs/decisions/014 says: the state of the last checkpoint.

var Usages = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratorusages"}

// ModelTime is the time of all cards of a model.
type ModelTime struct{ Capacity, Parts, Idle, Unhealthy, Unattributed, Beyond CardTime }

func (m ModelTime) combine(n ModelTime, with func(a, b CardTime) CardTime) ModelTime {
	return ModelTime{with(m.Capacity, n.Capacity), with(m.Parts, n.Parts), with(m.Idle, n.Idle), with(m.Unhealthy, n.Unhealthy),
		with(m.Unattributed, n.Unattributed), with(m.Beyond, n.Beyond)}
}
func (m ModelTime) Plus(n ModelTime) ModelTime  { return m.combine(n, CardTime.Plus) }
func (m ModelTime) Minus(n ModelTime) ModelTime { return m.combine(n, CardTime.Minus) }

func (m ModelTime) columns(n ModelTime) map[string][2]CardTime {
	return map[string][2]CardTime{"capacity": {m.Capacity, n.Capacity}, "parts": {m.Parts, n.Parts}, "idle": {m.Idle, n.Idle},
		"unhealthy": {m.Unhealthy, n.Unhealthy}, "unattributed": {m.Unattributed, n.Unattributed}, "beyond": {m.Beyond, n.Beyond}}
}

// MonthUsage is a month at the last checkpoint. Times are the API server's, though the operator's day may be another (Proxy.Ahead).
type MonthUsage struct {
	Begin, End     int64 // of the month
	Since, Through int64
	Held           map[UsageKey]CardTime
	Models         map[string]ModelTime
}

// UsageReading is the last checkpoint.
type UsageReading struct {
	Through int64
	Months  map[string]MonthUsage // those that the cluster's objects have
}

type usageRow struct {
	Model, Mode, Organization     string
	Priority                      int32
	CoreSeconds, MemoryMiBSeconds int64
}

type usageSpec struct {
	Month, Namespace string
	Since, Through   time.Time
	Rows             []usageRow
	Before           struct {
		Through time.Time
		Rows    []usageRow
	}
	Models []struct {
		Model string
		ModelTime
	}
}

// at the checkpoint of the whole cluster: the rows that count then.
func (u *usageSpec) at(committed time.Time) []usageRow {
	switch {
	case !u.Through.After(committed):
		return u.Rows
	case !u.Before.Through.IsZero() && !u.Before.Through.After(committed):
		return u.Before.Rows
	}
	return nil
}

// ReadUsage from objects of one list, written by operators whose day is so far ahead. `wrong` is what no list may ever show: sums that do not
// add up, and months that are not closed at their end.
func ReadUsage(list []unstructured.Unstructured, ahead time.Duration) (out UsageReading, wrong []string) {
	out = UsageReading{Months: map[string]MonthUsage{}}
	say := func(format string, args ...any) { wrong = append(wrong, "usage: "+fmt.Sprintf(format, args...)) }
	committed := map[string]time.Time{}
	var usages []usageSpec
	for _, object := range list {
		var usage usageSpec
		text, err := json.Marshal(object.Object["usage"])
		if err = cmp.Or(err, json.Unmarshal(text, &usage)); err != nil {
			say("%s: %v", object.GetName(), err)
			continue
		}
		begin, end, ok := monthBounds(usage.Month)
		begin, end = begin.Add(-ahead), end.Add(-ahead)
		if name := usage.name(); object.GetName() != name || !ok {
			say("%s says that it is %s", object.GetName(), name)
			continue
		}
		if usage.Since.Before(begin) || usage.Through.Before(usage.Since) || usage.Through.After(end) {
			say("%s is from %s to %s, and its month from %s to %s", usage.name(), usage.Since, usage.Through, begin, end)
		}
		if usage.Namespace == "" {
			committed[usage.Month] = usage.Through
			out.Through = max(out.Through, usage.Through.Unix())
			month := MonthUsage{begin.Unix(), end.Unix(), usage.Since.Unix(), usage.Through.Unix(), map[UsageKey]CardTime{}, map[string]ModelTime{}}
			for _, m := range usage.Models {
				month.Models[m.Model] = month.Models[m.Model].Plus(m.ModelTime)
			}
			out.Months[usage.Month] = month
		}
		usages = append(usages, usage)
	}
	for _, usage := range usages {
		month, there := out.Months[usage.Month]
		if usage.Namespace != "" && there {
			for _, row := range usage.at(committed[usage.Month]) {
				key := UsageKey{usage.Namespace, row.Model, row.Mode, row.Organization, row.Priority}
				month.Held[key] = month.Held[key].Plus(CardTime{row.CoreSeconds, row.MemoryMiBSeconds})
			}
		}
		begin, _, _ := monthBounds(usage.Month)
		last, had := out.Months[begin.AddDate(0, -1, 0).Format("2006-01")]
		if had && last.Through != last.End {
			say("%s is there, and the month before is through at %d and ends at %d", usage.name(), last.Through, last.End)
		}
		if had && there && month.Since != month.Begin {
			say("%s follows a month and begins %d s after it", usage.Month, month.Since-month.Begin)
		}
	}
	for name, month := range out.Months {
		month.addsUp(func(format string, args ...any) {
			say("%s through %d: "+format, append([]any{name, month.Through}, args...)...)
		})
	}
	slices.Sort(wrong)
	return
}

func (u *usageSpec) name() string {
	if u.Namespace == "" {
		return u.Month
	}
	return u.Month + "." + u.Namespace
}

// addsUp says what in a month does not.
func (m *MonthUsage) addsUp(say func(format string, args ...any)) {
	parts := map[string]CardTime{}
	for key, time := range m.Held {
		parts[key.Model] = parts[key.Model].Plus(time)
	}
	for model, row := range m.Models {
		if given, had := row.Parts.Plus(row.Idle).Plus(row.Unhealthy).Plus(row.Unattributed), row.Capacity.Plus(row.Beyond); given != had {
			say("model %s has parts, idle, unhealthy and unattributed %v, and capacity and beyond %v", model, given, had)
		}
		if sum := parts[model]; sum != row.Parts {
			say("model %s has parts %v, and the rows of the namespaces are %v", model, row.Parts, sum)
		}
		delete(parts, model)
	}
	for model, rest := range parts {
		if rest != (CardTime{}) {
			say("namespaces have %v of model %s, which the whole cluster does not know", rest, model)
		}
	}
}

// Usage reads all objects, in one list, which is of one moment.
func (c *Cluster) Usage(ctx context.Context, ahead time.Duration) (UsageReading, []string, error) {
	list, err := c.Dynamic.Resource(Usages).List(ctx, metav1.ListOptions{})
	if err != nil {
		return UsageReading{}, nil, err
	}
	out, wrong := ReadUsage(list.Items, ahead)
	return out, wrong, nil
}

// Shrunk says what is less in a later reading; months are never deleted in a test.
func Shrunk(before, after UsageReading) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, "usage: "+fmt.Sprintf(format, args...)) }
	if after.Through < before.Through {
		say("the checkpoint went back from %d to %d", before.Through, after.Through)
	}
	for name, month := range before.Months {
		now, there := after.Months[name]
		if !there {
			say("%s is gone", name)
		}
		for key, time := range month.Held {
			if !time.Within(now.Held[key]) {
				say("%s: %v had %v and has %v", name, key, time, now.Held[key])
			}
		}
		for model, row := range month.Models {
			for column, pair := range row.columns(now.Models[model]) {
				if !pair[0].Within(pair[1]) {
					say("%s: model %s had %s %v and has %v", name, model, column, pair[0], pair[1])
				}
			}
		}
	}
	slices.Sort(wrong)
	return
}
