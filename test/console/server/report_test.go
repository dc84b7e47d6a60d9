package server

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usage is a month in which red held half a Tesla-T4 for two hours and blue a whole one for one, of two cards in ten hours.
func usage(t *testing.T, month, redCores string) {
	t.Helper()
	kubectl(t, fmt.Sprintf(`
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorPolicy
metadata: {name: default}
spec: {chargeback: {currency: EUR, prices: [{model: "Tesla-*", cardHour: "2.50"}]}}
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorUsage
metadata: {name: %[1]s.red, labels: {quartermaster.io/usage-month: "%[1]s"}}
usage: {month: "%[1]s", namespace: red, since: "%[1]s-01T00:00:00Z", through: "%[1]s-01T10:00:00Z", rows: [
  {model: Tesla-T4, mode: vGPU, organization: "=1+1", coreSeconds: %[2]s, memoryMiBSeconds: 1000}]}
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorUsage
metadata: {name: %[1]s.blue, labels: {quartermaster.io/usage-month: "%[1]s"}}
usage: {month: "%[1]s", namespace: blue, since: "%[1]s-01T00:00:00Z", through: "%[1]s-01T10:00:00Z", rows: [
  {model: Tesla-T4, mode: pGPU, priority: -10, coreSeconds: 360000, memoryMiBSeconds: 55296000}]}
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorUsage
metadata: {name: "%[1]s", labels: {quartermaster.io/usage-month: "%[1]s"}}
usage: {month: "%[1]s", since: "%[1]s-01T00:00:00Z", through: "%[1]s-01T10:00:00Z", models: [{model: Tesla-T4,
  capacity: {coreSeconds: 7200000, memoryMiBSeconds: 1105920000}, parts: {coreSeconds: 720000, memoryMiBSeconds: 55297000},
  idle: {coreSeconds: 6480000, memoryMiBSeconds: 1050623000}}]}
`, month, redCores), "apply", "-f", "-")
}

// ended runs the program and says how it ended.
func ended(arguments ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	cmd := exec.Command(program, arguments...)
	cmd.Stdout, cmd.Stderr = &out, &err
	cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

func TestChargebackOfAMonth(t *testing.T) {
	cluster(t)
	report := []string{"report", "chargeback", "--month", "2025-11", "--kubeconfig", kubeconfig}
	if code, out, err := ended(report...); code != 1 || out != "" || !strings.Contains(err, "nothing was counted in 2025-11") {
		t.Errorf("%d %s %s", code, out, err)
	}
	usage(t, "2025-11", "360000")
	code, out, err := ended(report...)
	for _, line := range []string{"red ", "5.00 EUR\n", "It adds up. Counted through 2025-11-01T10:00:00Z.\n"} {
		if code != 0 || err != "" || !strings.Contains(out, line) {
			t.Fatalf("%d %s %s: no %q", code, out, err, line)
		}
	}
	if _, out, _ := ended(append(report, "-o", "csv")...); !strings.Contains(out, "\r\n2025-11,red,Tesla-T4,vGPU,'=1+1,0,360000,1000,2.500000,EUR,2.50,1.00,") ||
		!strings.Contains(out, "\r\n2025-11,blue,Tesla-T4,pGPU,,-10,360000,55296000,2.500000,EUR,2.50,1.00,15.00\r\n") {
		t.Error(out)
	}
	if code, out, _ := ended(append(report, "-n", "red")...); code != 0 || strings.Contains(out, "blue") || !strings.Contains(out, "Sum: 2.50 EUR\n") {
		t.Errorf("%d %s", code, out)
	}
	usage(t, "2025-11", "359999")
	if code, out, err := ended(report...); code != 3 || !strings.Contains(out, "It does not add up") || strings.Count(err, "\n") != 1 ||
		!strings.Contains(err, "hold 719999 core-seconds") {
		t.Errorf("%d %s %s", code, out, err)
	}
	// Who may not read it learns which role allows it.
	if code, out, err := ended("report", "chargeback", "--kubeconfig", asAccount(t, "default")); code != 1 || out != "" ||
		!strings.Contains(err, "ClusterRole quartermaster-chargeback") {
		t.Errorf("%d %s %s", code, out, err)
	}
	// The console has the same amount for those who may see the namespace.
	usage(t, time.Now().UTC().Format("2006-01"), "360000")
	port := console(t)
	got := ask(t, port, "GET", api+"namespaces", token(t, "red", "red-viewer"))
	if got.status != 200 || !strings.Contains(got.body, `"cost":"2.50 EUR"`) || strings.Contains(got.body, "blue") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// It prints the rows that change, and Ctrl-C ends it with 0.
func TestInspectNodesWatches(t *testing.T) {
	cluster(t)
	process := start(t, nil, program, "inspect", "nodes", "--watch", "--kubeconfig", kubeconfig)
	printed := func() string { text, _ := os.ReadFile(process.Log); return string(text) }
	until(t, 20*time.Second, "the table", func() error {
		if !strings.Contains(printed(), "gpu-1") {
			return fmt.Errorf("%s", printed())
		}
		return nil
	})
	kubectl(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-2", "labels": {"quartermaster.io/module": "vgpu"}}}`, "apply", "-f", "-")
	defer kubectl(t, "", "delete", "node", "gpu-2")
	until(t, 20*time.Second, "the row of gpu-2", func() error {
		if !strings.Contains(printed(), "\ngpu-2 ") {
			return fmt.Errorf("%s", printed())
		}
		return nil
	})
	if text := printed(); strings.Count(text, "gpu-1") != 1 || strings.Count(text, "NAME") != 1 {
		t.Errorf("rows that did not change were printed again:\n%s", text)
	}
	process.Process.Signal(syscall.SIGINT)
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v: %s", err, printed())
		}
	case <-time.After(10 * time.Second):
		process.Process.Kill()
		t.Errorf("Ctrl-C does not end it: %s", printed())
	}
}
