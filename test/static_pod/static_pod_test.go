package static_pod

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

const patience = 150 * time.Second

// begin with control-plane nodes as kubeadm made them and no agent; at the end it has to be so again, and at no moment were fewer than two
// kube-schedulers healthy.
func begin(t *testing.T) {
	t.Helper()
	must(t, at.mode("None"))
	must(t, at.until(30*time.Second, "three kube-schedulers", func() error {
		return errors.Join(at.witness.troubles()...)
	}))
	at.witness.saw()
	t.Cleanup(func() {
		explain := func() {
			for _, m := range at.controlPlaneNodes {
				t.Logf("%s: %+v\n%s\n%s", m.node, m.row(), m.log(), tail(m.kubelet.Log("kube-scheduler"), 5))
			}
		}
		if t.Failed() {
			explain()
		}
		for _, m := range at.controlPlaneNodes {
			m.fails.Store(false)
			if !m.runs() {
				m.run()
			}
		}
		if err := at.mode("None"); err != nil {
			t.Error(err)
		}
		if err := at.until(patience, "all removed", func() error { return every((*controlPlaneNode).removed) }); err != nil {
			t.Error(err)
			explain()
		}
		worst, looks, when := at.witness.saw()
		t.Logf("%d looks, never fewer than %d healthy kube-schedulers", looks, controlPlaneNodes-len(worst))
		if len(worst) > 1 {
			t.Errorf("at %s %d kube-schedulers were not healthy: %v", when.Format("15:04:05.000"), len(worst), errors.Join(worst...))
		}
		for _, m := range at.controlPlaneNodes {
			m.kill()
			os.Remove(m.dir + "/" + m.node + "-agent.log")
		}
		for _, m := range at.controlPlaneNodes {
			at.Client.CoreV1().ConfigMaps(namespace).Patch(at.ctx, rows, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
			must(t, m.asBefore())
		}
	})
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func every(is func(*controlPlaneNode) error) error {
	for _, m := range at.controlPlaneNodes {
		if err := is(m); err != nil {
			return err
		}
	}
	return nil
}

func (m *controlPlaneNode) applied() error {
	if row := m.row(); row.State != "Applied" || row.Reason != "" {
		return fmt.Errorf("%s: %+v", m.node, row)
	}
	if m.trouble() != nil || !strings.Contains(m.read("scheduler-config.yaml"), at.url) || !strings.Contains(m.read("manifests/kube-scheduler.yaml"), "--config=") {
		return fmt.Errorf("%s says Applied and is not", m.node)
	}
	return nil
}

func (m *controlPlaneNode) removed() error {
	if row := m.row(); row.State != "Off" && row.State != "" {
		return fmt.Errorf("%s: %+v", m.node, row)
	}
	if _, err := os.Stat(m.file("quartermaster")); err == nil {
		return fmt.Errorf("%s: there is a record yet", m.node)
	}
	if m.trouble() != nil {
		return fmt.Errorf("%s does not serve", m.node)
	}
	return nil
}

func (m *controlPlaneNode) is(state, reason string) error {
	if row := m.row(); row.State != state || !strings.Contains(row.Reason, reason) {
		return fmt.Errorf("%s: %+v; wanted %s %q", m.node, row, state, reason)
	}
	return nil
}

func runAll(t *testing.T) {
	t.Helper()
	for _, m := range at.controlPlaneNodes {
		must(t, m.run())
	}
}

// apply on all control-plane nodes, by agents that run.
func apply(t *testing.T) {
	t.Helper()
	must(t, at.mode("StaticPod"))
	must(t, at.until(patience, "applied on all control-plane nodes", func() error { return every((*controlPlaneNode).applied) }))
}

// asks: the kube-scheduler that leads asks the extender of the stage about a pod with a card.
func asks(t *testing.T) {
	t.Helper()
	asksOne(t, func() float64 { return float64(at.asked.Load()) })
}

// asksOne that counts its calls.
func asksOne(t *testing.T, calls func() float64) {
	t.Helper()
	amounts := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("100"), "nvidia.com/gpu": resource.MustParse("8")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cards"}}
	if _, err := at.Client.CoreV1().Nodes().Create(at.ctx, node, metav1.CreateOptions{}); err == nil {
		status, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}})
		must(t, err)
		_, err = at.Client.CoreV1().Nodes().Patch(at.ctx, "cards", types.MergePatchType, status, metav1.PatchOptions{}, "status")
		must(t, err)
	}
	before := calls()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "asks-", Namespace: "default"}, Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
	made, err := at.Client.CoreV1().Pods("default").Create(at.ctx, pod, metav1.CreateOptions{})
	must(t, err)
	defer at.Client.CoreV1().Pods("default").Delete(at.ctx, made.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	must(t, at.until(60*time.Second, "a call of the extender", func() error {
		if calls() == before {
			return fmt.Errorf("none")
		}
		return nil
	}))
}

func TestS7_AllControlPlaneNodesOneAtATimeAndBackByteForByte(t *testing.T) {
	begin(t)
	runAll(t)
	apply(t)
	for _, m := range at.controlPlaneNodes {
		if row := m.row(); row.Generation != 1 || len(row.Checksum) != 64 || !strings.HasPrefix(row.Version, "v"+at.minor+".") || row.Since == "" {
			t.Errorf("%s: %+v", m.node, row)
		}
		if files, err := os.ReadDir(m.file("manifests")); err != nil || len(files) != 1 {
			t.Errorf("%s: manifests has %v", m.node, files)
		}
	}
	asks(t)
	// helm's hook stops the removal of the chart meanwhile, and says which control-plane node it is.
	hook := exec.Command(at.program, "uninstall", "--check", "-n", namespace, "--kubeconfig", at.Kubeconfig)
	if said, err := hook.CombinedOutput(); hook.ProcessState.ExitCode() != 3 || !strings.Contains(string(said), "3 nodes still have a mode or our extender (m1 kube-scheduler with our extender (Applied)") {
		t.Errorf("uninstall --check: %v %s", err, said)
	}
	events, err := at.Run("", "kubectl", "get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={range .items[*]}{.regarding.name} {.reason}{'\\n'}{end}")
	must(t, err)
	for _, m := range at.controlPlaneNodes {
		if !strings.Contains(events, m.node+" SchedulerConfigApplied") {
			t.Errorf("no event of %s:\n%s", m.node, events)
		}
	}
}

// The agent dies in the middle of each step, and another takes its place.
func TestF49_KilledAtEveryStep_long(t *testing.T) {
	begin(t)
	for _, m := range at.controlPlaneNodes[1:] {
		must(t, m.run())
	}
	m := at.controlPlaneNodes[0]
	steps := []struct {
		name string
		come func() bool
	}{
		{"started", func() bool { return true }},
		{"recorded", func() bool { return m.read("quartermaster/record.json") != "" }},
		{"configured", func() bool { return m.read("scheduler-config.yaml") != "" }},
		{"told", func() bool { return strings.Contains(m.read("manifests/kube-scheduler.yaml"), "--config=") }},
		{"replaced", func() bool {
			r, up := m.kubelet.Restarts("kube-scheduler.yaml")
			return up && r == 0 && m.trouble() == nil
		}},
		{"applied", func() bool { return strings.Contains(m.read("quartermaster/record.json"), `"applied"`) }},
	}
	must(t, at.mode("StaticPod"))
	kill := func(when string, come func() bool) {
		must(t, m.run())
		for deadline := time.Now().Add(patience); !come(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never %s: %+v", when, m.row())
			}
		}
		m.kill()
	}
	for _, step := range steps {
		kill(step.name, step.come)
	}
	must(t, m.run())
	must(t, at.until(patience, "applied on all control-plane nodes", func() error { return every((*controlPlaneNode).applied) }))
	m.kill()
	// And on the way back.
	must(t, at.mode("None"))
	kill("removing", func() bool { return strings.Contains(m.read("quartermaster/record.json"), `"removing"`) })
	kill("without the flag", func() bool { return !strings.Contains(m.read("manifests/kube-scheduler.yaml"), "--config=") })
	kill("without the file", func() bool { return m.read("scheduler-config.yaml") == "" })
}

// A kube-scheduler that ends as soon as it reads a configuration: the others are not touched meanwhile, and it gets its old files back.
func TestF51_OneThatCrashesIsTakenBack_long(t *testing.T) {
	begin(t)
	for _, m := range at.controlPlaneNodes {
		m.fails.Store(true)
	}
	first := at.controlPlaneNodes[0]
	must(t, first.run())
	must(t, at.mode("StaticPod"))
	must(t, at.until(patience, "rolled back", func() error { return first.is("RolledBack", "kube-scheduler-m1 is not ready (") }))
	for name, text := range first.before {
		if first.read(name) != text {
			t.Errorf("%s is not as it was", name)
		}
	}
	if first.read("scheduler-config.yaml") != "" {
		t.Error("the configuration is there yet")
	}
	// Not a second time with the same, by no one.
	generation := func() string { return first.read("quartermaster/record.json") }
	// The row is written before the record.
	must(t, at.until(patience, "the record says so", func() error {
		if !strings.Contains(generation(), `"reverted"`) {
			return fmt.Errorf("%.300s", generation())
		}
		return nil
	}))
	before := generation()
	time.Sleep(4 * time.Second)
	first.kill()
	must(t, first.run())
	time.Sleep(4 * time.Second)
	if generation() != before {
		t.Error("it was tried again")
	}
	events, err := at.Run("", "kubectl", "get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={range .items[*]}{.regarding.name} {.reason} {.note}{'\\n'}{end}")
	must(t, err)
	if !strings.Contains(events, first.node+" SchedulerConfigRolledBack kube-scheduler of this node: after 25 s") {
		t.Errorf("no event says why:\n%s", events)
	}
	if os.Getenv("QM_NIGHTLY") == "" {
		return
	}
	// The schedulers of the other control-plane nodes would fail, too: what one was rolled back from, no other tries.
	others := at.controlPlaneNodes[1:]
	for _, m := range others {
		must(t, m.run())
	}
	must(t, at.until(patience*2, "the others wait", func() error {
		for _, m := range others {
			if err := m.is("Waiting", first.node); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, m := range others {
		if m.read("scheduler-config.yaml") != "" {
			t.Errorf("%s has tried it", m.node)
		}
	}
}

// A certificate the extender does not take, and one that is not the key's: seen before anything is written.
func TestF52_WrongCertificatesAreSeenBeforeAnythingIsWritten_long(t *testing.T) {
	begin(t)
	secrets := at.Client.CoreV1().Secrets(namespace)
	is, err := secrets.Get(at.ctx, "quartermaster-extender-client", metav1.GetOptions{})
	must(t, err)
	put := func(data map[string][]byte) {
		patch, err := json.Marshal(map[string]any{"data": data})
		must(t, err)
		_, err = secrets.Patch(at.ctx, is.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
	}
	defer put(is.Data)
	keys, err := kit.MakeKeys(t.TempDir())
	must(t, err)
	read := func(name string) []byte {
		text, err := os.ReadFile(name)
		must(t, err)
		return text
	}
	m := at.controlPlaneNodes[0]
	must(t, m.run())
	must(t, at.mode("StaticPod"))
	for _, one := range []struct {
		data          map[string][]byte
		state, reason string
	}{
		{map[string][]byte{"tls.crt": read(keys.AlienCert), "tls.key": read(keys.AlienKey)}, "Waiting", "the server refused our certificate"},
		{map[string][]byte{"ca.crt": read(keys.ServerCA)}, "Waiting", "the server's certificate is not signed by the CA"},
		{map[string][]byte{"tls.key": read(keys.AlienKey)}, "Stopped", "key_of_other_certificate"},
		{map[string][]byte{"tls.crt": []byte("none")}, "Stopped", "certificate_not_pem"},
		{map[string][]byte{"tls.key": {}}, "Stopped", "has not all of ca.crt, tls.crt and tls.key"},
	} {
		put(is.Data)
		put(one.data)
		must(t, at.until(30*time.Second, one.reason, func() error { return m.is(one.state, one.reason) }))
		must(t, m.asBefore())
	}
	// The row names the certificates in place, which is what the operator waits for when their authority changes.
	names := func(ca []byte) error {
		hash := fnv.New64a()
		hash.Write(ca)
		hash.Write(is.Data["tls.crt"])
		if row := m.row(); row.Certificates != fmt.Sprintf("%016x", hash.Sum64()) {
			return fmt.Errorf("not of the present certificates: %+v", row)
		}
		return m.applied()
	}
	put(is.Data)
	must(t, at.until(patience, "applied", func() error { return names(is.Data["ca.crt"]) }))
	// Another certificate of the same authority is a new configuration, and another generation.
	both := append(append([]byte{}, is.Data["ca.crt"]...), read(keys.ServerCA)...)
	put(map[string][]byte{"ca.crt": both})
	must(t, at.until(patience, "applied again", func() error {
		if row := m.row(); row.Generation != 2 {
			return fmt.Errorf("%+v", row)
		}
		return names(both)
	}))
	if !strings.Contains(m.read("scheduler-config.yaml"), base64.StdEncoding.EncodeToString(both)) {
		t.Error("the new authority is not in the configuration")
	}
}

// kubeadm upgrade writes the manifest again, whatever was in it: also a second time, while the change after the first is under way.
func TestS7_WhatKubeadmWritesIsDoneAgain_long(t *testing.T) {
	begin(t)
	runAll(t)
	apply(t)
	m := at.controlPlaneNodes[1]
	upgraded := func(to string) string {
		return strings.Replace(m.before["manifests/kube-scheduler.yaml"], "    - --leader-elect=true\n", "    - --leader-elect=true\n    - --v="+to+"\n", 1)
	}
	must(t, m.put("manifests/kube-scheduler.yaml", upgraded("1")))
	must(t, at.until(patience, "being done again", func() error {
		if row := m.row(); row.State != "Changing" || !strings.Contains(m.read("manifests/kube-scheduler.yaml"), "--config=") {
			return fmt.Errorf("%+v", row)
		}
		return nil
	}))
	must(t, m.put("manifests/kube-scheduler.yaml", upgraded("2")))
	must(t, at.until(patience, "done again", func() error {
		if row := m.row(); row.Generation < 2 || !strings.Contains(m.read("manifests/kube-scheduler.yaml"), "--v=2\n") {
			return fmt.Errorf("%+v", row)
		}
		return m.applied()
	}))
	m.before["manifests/kube-scheduler.yaml"] = upgraded("2")
}

// A person's edit is never written over: it is reported, and nothing more. Taken out again, the edit stays.
func TestF53_WhatAPersonChangedIsLeftAlone_long(t *testing.T) {
	begin(t)
	runAll(t)
	apply(t)
	m := at.controlPlaneNodes[2]
	text := m.read("scheduler-config.yaml")
	edited := text + "podMaxBackoffSeconds: 5 # mine\n"
	must(t, m.put("scheduler-config.yaml", edited))
	must(t, at.until(30*time.Second, "stopped", func() error { return m.is("Stopped", "scheduler-config.yaml was changed by someone else") }))
	time.Sleep(3 * time.Second)
	if m.read("scheduler-config.yaml") != edited {
		t.Error("it was written over")
	}
	must(t, os.Remove(m.file("quartermaster/record.json")))
	must(t, at.until(patience, "taken over", m.applied))
	if !strings.Contains(m.read("scheduler-config.yaml"), "podMaxBackoffSeconds: 5 # mine\n") {
		t.Error("the edit is lost")
	}
	must(t, at.mode("None"))
	must(t, at.until(patience, "removed", m.removed))
	left := m.read("scheduler-config.yaml")
	if !strings.Contains(left, "podMaxBackoffSeconds: 5 # mine\n") || strings.Contains(left, "quartermaster") {
		t.Errorf("what is left is not the person's:\n%s", left)
	}
	must(t, os.Remove(m.file("scheduler-config.yaml")))
}

// A file that people had already: ours is in it, and nothing else of it has changed; then it is theirs again.
func TestS7_AFileOfPeopleIsMergedAndGivenBack_long(t *testing.T) {
	begin(t)
	m := at.controlPlaneNodes[0]
	manifest := m.before["manifests/kube-scheduler.yaml"]
	text := "# theirs\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n  kubeconfig: /etc/kubernetes/scheduler.conf\npodMaxBackoffSeconds: 7   # kept\n"
	theirs := strings.NewReplacer("    - --leader-elect=true\n", "    - --leader-elect=true\n    - --config=/etc/kubernetes/scheduler-config.yaml\n",
		"    volumeMounts:\n", "    volumeMounts:\n    - mountPath: /etc/kubernetes/scheduler-config.yaml\n      name: theirs\n",
		"  volumes:\n", "  volumes:\n  - hostPath:\n      path: /etc/kubernetes/scheduler-config.yaml\n      type: File\n    name: theirs\n").Replace(manifest)
	m.before["manifests/kube-scheduler.yaml"], m.before["scheduler-config.yaml"] = theirs, text
	defer func() {
		m.before["manifests/kube-scheduler.yaml"] = manifest
		delete(m.before, "scheduler-config.yaml")
		must(t, m.put("manifests/kube-scheduler.yaml", manifest))
		must(t, os.Remove(m.file("scheduler-config.yaml")))
	}()
	must(t, m.put("scheduler-config.yaml", text))
	must(t, m.put("manifests/kube-scheduler.yaml", theirs))
	must(t, m.run())
	must(t, at.mode("StaticPod"))
	must(t, at.until(patience, "applied", m.applied))
	if is := m.read("scheduler-config.yaml"); !strings.HasPrefix(is, "# theirs\n") || !strings.Contains(is, "podMaxBackoffSeconds: 7   # kept\n") {
		t.Errorf("what was theirs has changed:\n%s", is)
	}
	must(t, at.mode("None"))
	must(t, at.until(patience, "removed", m.removed))
	must(t, m.asBefore())
}

// A symbolic link where a file should be: not followed, and said.
func TestF48_ALinkIsNotFollowed(t *testing.T) {
	begin(t)
	m := at.controlPlaneNodes[0]
	outside := m.dir + "/outside.yaml"
	must(t, os.WriteFile(outside, []byte("theirs\n"), 0o600))
	must(t, os.Symlink(outside, m.file("scheduler-config.yaml")))
	must(t, m.run())
	must(t, at.mode("StaticPod"))
	err := at.until(30*time.Second, "stopped", func() error {
		return m.is("Stopped", "scheduler-config.yaml is a symbolic link, which is not followed")
	})
	if text, _ := os.ReadFile(outside); string(text) != "theirs\n" {
		t.Error("it was followed")
	}
	must(t, os.Remove(m.file("scheduler-config.yaml")))
	must(t, err)
	must(t, at.until(patience, "applied", m.applied))
}
