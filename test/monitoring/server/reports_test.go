package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

// A Prometheus that has measured three shares for more than a day, and one for an hour. The series are those that the agent and the rule
// share:quartermaster_share_memory_used:ratio make.
func TestRightSizeReadsARealPrometheus(t *testing.T) {
	shares := []struct {
		pod, ns string
		hours   int
		used    float64
	}{{"infer", "team-a", 26, 0.1}, {"busy", "team-a", 26, 0.9}, {"train", "team-b", 26, 0.25}, {"fresh", "team-b", 1, 0.1}}
	const given = 15360 << 20
	ratio, bytes := "share:quartermaster_share_memory_used:ratio", "quartermaster_share_allocated_memory_bytes"
	text := map[string]*strings.Builder{ratio: {}, bytes: {}}
	now := time.Now().Unix()
	for _, share := range shares {
		labels := fmt.Sprintf(`{node="gpu-1",uuid="GPU-%s",model="Tesla-T4",mode="vgpu",namespace="%s",pod="%s",container="main"}`, share.pod, share.ns, share.pod)
		for at := now - int64(share.hours)*3600; at < now+120; at += 60 {
			fmt.Fprintf(text[ratio], "%s%s %g %d\n", ratio, labels, share.used, at)
			fmt.Fprintf(text[bytes], "%s%s %d %d\n", bytes, labels, given, at)
		}
	}
	folder := t.TempDir()
	file, data := filepath.Join(folder, "series"), filepath.Join(folder, "data")
	all := fmt.Sprintf("# TYPE %s gauge\n%s# TYPE %s gauge\n%s# EOF\n", ratio, text[ratio], bytes, text[bytes])
	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, "", chart.Tool("prometheus-*", "promtool"), "tsdb", "create-blocks-from", "openmetrics", file, data)
	address := startPrometheusOn(t, map[string]any{}, data)
	report := []string{"report", "right-size", "--prometheus-url", address}
	out := call(t, "", program, report...)
	if lines := strings.Split(out, "\n"); len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "team-a infer main Tesla-T4 15360 1536 10% 2048" ||
		strings.Join(strings.Fields(lines[2]), " ") != "team-b train main Tesla-T4 15360 3840 25% 4864" {
		t.Error(out)
	}
	if out := call(t, "", program, append(report, "-n", "team-b")...); strings.Contains(out, "team-a") || !strings.Contains(out, "train") {
		t.Error(out)
	}
	if out := call(t, "", program, append(report, "-n", "team-c")...); !strings.Contains(out, "No container used less than 30 %") {
		t.Error(out)
	}
}
