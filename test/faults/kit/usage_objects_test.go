package kit

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// written: an object of each kind. The cluster's checkpoint is of 10:00:10; team-a's next one, of 10:00:20, was written before the operator was killed.
func written(t *testing.T, edit func(cluster, teamA map[string]any)) []unstructured.Unstructured {
	t.Helper()
	texts := []string{`{"metadata":{"name":"2026-11"},"usage":{"month":"2026-11","since":"2026-11-01T00:00:00Z","through":"2026-11-02T10:00:10Z","models":[
		{"model":"T4","capacity":{"coreSeconds":1000,"memoryMiBSeconds":100000},"parts":{"coreSeconds":300,"memoryMiBSeconds":30000},
		"idle":{"coreSeconds":690,"memoryMiBSeconds":69000},"unhealthy":{"coreSeconds":0,"memoryMiBSeconds":0},
		"unattributed":{"coreSeconds":20,"memoryMiBSeconds":2000},"beyond":{"coreSeconds":10,"memoryMiBSeconds":1000}}]}}`,
		`{"metadata":{"name":"2026-11.team-a"},"usage":{"month":"2026-11","namespace":"team-a","since":"2026-11-01T00:00:00Z","through":"2026-11-02T10:00:20Z",
		"rows":[{"model":"T4","mode":"vGPU","coreSeconds":400,"memoryMiBSeconds":40000}],
		"before":{"through":"2026-11-02T10:00:10Z","rows":[{"model":"T4","mode":"vGPU","coreSeconds":200,"memoryMiBSeconds":20000}]}}}`,
		`{"metadata":{"name":"2026-11.team-b"},"usage":{"month":"2026-11","namespace":"team-b","since":"2026-11-01T00:00:00Z","through":"2026-11-02T10:00:00Z",
		"rows":[{"model":"T4","mode":"pGPU","priority":7,"organization":"red","coreSeconds":100,"memoryMiBSeconds":10000}]}}`}
	out := make([]unstructured.Unstructured, len(texts))
	for i, text := range texts {
		Must(t, json.Unmarshal([]byte(text), &out[i].Object))
	}
	if edit != nil {
		edit(out[0].Object["usage"].(map[string]any), out[1].Object["usage"].(map[string]any))
	}
	return out
}

func TestUsageIsReadAtTheLastCheckpoint(t *testing.T) {
	reading, wrong := ReadUsage(written(t, nil), 0)
	got := reading.Months[november]
	expect(t, wrong)
	if a := got.Held[UsageKey{"team-a", "T4", "vGPU", "", 0}]; a != (CardTime{200, 20000}) {
		t.Errorf("team-a has %v, which is not what it had at the checkpoint of the cluster", a)
	}
	if b := got.Held[UsageKey{"team-b", "T4", "pGPU", "red", 7}]; b != (CardTime{100, 10000}) || len(got.Held) != 2 {
		t.Errorf("team-b has %v of %v", b, got.Held)
	}
}

func TestUsageThatDoesNotAddUpIsFound(t *testing.T) {
	model := func(cluster map[string]any, column string) map[string]any {
		return cluster["models"].([]any)[0].(map[string]any)[column].(map[string]any)
	}
	_, wrong := ReadUsage(written(t, func(cluster, _ map[string]any) { model(cluster, "idle")["memoryMiBSeconds"] = 1 }), 0)
	expect(t, wrong, "and capacity and beyond")
	_, wrong = ReadUsage(written(t, func(cluster, _ map[string]any) {
		model(cluster, "idle")["coreSeconds"], model(cluster, "parts")["coreSeconds"] = 689, 301
	}), 0)
	expect(t, wrong, "rows of the namespaces")
	_, wrong = ReadUsage(written(t, func(cluster, _ map[string]any) { cluster["through"] = "2026-11-02T10:00:20Z" }), 0) // the wrong state would be read
	expect(t, wrong, "rows of the namespaces")
	_, wrong = ReadUsage(written(t, func(_, teamA map[string]any) { delete(teamA, "before") }), 0)
	expect(t, wrong, "rows of the namespaces")
	_, wrong = ReadUsage(written(t, func(cluster, _ map[string]any) { cluster["models"] = []any{} }), 0)
	expect(t, wrong, "does not know")
}

func TestUsageThatShrinksIsFound(t *testing.T) {
	before, _ := ReadUsage(written(t, nil), 0)
	after, _ := ReadUsage(written(t, func(cluster, teamA map[string]any) {
		cluster["through"] = "2026-11-02T10:00:09Z"
		teamA["rows"].([]any)[0].(map[string]any)["coreSeconds"] = 1
		teamA["before"].(map[string]any)["rows"].([]any)[0].(map[string]any)["coreSeconds"] = 199
		teamA["before"].(map[string]any)["through"] = "2026-11-02T10:00:09Z"
	}), 0)
	expect(t, Shrunk(before, after), "had {200 20000} and has {199 20000}", "checkpoint went back")
	expect(t, Shrunk(before, before))
}

// Operators whose day is ahead write months of that day, and moments that the proxy has moved back.
func TestMonthsAreClosedAtTheirEnd(t *testing.T) {
	const ahead = 30*24*time.Hour + 14*time.Hour
	months := func(through, since string, further ...string) (wrong []string) {
		var list []unstructured.Unstructured
		for _, text := range append(further, `{"metadata":{"name":"2026-11"},"usage":{"month":"2026-11","since":"2026-10-15T00:00:00Z","through":"`+through+`"}}`,
			`{"metadata":{"name":"2026-12"},"usage":{"month":"2026-12","since":"`+since+`","through":"2026-10-31T11:00:00Z"}}`) {
			var object unstructured.Unstructured
			Must(t, json.Unmarshal([]byte(text), &object.Object))
			list = append(list, object)
		}
		reading, wrong := ReadUsage(list, ahead)
		if last := reading.Months[december]; last.Begin != time.Date(2026, 10, 31, 10, 0, 0, 0, time.UTC).Unix() || reading.Through != last.Through {
			t.Errorf("December is %+v, read through %d", last, reading.Through)
		}
		return
	}
	expect(t, months("2026-10-31T10:00:00Z", "2026-10-31T10:00:00Z"))
	expect(t, months("2026-10-31T09:59:59Z", "2026-10-31T10:00:00Z"), "2026-12 is there, and the month before")
	expect(t, months("2026-10-31T10:00:01Z", "2026-10-31T10:00:00Z"), "and its month from", "2026-12 is there, and the month before")
	expect(t, months("2026-10-31T10:00:00Z", "2026-10-31T10:00:05Z"), "follows a month and begins 5 s after it")
	expect(t, months("2026-10-31T10:00:00Z", "2026-10-31T09:59:00Z"), "begins -60 s after it", "and its month from")
	expect(t, months("2026-10-31T10:00:00Z", "2026-10-31T10:00:00Z", `{"metadata":{"name":"2027-01.a"},"usage":{"month":"2027-01","namespace":"a",
		"since":"2026-12-01T10:00:00Z","through":"2026-12-01T10:00:05Z"}}`), "2027-01.a is there, and the month before")
}
