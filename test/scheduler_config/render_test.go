package scheduler_config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var illegal = regexp.MustCompile(`[^a-z0-9]+`)

// pod that asks for a card and tolerates a node that no one manages.
func pod(name, scheduler string) *corev1.Pod {
	none := int64(0)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{SchedulerName: scheduler, TerminationGracePeriodSeconds: &none, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
}

// turns: of the kube-schedulers that have a profile of one name, only one runs at a time, so that it is the one who asks.
var turns sync.Map

// asks starts kube-scheduler with the file and waits until it has asked the extender about a pod.
func asks(t *testing.T, name, config, scheduler string) {
	t.Helper()
	turn, _ := turns.LoadOrStore(scheduler, &sync.Mutex{})
	turn.(*sync.Mutex).Lock()
	defer turn.(*sync.Mutex).Unlock()
	asked := false
	pod := pod("p-"+strings.Trim(illegal.ReplaceAllString(strings.ToLower(name), "-"), "-"), scheduler)
	did, err := at.start(config, func(func() string) {
		if _, err := at.Client.CoreV1().Pods(pod.Namespace).Create(at.ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Error(err)
			return
		}
		for deadline := time.Now().Add(60 * time.Second); !asked && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			asked = at.was("filter default/" + pod.Name)
		}
		at.Client.CoreV1().Pods(pod.Namespace).Delete(at.ctx, pod.Name, metav1.DeleteOptions{})
	}, noElection)
	must(t, err)
	if !did.started {
		t.Fatalf("kube-scheduler %s does not start:\n%s\n%s", at.minor, did.said, config)
	}
	if !asked {
		t.Fatalf("kube-scheduler %s did not ask the extender about %s:\n%s", at.minor, pod.Name, did.said)
	}
}

// profile is the name of the first one.
func profile(t *testing.T, config string) string {
	var file struct {
		Profiles []struct{ SchedulerName string }
	}
	must(t, yaml.Unmarshal([]byte(config), &file)) // the first document, as kube-scheduler
	if len(file.Profiles) == 0 || file.Profiles[0].SchedulerName == "" {
		return "default-scheduler"
	}
	return file.Profiles[0].SchedulerName
}

func TestS7_AFileOfItsOwnStartsAndAsksTheExtender(t *testing.T) {
	t.Parallel()
	config, err := at.render("--scheduler-name", "cards")
	must(t, err)
	asks(t, "own", config, "cards")
}

func TestS7_EveryMergedFileStartsAndAsksTheExtender(t *testing.T) {
	t.Parallel()
	for i, name := range named(t, "corpus") {
		if !sampled(i) {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			before := strings.ReplaceAll(read(t, name), "/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig", standard)
			file := filepath.Join(t.TempDir(), filepath.Base(name))
			must(t, os.WriteFile(file, []byte(before), 0o600))
			merged, err := at.render("--into", file)
			must(t, err)
			asks(t, name, merged, profile(t, merged))
			// And what is taken out again is what was there.
			must(t, os.WriteFile(file, []byte(merged), 0o600))
			after, rc, err := at.quartermaster("", "render", "scheduler-config", "--unmerge", file, "--address", at.url)
			must(t, err)
			if rc != 0 || after != before {
				t.Errorf("exit code %d, other bytes than before:\n%s", rc, after)
			}
		})
	}
}

// A profile of its own in the same process, next to the one that was there by default.
func TestS7_AProfileBesideOthersStarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, []byte(read(t, "corpus/01-kubeadm-minimal.yaml")), 0o600))
	config, err := at.render("--into", file, "--scheduler-name", "cards")
	must(t, err)
	for _, name := range []string{"cards", "default-scheduler"} {
		asks(t, fmt.Sprint("profile ", name), config, name)
	}
}
