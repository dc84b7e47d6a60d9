package kit

import (
	"encoding/json"
	"testing"

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
	got, wrong := ReadUsage(written(t, nil))
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
	_, wrong := ReadUsage(written(t, func(cluster, _ map[string]any) { model(cluster, "idle")["memoryMiBSeconds"] = 1 }))
	expect(t, wrong, "and capacity and beyond")
	_, wrong = ReadUsage(written(t, func(cluster, _ map[string]any) {
		model(cluster, "idle")["coreSeconds"], model(cluster, "parts")["coreSeconds"] = 689, 301
	}))
	expect(t, wrong, "rows of the namespaces")
	_, wrong = ReadUsage(written(t, func(cluster, _ map[string]any) { cluster["through"] = "2026-11-02T10:00:20Z" })) // the wrong state would be read
	expect(t, wrong, "rows of the namespaces")
	_, wrong = ReadUsage(written(t, func(_, teamA map[string]any) { delete(teamA, "before") }))
	expect(t, wrong, "rows of the namespaces")
	_, wrong = ReadUsage(written(t, func(cluster, _ map[string]any) { cluster["models"] = []any{} }))
	expect(t, wrong, "does not know")
}

func TestUsageThatShrinksIsFound(t *testing.T) {
	before, _ := ReadUsage(written(t, nil))
	after, _ := ReadUsage(written(t, func(cluster, teamA map[string]any) {
		cluster["through"] = "2026-11-02T10:00:09Z"
		teamA["rows"].([]any)[0].(map[string]any)["coreSeconds"] = 1
		teamA["before"].(map[string]any)["rows"].([]any)[0].(map[string]any)["coreSeconds"] = 199
		teamA["before"].(map[string]any)["through"] = "2026-11-02T10:00:09Z"
	}))
	expect(t, Shrunk(before, after), "checkpoint went back", "had {200 20000} and has {199 20000}")
	expect(t, Shrunk(before, before))
}
