package scheduler_config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edited is base.yaml with one text in place of another.
func edited(t *testing.T, from, to string) string {
	t.Helper()
	base := read(t, "base.yaml")
	if !strings.Contains(base, from) {
		t.Fatalf("base.yaml has no %q", from)
	}
	return strings.Replace(base, from, to, 1)
}

// usual is how long something may take that comes.
const usual = 30 * time.Second

// own is a file in which the second profile has this name, so that no other kube-scheduler looks at its pods.
func own(config, scheduler string) string {
	return strings.Replace(config, "schedulerName: batch", "schedulerName: "+scheduler, 1)
}

// says is whether lint has that code of the file.
func says(t *testing.T, config, code string) {
	t.Helper()
	said, err := at.lint(config)
	must(t, err)
	if !slices.Contains(said.codes, code) {
		t.Errorf("lint says %v, not %s", said.codes, code)
	}
}

// waits creates a pod and returns why the scheduler says it waits; "" where no scheduler has said so in that time.
func waits(t *testing.T, name, scheduler string, patience time.Duration) (condition corev1.PodCondition) {
	t.Helper()
	pods := at.Client.CoreV1().Pods("default")
	if _, err := pods.Create(at.ctx, pod(name, scheduler), metav1.CreateOptions{}); err != nil {
		t.Error(err)
		return
	}
	for deadline := time.Now().Add(patience); condition.Reason == "" && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		now, err := pods.Get(at.ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		for _, one := range now.Status.Conditions {
			if one.Type == corev1.PodScheduled {
				condition = one
			}
		}
	}
	return condition
}

// Every call to such an address fails: url_malformed and url_cut are errors of a file that starts.
func TestS7_AnAddressNothingCanBeSentToFailsEveryPod(t *testing.T) {
	t.Parallel()
	for i, url := range []string{"https://[::1", "https://127.0.0.1:99999", "https://127.0.0.1:0", "https://127.0.0.256:9443", "https:///scheduler"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprint("address-", i)
			config := own(edited(t, "https://127.0.0.1:9443/scheduler", "'"+url+"'"), name)
			code := "url_malformed"
			if strings.HasPrefix(url, "https:///") {
				code = "url_cut"
			}
			says(t, config, code)
			var why corev1.PodCondition
			did, err := at.start(config, func(func() string) { why = waits(t, name, name, usual) }, noElection)
			must(t, err)
			must(t, at.Client.CoreV1().Pods("default").Delete(at.ctx, name, metav1.DeleteOptions{}))
			if !did.started || why.Status != corev1.ConditionFalse || why.Reason != "SchedulerError" {
				t.Errorf("started: %v, the pod's condition %+v\n%s", did.started, why, did.said)
			}
			t.Log(why.Message)
		})
	}
}

// Such a Lease is never made, so its kube-scheduler never leads. It is an administrator: the name alone decides.
func TestS7_ALeaseOfNoLegalNameIsNeverHeld(t *testing.T) {
	t.Parallel()
	lead := func(t *testing.T, name, line string, seen func(said string) bool, patience time.Duration) (did outcome, led, saw bool) {
		config := strings.ReplaceAll(own(edited(t, "resourceName: mutant", line), name), standard, at.Kubeconfig)
		if name != "legal" {
			says(t, config, "lease_name_malformed")
		}
		var why corev1.PodCondition
		did, err := at.start(config, func(said func() string) {
			for deadline := time.Now().Add(usual); !saw && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
				saw = seen(said())
			}
			why = waits(t, name, name, patience)
		})
		must(t, err)
		must(t, at.Client.CoreV1().Pods("default").Delete(at.ctx, name, metav1.DeleteOptions{}))
		return did, why.Reason != "", saw
	}
	for name, line := range map[string]string{"illegal-name": "resourceName: a b", "illegal-namespace": "resourceNamespace: A.b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := func(said string) bool { return strings.Contains(strings.ToLower(said), "error initially creating lea") }
			did, led, saw := lead(t, name, line, failed, 4*time.Second) // it goes on to look for its Lease
			if !did.started || led || !saw {
				t.Errorf("started: %v, led: %v, said that it cannot create the Lease: %v\n%s", did.started, led, saw, did.said)
			}
		})
	}
	t.Run("legal", func(t *testing.T) {
		t.Parallel()
		if did, led, _ := lead(t, "legal", "resourceName: a.b", func(string) bool { return true }, usual); !led {
			t.Errorf("started: %v, led: %v\n%s", did.started, led, did.said)
		}
	})
}

// The pod is judged, and its events are refused.
func TestS7_ASchedulerThatNoEventCanNameIsSilent(t *testing.T) {
	t.Parallel()
	events := func(t *testing.T, scheduler, name string, patience time.Duration) (made []string) {
		config := edited(t, "schedulerName: batch", "schedulerName: "+scheduler)
		if scheduler == "a b" {
			says(t, config, "scheduler_name_malformed")
		}
		_, err := at.start(config, func(func() string) {
			// The extender of base.yaml does not answer.
			if why := waits(t, name, scheduler, usual); why.Reason != "SchedulerError" {
				t.Errorf("%s: the pod's condition is %+v", scheduler, why)
			}
			for deadline := time.Now().Add(patience); len(made) == 0 && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
				all, err := at.Client.EventsV1().Events("default").List(at.ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + name})
				must(t, err)
				for _, one := range all.Items {
					made = append(made, one.Reason)
				}
			}
		}, noElection)
		must(t, err)
		must(t, at.Client.CoreV1().Pods("default").Delete(at.ctx, name, metav1.DeleteOptions{}))
		return made
	}
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		if made := events(t, "a b", "silent", 3*time.Second); len(made) != 0 {
			t.Errorf("events %v", made)
		}
	})
	t.Run("heard", func(t *testing.T) {
		t.Parallel()
		if made := events(t, "a-b", "heard", usual); len(made) == 0 {
			t.Error("no event of a scheduler with a legal name")
		}
	})
}
