package server

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"quartermaster.io/test/admission"
)

// A pod that breaks a rule is refused at every size a server takes, and one that breaks none is judged or told that it is too large: the
// policy is never skipped because the server gave up on it.
func TestS24_APaddedPodIsRefusedOnARealAPIServer_long(t *testing.T) {
	ctx := context.Background()
	slowest, where := time.Duration(0), ""
	post := func(name string, pod *corev1.Pod) Reply {
		t.Helper()
		began := time.Now()
		reply, err := server.Pod(ctx, pod)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		took := time.Since(began)
		t.Logf("%s: %d in %s", name, reply.Code, took.Round(time.Millisecond))
		if took > slowest {
			slowest, where = took, name
		}
		return reply
	}
	for _, more := range []int{170, 400} {
		spec := admission.PaddingRules(more)
		if err := (&Policies{Server: server, Judge: judge}).Hold(ctx, &Batch{Spec: spec}, "Deny"); err != nil {
			t.Fatal(err)
		}
		for _, size := range admission.PaddedSizes {
			for _, of := range admission.PaddedPods(size.Containers, size.Named, size.Amount) {
				reply := post(of.Name, of.Pod)
				if of.Sound && reply.Code == 201 {
					continue
				}
				if reply.Code != 422 || reply.Refusal() == "" {
					t.Errorf("%s: %d %.300q", of.Name, reply.Code, reply.Message)
				}
				if of.Sound && !strings.Contains(reply.Refusal(), "more than is judged") {
					t.Errorf("%s: refused without a reason: %.300q", of.Name, reply.Message)
				}
			}
		}
	}
	for _, size := range admission.MonsterSizes {
		reply := post("a monster", admission.Monster(size.Containers, size.Limits))
		if reply.Code == 201 || (reply.Code == 422 && reply.Refusal() == "") {
			t.Errorf("%d containers, %d limits: %d %.300q", size.Containers, size.Limits, reply.Code, reply.Message)
		}
	}
	// What people may mean is not refused for its size.
	if err := (&Policies{Server: server, Judge: judge}).Hold(ctx, &Batch{Spec: admission.HamiRules()}, "Deny"); err != nil {
		t.Fatal(err)
	}
	for _, containers := range []int{94, 256} {
		pod := admission.HamiPod(containers)
		if reply := post("a sound pod", pod); reply.Code != 201 {
			t.Errorf("%d sound containers: %d %.300q", containers, reply.Code, reply.Message)
		}
		pod.Spec.Containers[containers-1].Resources.Limits[admission.Core] = resource.MustParse("100")
		if reply := post("an excluded key", pod); reply.Refusal() == "" {
			t.Errorf("%d containers, the last of which uses an excluded key: %d", containers, reply.Code)
		}
	}
	t.Logf("the slowest answer took %s: %s", slowest.Round(time.Millisecond), where)
}
