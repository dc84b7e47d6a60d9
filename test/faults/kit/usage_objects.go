package kit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// UsageReading is the last checkpoint: all months together.
type UsageReading struct {
	Through int64
	Held    map[UsageKey]CardTime
	Models  map[string]ModelTime
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

// ReadUsage from objects of one list. `wrong` is what no list may ever show: sums that do not add up.
func ReadUsage(list []unstructured.Unstructured) (out UsageReading, wrong []string) {
	out = UsageReading{Held: map[UsageKey]CardTime{}, Models: map[string]ModelTime{}}
	say := func(format string, args ...any) { wrong = append(wrong, "usage: "+fmt.Sprintf(format, args...)) }
	committed, parts := map[string]time.Time{}, map[string]map[string]CardTime{} // by month, and there by model
	var usages []usageSpec
	for _, object := range list {
		var usage usageSpec
		text, err := json.Marshal(object.Object["usage"])
		if err = cmp.Or(err, json.Unmarshal(text, &usage)); err != nil {
			say("%s: %v", object.GetName(), err)
			continue
		}
		name := usage.Month
		if usage.Namespace != "" {
			name += "." + usage.Namespace
		}
		if object.GetName() != name {
			say("%s says that it is %s", object.GetName(), name)
		}
		if usage.Through.Before(usage.Since) {
			say("%s is through at %s and begins at %s", name, usage.Through, usage.Since)
		}
		if usage.Namespace == "" {
			committed[usage.Month], parts[usage.Month] = usage.Through, map[string]CardTime{}
			out.Through = max(out.Through, usage.Through.Unix())
		}
		usages = append(usages, usage)
	}
	for _, usage := range usages {
		if usage.Namespace == "" {
			continue
		}
		for _, row := range usage.at(committed[usage.Month]) {
			key := UsageKey{usage.Namespace, row.Model, row.Mode, row.Organization, row.Priority}
			time := CardTime{row.CoreSeconds, row.MemoryMiBSeconds}
			out.Held[key] = out.Held[key].Plus(time)
			if parts[usage.Month] != nil {
				parts[usage.Month][row.Model] = parts[usage.Month][row.Model].Plus(time)
			}
		}
	}
	for _, usage := range usages {
		for _, m := range usage.Models {
			row := m.ModelTime
			if given, had := row.Parts.Plus(row.Idle).Plus(row.Unhealthy).Plus(row.Unattributed), row.Capacity.Plus(row.Beyond); given != had {
				say("%s through %s: model %s has parts, idle, unhealthy and unattributed %v, and capacity and beyond %v", usage.Month, usage.Through, m.Model, given, had)
			}
			if sum := parts[usage.Month][m.Model]; sum != row.Parts {
				say("%s through %s: model %s has parts %v, and the rows of the namespaces are %v", usage.Month, usage.Through, m.Model, row.Parts, sum)
			}
			delete(parts[usage.Month], m.Model)
			out.Models[m.Model] = out.Models[m.Model].Plus(row)
		}
	}
	for month, rest := range parts {
		for _, model := range slices.Sorted(maps.Keys(rest)) {
			if rest[model] != (CardTime{}) {
				say("%s: namespaces have %v of model %s, which the whole cluster does not know", month, rest[model], model)
			}
		}
	}
	return
}

// Usage reads all objects, in one list, which is of one moment.
func (c *Cluster) Usage(ctx context.Context) (UsageReading, []string, error) {
	list, err := c.Dynamic.Resource(Usages).List(ctx, metav1.ListOptions{})
	if err != nil {
		return UsageReading{}, nil, err
	}
	out, wrong := ReadUsage(list.Items)
	return out, wrong, nil
}

// Shrunk says what is less in a later reading; months are never deleted in a test.
func Shrunk(before, after UsageReading) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, "usage: "+fmt.Sprintf(format, args...)) }
	if after.Through < before.Through {
		say("the checkpoint went back from %d to %d", before.Through, after.Through)
	}
	for key, time := range before.Held {
		if !time.Within(after.Held[key]) {
			say("%v had %v and has %v", key, time, after.Held[key])
		}
	}
	for model, row := range before.Models {
		now := after.Models[model]
		for name, pair := range map[string][2]CardTime{"capacity": {row.Capacity, now.Capacity}, "parts": {row.Parts, now.Parts}, "idle": {row.Idle, now.Idle},
			"unhealthy": {row.Unhealthy, now.Unhealthy}, "unattributed": {row.Unattributed, now.Unattributed}, "beyond": {row.Beyond, now.Beyond}} {
			if !pair[0].Within(pair[1]) {
				say("model %s had %s %v and has %v", model, name, pair[0], pair[1])
			}
		}
	}
	slices.Sort(wrong)
	return
}
