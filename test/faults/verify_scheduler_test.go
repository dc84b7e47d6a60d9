package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/test/faults/kit"
)

// verb is the program as a person runs it.
func (h *hall) verb(args ...string) *exec.Cmd {
	c := exec.CommandContext(h.ctx, program, append(args, "--kubeconfig", h.Kubeconfig)...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// said runs it to its end.
func (h *hall) said(args ...string) (code int, out, errs string) {
	h.t.Helper()
	c := h.verb(args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		h.must(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// proof is what `verify --scheduler` has found, and that it leaves no pod.
func (h *hall) proof(patience time.Duration, args ...string) (code int, why, text string) {
	h.t.Helper()
	rc, out, errs := h.said(append([]string{"verify", "-o", "json", "--timeout", fmt.Sprint(int(patience.Seconds())), "--scheduler"}, args...)...)
	var said struct {
		Cluster []struct {
			Step, Code string
			Text       map[string]string
		}
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Cluster) != 1 || said.Cluster[0].Step != "extender" {
		h.t.Fatalf("verify --scheduler %v: code %d, %v: %s%s", args, rc, err, out, errs)
	}
	h.noTestPod()
	return rc, said.Cluster[0].Code, said.Cluster[0].Text["en"]
}

func (h *hall) testPods() []corev1.Pod {
	h.t.Helper()
	list, err := h.Client.CoreV1().Pods("").List(h.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=quartermaster-verify"})
	h.must(err)
	return list.Items
}

func (h *hall) noTestPod() {
	h.t.Helper()
	h.eventuallySo(5*time.Second, func() string {
		if left := h.testPods(); len(left) > 0 {
			return "the test pod is still there: " + left[0].Name
		}
		return ""
	})
}

// Where a provider owns the scheduler, no one can read its configuration: that the extender is asked is proved from the outside.
func TestS54_verify_proves_from_the_outside_whether_a_scheduler_asks_long(t *testing.T) {
	h := emptyHall(t, map[string]int{"pgpu": 1, "hami": 1})
	if peer() {
		t.Skip("the peer has no verbs")
	}
	o := h.startExtender(h.proxy("first"))
	h.must(o.WaitReady(30 * time.Second))
	h.awaitServing(h.address, 30*time.Second)
	h.enrolled(o)
	expect := func(code int, why, text string, args ...string) {
		t.Helper()
		rc, is, says := h.proof(8*time.Second, args...)
		if rc != code || is != why || !strings.Contains(says, text) {
			t.Errorf("verify --scheduler %v: code %d, %q: %s; want %d, %q: %s", args, rc, is, says, code, why, text)
		}
	}
	// No one of that name; the cluster's own scheduler, which asks no one.
	expect(3, "scheduler_unseen", kit.SchedulerName, kit.SchedulerName)
	expect(3, "scheduler_looks_itself", "Insufficient nvidia.com/gpucores")
	expect(3, "scheduler_did_not_ask", "to node pgpu-0", "--resource", "nvidia.com/gpu")

	with := func(extender string, keys kit.Keys, do func()) {
		t.Helper()
		s, err := kit.StartScheduler(h.ctx, h.Cluster, h.dir, extender, keys, 1)
		h.must(err)
		defer s.Close()
		do()
		if !s.Running() {
			t.Errorf("kube-scheduler ended:\n%s", s.Tail(10))
		}
	}
	url := "https://" + h.address + "/scheduler"
	with(h.tap.URL, h.keys, func() {
		since := time.Now()
		expect(0, "", "asked by "+kit.SchedulerName+" (", kit.SchedulerName)
		expect(0, "", "asked by "+kit.SchedulerName+" (", kit.SchedulerName, "--resource", "nvidia.com/gpu")
		asked := map[string]bool{}
		for _, c := range h.tap.Calls(since) {
			if c.Verb == "filter" && strings.HasPrefix(c.Name, "quartermaster-verify-") && c.Fits == 0 {
				asked[c.Name] = true
			}
			if c.Verb == "bind" {
				t.Errorf("a pod was bound: %s", c)
			}
		}
		if len(asked) != 2 {
			t.Errorf("the extender was asked about %v", asked)
		}
	})
	// An authority that the scheduler does not know, a certificate that the extender does not know, no one at that address, another path.
	wrong, alien := h.keys, h.keys
	wrong.ServerCA = h.keys.ClientCA
	alien.ClientCert, alien.ClientKey = h.keys.AlienCert, h.keys.AlienKey
	nobody, err := kit.FreePort()
	h.must(err)
	with(url, wrong, func() { expect(3, "extender_untrusted", "x509", kit.SchedulerName) })
	with(url, alien, func() { expect(3, "extender_untrusted", "Post \"https", kit.SchedulerName) })
	with(fmt.Sprintf("https://127.0.0.1:%d/scheduler", nobody), h.keys, func() { expect(3, "extender_unreachable", "connection refused", kit.SchedulerName) })
	with(url+"/else", h.keys, func() { expect(3, "extender_refuses", "404", kit.SchedulerName) })

	// Ctrl-C.
	c := h.verb("verify", "--scheduler", "nobody")
	h.must(c.Start())
	h.eventuallySo(10*time.Second, func() string {
		if len(h.testPods()) != 1 {
			return "no test pod"
		}
		return ""
	})
	h.must(c.Process.Signal(syscall.SIGINT))
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("after Ctrl-C it ends with %d", code)
	}
	h.noTestPod()
	for _, metric := range []string{"quartermaster_ledger_confirmed_entries", "quartermaster_ledger_assumed_entries", "quartermaster_ledger_over_given"} {
		h.eventuallySo(10*time.Second, func() string {
			if value, ok := o.Metric(metric); !ok || value != 0 {
				return fmt.Sprintf("%s is %v", metric, value)
			}
			return ""
		})
	}
}
