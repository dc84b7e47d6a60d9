package kit

import (
	"strings"
	"testing"
)

func onNode(v uint64, label string, tainted bool) ModeMoment {
	return ModeMoment{Version: v, Node: &NodeSeen{Name: "n", UID: "1", Module: label, Tainted: tainted}}
}

func plugin(v uint64, uid, module string, leaving, gone bool) ModeMoment {
	return ModeMoment{Version: v, Gone: gone, Pod: &PodSeen{Name: "quartermaster/" + uid, Node: "n", Module: module, UID: "p", Leaving: leaving}}
}

// A history is known to be bad or good before the judge sees it.
func TestModeFaultsFindsWhatMustNeverBe(t *testing.T) {
	second := plugin(4, "b", "vgpu", false, false)
	second.Pod.UID = "q"
	user := func(v uint64, leaving, gone bool) ModeMoment {
		return ModeMoment{Version: v, Gone: gone, Pod: &PodSeen{Name: "default/u", Node: "n", UID: "u", Leaving: leaving}}
	}
	holds := func(v uint64) ModeMoment {
		m := user(v, false, false)
		m.Pod.Holds = "pgpu"
		return m
	}
	for _, test := range []struct {
		what, finds string
		history     []ModeMoment
		rules       ModeRules
	}{
		{"a change as it should be", "", []ModeMoment{onNode(1, "pgpu", false), plugin(2, "a", "pgpu", false, false), onNode(3, "pgpu", true), onNode(4, "", true),
			plugin(5, "a", "pgpu", true, false), plugin(6, "a", "pgpu", true, true), onNode(7, "vgpu", true), plugin(8, "b", "vgpu", false, false), onNode(9, "vgpu", false)}, ModeRules{}},
		{"the same, told in another order", "", []ModeMoment{plugin(6, "a", "pgpu", true, true), plugin(8, "b", "vgpu", false, false), onNode(1, "pgpu", false), onNode(7, "vgpu", true),
			plugin(2, "a", "pgpu", false, false), onNode(4, "", true), plugin(5, "a", "pgpu", true, false), onNode(3, "pgpu", true), onNode(9, "vgpu", false)}, ModeRules{}},
		{"a second plugin next to one that is leaving", "version 4: plugins of 2 modules on node n: pgpu (quartermaster/a), vgpu (quartermaster/b)",
			[]ModeMoment{onNode(1, "vgpu", true), plugin(2, "a", "pgpu", false, false), plugin(3, "a", "pgpu", true, false), second, plugin(5, "a", "pgpu", true, true)}, ModeRules{}},
		{"a label flipped without a taint", `version 3: plugin pod quartermaster/a of pgpu on node n, which has module label "vgpu"`,
			[]ModeMoment{onNode(1, "pgpu", false), plugin(2, "a", "pgpu", false, false), onNode(3, "vgpu", false)}, ModeRules{}},
		{"a taint taken away too early", "version 5", []ModeMoment{onNode(1, "pgpu", false), plugin(2, "a", "pgpu", false, false), onNode(3, "pgpu", true), onNode(4, "", true), onNode(5, "", false)}, ModeRules{}},
		{"a first mode given up quietly", "", []ModeMoment{onNode(1, "pgpu", false), plugin(2, "a", "pgpu", false, false), onNode(3, "", false), plugin(4, "a", "pgpu", true, false)},
			ModeRules{MayLeaveQuietly: func(string) bool { return true }}},
		{"a plugin taken from a pod that has its cards", "version 4: node n leaves mode pgpu, of which pod default/u has cards",
			[]ModeMoment{onNode(1, "pgpu", false), holds(2), onNode(3, "pgpu", true), onNode(4, "", true)}, ModeRules{}},
		{"the same when the pod has ended", "", []ModeMoment{onNode(1, "pgpu", false), holds(2), onNode(3, "pgpu", true), user(4, false, true), onNode(5, "", true)},
			ModeRules{MayEnd: func(string) bool { return true }}},
		{"a pod evicted", "version 3: pod default/u", []ModeMoment{onNode(1, "pgpu", false), user(2, false, false), user(3, true, false), user(4, true, true)}, ModeRules{}},
		{"a pod gone at once", "version 3: pod default/u", []ModeMoment{onNode(1, "pgpu", false), user(2, false, false), user(3, false, true)}, ModeRules{}},
		{"a pod that was ended by its owner", "", []ModeMoment{onNode(1, "pgpu", false), user(2, false, false), user(3, true, false), user(4, true, true)},
			ModeRules{MayEnd: func(string) bool { return true }}},
	} {
		got := ModeFaults(test.history, test.rules)
		if test.finds == "" && len(got) > 0 {
			t.Errorf("%s: found %q", test.what, got)
		}
		if test.finds != "" && (len(got) != 1 || !strings.HasPrefix(got[0], test.finds)) {
			t.Errorf("%s: found %q, want one that begins with %q", test.what, got, test.finds)
		}
	}
}
