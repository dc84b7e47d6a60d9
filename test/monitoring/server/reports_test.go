package server

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	if out := call(t, "", program, append(report, "-n", "team-c")...); !strings.Contains(out, "used less than 30 %") || !strings.Contains(out, "-n team-c") {
		t.Error(out)
	}
}

// A Prometheus that takes HTTPS and a password: a report has both from files, and says in one line what is wrong with them.
func TestAReportAsksAPrometheusWithAPassword(t *testing.T) {
	folder := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	server := httptest.NewTLSServer(nil) // for its certificate, which is its own authority
	pair := server.TLS.Certificates[0]
	server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	authority := put("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	put("tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	// The hash of "open sesame".
	web := put("web.yml", "tls_server_config: {cert_file: ca.crt, key_file: tls.key}\nbasic_auth_users: {jane: $2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy}\n")
	address := strings.Replace(startPrometheusOn(t, map[string]any{}, filepath.Join(folder, "data"), "--web.config.file", web), "http:", "https:", 1)
	name, password := put("username", "jane\n"), put("password", "open sesame\n")
	report := []string{"report", "right-size", "--prometheus-url", address, "--prometheus-ca-file", authority}
	signed := append(slices.Clone(report), "--prometheus-username-file", name, "--prometheus-password-file")
	said := func(arguments []string) string {
		out, _ := exec.Command(program, arguments...).CombinedOutput()
		return string(out)
	}
	// It has no series yet, which only who is let in gets to know.
	until(t, 30*time.Second, "it lets us in", func() error {
		if out := said(append(signed, password)); !strings.Contains(out, "of a day ago") {
			return errors.New(out)
		}
		return nil
	})
	for _, refused := range [][]string{report, append(signed, put("wrong", "open barley"))} {
		if out := said(refused); strings.Count(out, "\n") != 1 || !strings.Contains(out, "401") || strings.Contains(out, "barley") {
			t.Errorf("%v: %s", refused, out)
		}
	}
}
