package kit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const fiveDays = 5*24*time.Hour + 3*time.Minute + 7*time.Second

func TestTextsAreShifted(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"2026-11-25T23:59:59Z"}`:                              `{"a":"2026-12-01T00:03:06Z"}`,
		`{"a":"2026-12-31T10:20:30.123456Z","b":1}`:                 `{"a":"2027-01-05T10:23:37.123456Z","b":1}`,
		`"2028-02-27T00:00:00+08:00"`:                               `"2028-03-03T00:03:07+08:00"`,
		`["2026-11-25T00:00:00Z","2026-11-25T00:00:00.5Z"]`:         `["2026-11-30T00:03:07Z","2026-11-30T00:03:07.5Z"]`,
		`2026-11-25 and 10:00:00Z and 2026-11-25T10:00:00 and -11Z`: `2026-11-25 and 10:00:00Z and 2026-11-25T10:00:00 and -11Z`,
		`0001-01-01T00:00:00Z 2026-13-41T00:00:00Z`:                 `0001-01-01T00:00:00Z 2026-13-41T00:00:00Z`,
	} {
		got := []byte(text)
		if shiftTexts(got, fiveDays); string(got) != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		if shiftTexts(got, -fiveDays); string(got) != text {
			t.Errorf("%s did not come back: %s", text, got)
		}
	}
}

// A pod and a lease as the server writes them, with names that look like times.
func podMessage(t *testing.T, moment time.Time) []byte {
	t.Helper()
	grace := int64(30)
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "\x08\x08\x10", CreationTimestamp: metav1.NewTime(moment), DeletionGracePeriodSeconds: &grace, Generation: 1795628915,
		Annotations: map[string]string{"when": moment.UTC().Format(time.RFC3339)}}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "PodScheduled", LastTransitionTime: metav1.NewTime(moment.Add(time.Second))}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 7, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(moment.Add(time.Minute))}}}}}}
	out, err := p.Marshal()
	Must(t, err)
	return out
}

func leaseMessage(t *testing.T, moment time.Time) []byte {
	t.Helper()
	renewed, holder, length := metav1.NewMicroTime(moment), "me", int32(15)
	out, err := (&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &length, RenewTime: &renewed}}).Marshal()
	Must(t, err)
	return out
}

var recordedMoment = time.Date(2026, 11, 25, 20, 11, 8, 0, time.UTC)

func TestMessagesAreShifted(t *testing.T) {
	for name, made := range map[string]func(*testing.T, time.Time) []byte{"pod": podMessage, "lease": leaseMessage} {
		for _, part := range []time.Duration{0, time.Microsecond, 123456 * time.Microsecond, 999999 * time.Microsecond} {
			moment := recordedMoment.Add(part)
			got, want := made(t, moment), made(t, moment.Add(fiveDays))
			shiftTexts(got, fiveDays)
			if shiftMessages(got, fiveDays); !bytes.Equal(got, want) {
				t.Errorf("%s of %s: got\n%q, want\n%q", name, moment, got, want)
			}
		}
	}
}

func framed(messages ...[]byte) (out []byte) {
	for _, m := range messages {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(m))), m...)
	}
	return
}

type body struct {
	kind         string
	watch        bool
	before, then []byte
}

func bodies(t *testing.T) map[string]body {
	line := func(moment string) string { return `{"type":"MODIFIED","object":{"at":"` + moment + `"}}` + "\n" }
	return map[string]body{
		"a list in protobuf":  {"application/vnd.kubernetes.protobuf", false, podMessage(t, recordedMoment), podMessage(t, recordedMoment.Add(fiveDays))},
		"a watch in protobuf": {"application/vnd.kubernetes.protobuf;stream=watch", true, framed(podMessage(t, recordedMoment), leaseMessage(t, recordedMoment)), framed(podMessage(t, recordedMoment.Add(fiveDays)), leaseMessage(t, recordedMoment.Add(fiveDays)))},
		"a list in JSON":      {"application/json", false, []byte(`{"at":"2026-11-25T00:00:00Z"}`), []byte(`{"at":"2026-11-30T00:03:07Z"}`)},
		"a watch in JSON":     {"application/json", true, []byte(line("2026-11-25T00:00:00Z") + line("2026-11-25T00:00:01.5Z")), []byte(line("2026-11-30T00:03:07Z") + line("2026-11-30T00:03:08.5Z"))},
	}
}

func (b body) header() http.Header { return http.Header{"Content-Type": []string{b.kind}} }

// Wherever the network cuts an answer into chunks, the same comes out.
func TestBodiesAreShiftedWhereverTheyAreSplit(t *testing.T) {
	for name, b := range bodies(t) {
		for cut := range len(b.before) + 1 {
			chunks := io.MultiReader(bytes.NewReader(b.before[:cut]), bytes.NewReader(b.before[cut:]))
			if got, err := io.ReadAll(newShiftedBody(chunks, b.header(), b.watch, fiveDays)); err != nil || !bytes.Equal(got, b.then) {
				t.Fatalf("%s, split at %d: got %q and error %v, want %q", name, cut, got, err, b.then)
			}
		}
		single := iotest.OneByteReader(bytes.NewReader(b.before))
		if got, err := io.ReadAll(iotest.OneByteReader(newShiftedBody(single, b.header(), b.watch, fiveDays))); err != nil || !bytes.Equal(got, b.then) {
			t.Errorf("%s, byte by byte: got %q and error %v, want %q", name, got, err, b.then)
		}
	}
}

// What is whole comes at once, though nothing follows it; a body that breaks off is one that breaks off.
func TestShiftedWatchDoesNotWait(t *testing.T) {
	for name, b := range bodies(t) {
		if !b.watch {
			continue
		}
		in, out := io.Pipe()
		go out.Write(b.before)
		shifted, got := newShiftedBody(in, b.header(), b.watch, fiveDays), make([]byte, len(b.then))
		done := make(chan error, 1)
		go func() { _, err := io.ReadFull(shifted, got); done <- err }()
		select {
		case err := <-done:
			if err != nil || !bytes.Equal(got, b.then) {
				t.Errorf("%s: got %q, error %v", name, got, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: what is whole is held back", name)
		}
		out.Close()
	}
	broken := errors.New("broken")
	for name, b := range bodies(t) {
		half := io.MultiReader(bytes.NewReader(b.before[:len(b.before)/2]), iotest.ErrReader(broken))
		if got, err := io.ReadAll(newShiftedBody(half, b.header(), b.watch, fiveDays)); !errors.Is(err, broken) || len(got) != len(b.before)/2 {
			t.Errorf("%s that breaks off: %d bytes of %d and error %v", name, len(got), len(b.before)/2, err)
		}
	}
}

func TestProxy_shows_another_day(t *testing.T) {
	var told string
	p, client := behind(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		told = string(text)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", recordedMoment.Format(http.TimeFormat))
		w.Write(text)
	})
	p.Ahead = fiveDays
	reply, err := client.Post(p.URL+"/api/v1/namespaces", "application/json", strings.NewReader(`{"at":"2026-12-01T00:00:00Z"}`))
	Must(t, err)
	got, err := io.ReadAll(reply.Body)
	Must(t, err)
	if want := `{"at":"2026-11-25T23:56:53Z"}`; told != want || string(p.Log()[0].Body) != want {
		t.Errorf("the server was told %s, and the log has %s, want %s", told, p.Log()[0].Body, want)
	}
	if date := reply.Header.Get("Date"); string(got) != `{"at":"2026-12-01T00:00:00Z"}` || date != "Mon, 30 Nov 2026 20:14:15 GMT" {
		t.Errorf("the operator was told %s at %s", got, date)
	}
}
