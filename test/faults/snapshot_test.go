package faults

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/test/faults/kit"
)

// What a person sees of the cluster is what anyone sees of a file of it: the same answer, to the byte, of every verb that takes the file.
func TestASnapshotAnswersAsTheCluster(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu": 2, "hami": 1, "pgpu": 1, "gpushare": 1})
	share := map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}
	for name, limits := range map[string]map[string]string{
		"share": share, "slot": {"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "30"},
		"whole": {"nvidia.com/gpu": "1"}, "memory": {"aliyun.com/gpu-mem": "3"}} {
		h.create(pod(name, limits))
		h.awaitBound(name, 30*time.Second)
	}
	h.create(pod("too-large", map[string]string{"tencent.com/vcuda-core": "50", "tencent.com/vcuda-memory": "100"}))
	h.awaitReason("too-large", "memory", 15*time.Second)
	one := resource.MustParse("1")
	_, err := h.Client.CoreV1().ResourceQuotas(podsIn).Create(h.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": one}}}, metav1.CreateOptions{})
	h.must(err)
	t.Cleanup(func() {
		_ = h.Client.CoreV1().ResourceQuotas(podsIn).Delete(context.Background(), "few", metav1.DeleteOptions{})
	})
	more := filepath.Join(t.TempDir(), "more.yaml")
	h.must(os.WriteFile(more, []byte("{apiVersion: v1, kind: Pod, metadata: {name: more, namespace: "+podsIn+`}, spec: {containers: [{name: main, image: x,
		resources: {limits: {nvidia.com/gpu: 2}}}]}}`), 0o600))
	h.awaitQuiet()

	file := filepath.Join(t.TempDir(), "now.json")
	if code, out, errs := h.said("inspect", "--save", file); code != 0 {
		t.Fatalf("inspect --save: %d %s%s", code, out, errs)
	}
	for _, verb := range []string{"inspect nodes -o json", "inspect nodes -o wide", "inspect nodes vgpu-0 hami-0", "inspect modules -o json", "inspect pods -o json",
		"inspect nodes --compat cgpu -d", "top nodes", "top cards -o json", "top pods", "report capacity -o json", "verify -o wide", "verify vgpu-1 -o json", "verify --lang zh", "simulate -f " + more} {
		words := strings.Fields(verb)
		code, out, errs := h.said(words...)
		after, seen, problems := h.said(append(words, "--snapshot", file)...)
		if code != after || out != seen || errs != problems {
			t.Errorf("%s of the cluster: %d\n%s%s\nof the file: %d\n%s%s", verb, code, out, errs, after, seen, problems)
		}
	}
	if code, out, _ := h.said("verify", "-o", "wide", "--snapshot", file); code == 1 || !strings.Contains(out, " leads") {
		t.Errorf("verify of the file: code %d; it names the leader:\n%s", code, out)
	}
	if code, out, _ := h.said("simulate", "-f", more, "--snapshot", file); code != 3 || !strings.Contains(out, "ResourceQuota "+podsIn+"/few") {
		t.Errorf("simulate of the file: code %d; the quota of the namespace refuses the pod:\n%s", code, out)
	}
	for _, selector := range []string{"quartermaster.io/module=vgpu", "quartermaster.io/module in (vgpu,pgpu),kubernetes.io/hostname!=vgpu-0", "!quartermaster.io/module",
		"quartermaster.io/module notin (vgpu)", "quartermaster.io/module=="} {
		list, err := h.Client.CoreV1().Nodes().List(h.ctx, metav1.ListOptions{LabelSelector: selector})
		h.must(err)
		var want []string
		for _, node := range list.Items {
			want = append(want, "node/"+node.Name)
		}
		slices.Sort(want)
		if code, out, errs := h.said("inspect", "nodes", "-o", "name", "--sort-by", "name", "-l", selector); code != 0 || !slices.Equal(strings.Fields(out), want) {
			t.Errorf("-l %s: %d, the API server selects %v:\n%s%s", selector, code, want, out, errs)
		}
	}
	content, err := os.ReadFile(file)
	h.must(err)
	for _, secret := range []string{`"env"`, `"command"`, `"image": "x`, "managedFields"} {
		if strings.Contains(string(content), secret) {
			t.Errorf("the file has %s", secret)
		}
	}
}

// awaitQuiet waits until the plugins are rolled out, and nothing has written a pod, a quota, the state of a node or the policy for two seconds.
func (h *hall) awaitQuiet() {
	h.t.Helper()
	state := func() string {
		pods, err := h.Client.CoreV1().Pods("").List(h.ctx, metav1.ListOptions{})
		h.must(err)
		nodes, err := h.Client.CoreV1().Nodes().List(h.ctx, metav1.ListOptions{})
		h.must(err)
		policies, err := h.Dynamic.Resource(kit.Policies).List(h.ctx, metav1.ListOptions{})
		h.must(err)
		quotas, err := h.Client.CoreV1().ResourceQuotas("").List(h.ctx, metav1.ListOptions{})
		h.must(err)
		sets, err := h.Client.AppsV1().DaemonSets("").List(h.ctx, metav1.ListOptions{})
		h.must(err)
		var out strings.Builder
		for _, set := range sets.Items {
			if set.Status.NumberAvailable < set.Status.DesiredNumberScheduled {
				return time.Now().String() // minReadySeconds
			}
			out.WriteString(set.ResourceVersion + " ")
		}
		for _, item := range quotas.Items {
			out.WriteString(item.ResourceVersion + " ")
		}
		for _, item := range pods.Items {
			out.WriteString(item.ResourceVersion + " ")
		}
		for _, item := range nodes.Items { // the kubelets' word on nodes goes on
			for _, condition := range item.Status.Conditions {
				out.WriteString(string(condition.Status))
			}
		}
		for _, item := range policies.Items {
			out.WriteString(" " + item.GetResourceVersion())
		}
		return out.String()
	}
	last, since := "", time.Now()
	for deadline := time.Now().Add(kit.Patient(60 * time.Second)); time.Since(since) < 2*time.Second; time.Sleep(200 * time.Millisecond) {
		if now := state(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			h.t.Fatal("pods and the policy are written all the time")
		}
	}
}
