package kit

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What was done while testdata/audit.log was recorded, with seconds of 2026-11-25 16:00 UTC:
//
//	29:24  pods a, b, c of default and d, e of team-a are bound, 20 cores and 2 GiB each; b and e have no grace
//	29:27  c has ended, which is reported in 29:28; a and b are deleted, then c; team-a is deleted, which takes d and e in 29:33
//	34:48  team-b: two cards of priority 1000, three FPGAs, a share; a pod that fits nowhere waits
//	34:50  the FPGAs' pod is evicted; the share's deletion is only tried (dry run), the waiting pod's is real
//	34:52  the share's pod is deleted and made again under its name as a whole card; 34:53 one more share, which stays
//	34:54  the two cards' pod has failed, which is reported in 34:55
var recorded = map[string]CardStock{
	"vgpu-0": {Module: "vgpu", Model: "Tesla-T4", Cards: 8, MemoryMiB: 15360},
	"pgpu-0": {Module: "pgpu", Model: "Tesla-T4", Cards: 8, MemoryMiB: 15360, Counts: map[string]int64{"example.com/fpga": 4}},
}

const recordedDay = 1795622400 // 2026-11-25 16:00:00 UTC

func clock(minute, second int64) int64 { return recordedDay + minute*60 + second }

func readRecorded(t *testing.T, file string) *AuditLedger {
	t.Helper()
	l := NewAuditLedger(file, recorded)
	l.Organization = "org"
	Must(t, l.Follow())
	return l
}

func TestAuditLedgerReadsWhoHeldWhat(t *testing.T) {
	l := readRecorded(t, "testdata/audit.log")
	want := []struct {
		name         string
		since, until int64
	}{
		{"default/a", clock(29, 24), clock(29, 28)}, {"default/b", clock(29, 24), clock(29, 28)}, {"default/c", clock(29, 24), clock(29, 27)},
		{"team-a/d", clock(29, 24), clock(29, 33)}, {"team-a/e", clock(29, 24), clock(29, 33)},
		{"team-b/whole", clock(34, 48), clock(34, 54)}, {"team-b/counted", clock(34, 48), clock(34, 50)}, {"team-b/again", clock(34, 48), clock(34, 52)},
		{"team-b/again", clock(34, 52), 0}, {"team-b/stays", clock(34, 53), 0},
	}
	stays := l.Stays()
	if len(stays) != len(want) {
		t.Errorf("%d stays, want %d", len(stays), len(want))
	}
	for _, expected := range want {
		found := false
		for _, s := range stays {
			found = found || (s.Name() == expected.name && s.Since == expected.since && s.Until == expected.until)
		}
		if !found {
			for _, s := range stays {
				if s.Name() == expected.name {
					t.Errorf("%s held its part from %d to %d, want %d to %d", s.Name(), s.Since-recordedDay, s.Until-recordedDay, expected.since-recordedDay, expected.until-recordedDay)
				}
			}
		}
	}
	if untold := l.Resolve(nil); !slices.Equal(untold, []string{"team-b/again", "team-b/stays"}) {
		t.Errorf("the log does not tell of the end of %v, want again and stays", untold)
	}
}

func TestAuditLedgerKnowsThatAFailedDeletionMayHaveHappened(t *testing.T) {
	whole, err := os.ReadFile("testdata/audit.log")
	Must(t, err)
	file := filepath.Join(t.TempDir(), "audit.log")
	Must(t, os.WriteFile(file, append(whole, []byte(`{"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/team-b/pods/stays","verb":"delete","objectRef":`+
		`{"resource":"pods","namespace":"team-b","name":"stays"},"responseStatus":{"code":504},"responseObject":{"kind":"Status"},`+
		`"requestReceivedTimestamp":"2026-11-25T16:34:58.5Z","stageTimestamp":"2026-11-25T16:35:03.5Z"}`+"\n")...), 0o600))
	l := readRecorded(t, file)
	there := map[types.UID]bool{}
	for _, s := range l.Stays() {
		there[s.Pod.UID] = true
	}
	if l.Resolve(there); l.Stays()[9].Until != 0 {
		t.Errorf("a pod that is there held its part until %d", l.Stays()[9].Until)
	}
	if untold := l.Resolve(nil); !slices.Equal(untold, []string{"team-b/again"}) || l.Stays()[9].Until != clock(34, 58) {
		t.Errorf("untold: %v; %s held its part until %d", untold, l.Stays()[9].Name(), l.Stays()[9].Until-recordedDay)
	}
}

func TestAuditLedgerAddsUp(t *testing.T) {
	l := readRecorded(t, "testdata/audit.log")
	share := CardTime{20, 2048}
	want := map[UsageKey]CardTime{
		{"default", "Tesla-T4", "vGPU", "", 0}:             share.Times(4 + 4 + 3),
		{"team-a", "Tesla-T4", "vGPU", "", 0}:              share.Times(9 + 9),
		{"team-b", "Tesla-T4", "pGPU", "red", 1000}:        CardTime{200, 2 * 15360}.Times(6),
		{"team-b", "Tesla-T4", "vGPU", "red", 0}:           share.Times(4).Plus(CardTime{50, 5120}.Times(7)),
		{"team-b", "Tesla-T4", "pGPU", "red", 0}:           CardTime{100, 15360}.Times(8),
		{"team-b", "example.com/fpga", "device", "red", 0}: {CoreSeconds: 300 * 2},
	}
	if got := l.Held(clock(0, 0), clock(35, 0)); !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	sum := map[UsageKey]CardTime{} // any cut of the time gives the same sum
	for begin := clock(29, 0); begin < clock(35, 0); begin += 7 {
		for key, part := range l.Held(begin, min(begin+7, clock(35, 0))) {
			sum[key] = sum[key].Plus(part)
		}
	}
	if !maps.Equal(sum, want) {
		t.Errorf("in stretches of 7 s: got  %v\nwant %v", sum, want)
	}
	capacity := Capacity(recorded)
	if want := map[string]CardTime{"Tesla-T4": {1600, 16 * 15360}, "example.com/fpga": {CoreSeconds: 400}}; !maps.Equal(capacity, want) {
		t.Errorf("the capacity is %v, want %v", capacity, want)
	}
}

func TestAuditLedgerReadsALogThatGrows(t *testing.T) {
	whole, err := os.ReadFile("testdata/audit.log")
	Must(t, err)
	file := filepath.Join(t.TempDir(), "audit.log")
	Must(t, os.WriteFile(file, whole[:len(whole)/2], 0o600)) // in the middle of a line
	l := readRecorded(t, file)
	before := len(l.Stays())
	Must(t, os.WriteFile(file, whole, 0o600))
	Must(t, l.Follow())
	if got, want := l.Held(clock(0, 0), clock(35, 0)), readRecorded(t, "testdata/audit.log").Held(clock(0, 0), clock(35, 0)); before == 0 || before == len(l.Stays()) || !maps.Equal(got, want) {
		t.Errorf("read in two parts, %d stays and then %d: got %v, want %v", before, len(l.Stays()), got, want)
	}
}

func TestAuditLedgerRefusesALogWithoutBodies(t *testing.T) {
	whole, err := os.ReadFile("testdata/audit.log")
	Must(t, err)
	_, pods, _ := bytes.Cut(whole, []byte(`"resource":"pods"`))
	line, _, _ := bytes.Cut(append([]byte(`{"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods"`), pods...), []byte("\n"))
	head, _, _ := bytes.Cut(line, []byte(`"responseObject"`))
	file := filepath.Join(t.TempDir(), "audit.log")
	Must(t, os.WriteFile(file, append(head, []byte(`"stageTimestamp":"2026-11-25T16:29:24Z"}`+"\n")...), 0o600))
	if err := NewAuditLedger(file, recorded).Follow(); err == nil || !strings.Contains(err.Error(), "--audit-bodies") {
		t.Errorf("a log without bodies was read: %v", err)
	}
}
