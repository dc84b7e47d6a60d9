package dedicated

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/admission"
)

const (
	policyName = "dedicated-scheduler.quartermaster.io"
	optOut     = "quartermaster.io/scheduler"
	taint      = "quartermaster.io/accelerator"
	refusal    = ", which the scheduler quartermaster gives out, but spec.schedulerName is default-scheduler: set spec.schedulerName to quartermaster and " +
		"tolerate the taint quartermaster.io/accelerator, or leave the pod to the default scheduler by the label quartermaster.io/scheduler=ignore"
)

// becomes is what a pod becomes where the server mutates. Where it does not, those to be named are refused, and all others are left alone.
type becomes int

const (
	left      becomes = iota // the same to the last byte
	given                    // the name and the toleration
	named                    // the name; it tolerates by itself
	tolerates                // the toleration; it has the name
)

type trial struct {
	name      string
	namespace string            // empty: default
	change    func(*corev1.Pod) // what a pod that asks for nothing is before it is sent
	becomes   becomes
	says      string // how its refusal begins
}

func limits(of map[string]string) corev1.ResourceRequirements {
	out := corev1.ResourceList{}
	for key, amount := range of {
		out[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	return corev1.ResourceRequirements{Limits: out}
}

// asks in its one container.
func asks(key, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = limits(map[string]string{key: amount}) }
}

// card is a pod that asks for one, and something more.
func card(more func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { asks("nvidia.com/gpu", "1")(p); more(p) }
}

func tolerating(all ...corev1.Toleration) func(*corev1.Pod) {
	return card(func(p *corev1.Pod) { p.Spec.Tolerations = all })
}

func scheduler(name string) func(*corev1.Pod) {
	return card(func(p *corev1.Pod) { p.Spec.SchedulerName = name })
}

func labelled(value string) func(*corev1.Pod) {
	return card(func(p *corev1.Pod) { p.Labels = map[string]string{optOut: value} })
}

// many containers, of which the last asks for a card, with so many limits each that mean nothing.
func many(containers, amounts int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = nil
		for i := range containers {
			of := map[string]string{}
			for k := range amounts {
				of[fmt.Sprintf("example.com/other-%d", k)] = "1"
			}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "none", Resources: limits(of)})
		}
		p.Spec.Containers[containers-1].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1")
	}
}

// documented are the keys by which the document says that pods ask for cards.
func documented() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(admission.Root(), "docs/scheduling.md"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, found := range regexp.MustCompile(`(?m)^ +- \{name: ([^,}]+)`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, found[1])
	}
	if !slices.Contains(out, "nvidia.com/gpu") || len(out) < 10 {
		return nil, fmt.Errorf("docs/scheduling.md has these managedResources: %v", out)
	}
	return out, nil
}

const main = "container main asks for nvidia.com/gpu"

func table() ([]trial, error) {
	keys, err := documented()
	if err != nil {
		return nil, err
	}
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	always := corev1.ContainerRestartPolicyAlways
	out := []trial{
		{name: "nothing", change: func(*corev1.Pod) {}},
		{name: "processor and memory", change: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = limits(map[string]string{"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"})
		}},
		{name: "an unknown key", change: asks("example.com/other", "1")},
		{name: "a key of another scheduler: Volcano", change: asks("volcano.sh/vgpu-number", "1")},
		{name: "a key of another scheduler: ACK", change: asks("aliyun.com/gpu", "1")},
		{name: "a declared key", change: asks(declared, "1"), becomes: given, says: "container main asks for " + declared},
		{name: "none of a key", change: asks("nvidia.com/gpu", "0")},
		{name: "none of a declared key", change: asks(declared, "0")},
		{name: "none of one key, some of another", change: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = limits(map[string]string{"nvidia.com/gpu": "0", "aliyun.com/gpu-mem": "3"})
		}, becomes: given, says: "container main asks for aliyun.com/gpu-mem"},
		{name: "requested, too", change: card(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Limits }),
			becomes: given, says: main},
		{name: "an init container", change: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "none", Resources: limits(map[string]string{"nvidia.com/gpu": "1"})}}
		}, becomes: given, says: "container first asks for nvidia.com/gpu"},
		{name: "a sidecar", change: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "beside", Image: "none", RestartPolicy: &always, Resources: limits(map[string]string{"tencent.com/vcuda-core": "100"})}}
		}, becomes: given, says: "container beside asks for tencent.com/vcuda-core"},
		{name: "the second container", change: func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "second", Image: "none", Resources: limits(map[string]string{"nvidia.com/gpu": "1"})})
		}, becomes: given, says: "container second asks for nvidia.com/gpu"},

		{name: "opted out", change: labelled("ignore")},
		{name: "opted out, with our name", change: func(p *corev1.Pod) { labelled("ignore")(p); p.Spec.SchedulerName = "quartermaster" }},
		{name: "the label with another value", change: labelled("Ignore"), becomes: given, says: main},
		{name: "the default scheduler in so many words", change: scheduler("default-scheduler"), becomes: given, says: main},
		{name: "another scheduler", change: scheduler("volcano")},
		{name: "our scheduler", change: scheduler("quartermaster"), becomes: tolerates},
		{name: "our scheduler, for nothing it gives out", change: func(p *corev1.Pod) { p.Spec.SchedulerName = "quartermaster" }},
		{name: "our scheduler, tolerated", change: func(p *corev1.Pod) {
			scheduler("quartermaster")(p)
			p.Spec.Tolerations = []corev1.Toleration{exists(taint, corev1.TaintEffectNoSchedule)}
		}},
		{name: "a node of its own", change: card(func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })},
		{name: "a node and our name", change: card(func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "node-1", "quartermaster" })},
		{name: "the mirror of a static pod", change: card(func(p *corev1.Pod) {
			p.Spec.NodeName, p.Annotations = "node-1", map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		})},
		{name: "gated", change: card(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} }), becomes: given, says: main},
		{name: "of a DaemonSet", change: card(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{exists("node.kubernetes.io/not-ready", corev1.TaintEffectNoExecute), exists("node.kubernetes.io/unschedulable", corev1.TaintEffectNoSchedule)}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}}}}}}}
		}), becomes: given, says: main},

		{name: "tolerates the taint", change: tolerating(exists(taint, corev1.TaintEffectNoSchedule)), becomes: named, says: main},
		{name: "tolerates the taint, whatever its effect", change: tolerating(exists(taint, "")), becomes: named, says: main},
		{name: "tolerates everything", change: tolerating(exists("", "")), becomes: named, says: main},
		{name: "tolerates the taint when it runs", change: tolerating(exists(taint, corev1.TaintEffectNoExecute)), becomes: given, says: main},
		{name: "tolerates another taint", change: tolerating(exists("nvidia.com/gpu", corev1.TaintEffectNoSchedule)), becomes: given, says: main},
		{name: "tolerates one value of the taint", change: tolerating(corev1.Toleration{Key: taint, Operator: corev1.TolerationOpEqual, Value: "x", Effect: corev1.TaintEffectNoSchedule}),
			becomes: given, says: main},
		{name: "tolerates one value of the taint, without an operator", change: tolerating(corev1.Toleration{Key: taint, Value: "x"}), becomes: given, says: main},

		{name: "300 containers", change: many(300, 1), becomes: given, says: "container c299 asks for nvidia.com/gpu"},
		{name: "3000 containers", change: many(3000, 0), becomes: given, says: "container c2999 asks for nvidia.com/gpu"},
		{name: "10000 limits", change: many(10, 1000), becomes: given, says: "container c9 asks for nvidia.com/gpu"},
	}
	for _, key := range keys {
		out = append(out, trial{name: key, change: asks(key, "20"), becomes: given, says: "container main asks for " + key})
	}
	for _, namespace := range systemNamespaces {
		out = append(out, trial{name: "in " + namespace, namespace: namespace, change: asks("nvidia.com/gpu", "1")},
			trial{name: "our scheduler, in " + namespace, namespace: namespace, change: scheduler("quartermaster")})
	}
	return out, nil
}

// send a trial; nothing is made of it. The text is the whole pod as it would be, without what is new each time.
func (a trial) send() (code int, said, text string, err error) {
	pod, no := admission.NewPod(), false
	pod.Spec.AutomountServiceAccountToken = &no // its volume has a name made up each time
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	a.change(pod)
	if a.namespace != "" {
		pod.Namespace = a.namespace
	}
	reply, err := api.DryRun(ctx, pod, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod.Namespace)
	if err != nil || reply.Pod == nil {
		return reply.Code, reply.Message, "", err
	}
	text, err = textOf(reply.Pod)
	return reply.Code, "", text, err
}

func textOf(pod *corev1.Pod) (string, error) {
	pod.UID, pod.CreationTimestamp = "", metav1.Time{}
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].Time = nil
	}
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	text, err := json.Marshal(pod)
	return string(text), err
}

// want is the text of a pod that is mutated, made of what it is where nothing is.
func (a trial) want(text string) (string, error) {
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		return "", err
	}
	if a.becomes == given || a.becomes == named {
		pod.Spec.SchedulerName = "quartermaster"
	}
	if a.becomes == given || a.becomes == tolerates {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	// A server that mutates says that the sender owns the fields: none of our business.
	pod.ManagedFields = nil
	return textOf(&pod)
}

func unowned(text string) (string, error) {
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		return "", err
	}
	pod.ManagedFields = nil
	return textOf(&pod)
}

// judge a trial where Dedicated is on, or off; plain: the same pod where there are no rules at all.
func (a trial) judge(on, mutates bool, plain string) error {
	code, said, is, err := a.send()
	if err != nil {
		return err
	}
	asked := on && a.says != ""
	if asked && !mutates {
		want := "denied request: " + a.says + refusal
		if code != 422 || !strings.Contains(said, "ValidatingAdmissionPolicy '"+policyName+"'") || !strings.HasSuffix(said, want) || strings.Contains(said, "\n") {
			return fmt.Errorf("not refused with %q: %d %s %.200s", want, code, said, is)
		}
		return nil
	}
	if code != 201 {
		return fmt.Errorf("%d %s", code, said)
	}
	want := plain
	if on && mutates && a.becomes != left {
		if want, err = a.want(plain); err != nil {
			return err
		}
		if is, err = unowned(is); err != nil {
			return err
		}
	}
	if is != want {
		return fmt.Errorf("it became\n%.3000s\nand was to be\n%.3000s", is, want)
	}
	return nil
}

// stage is the table with what each pod is where there are no rules, and a pod that is there already.
type stage struct {
	trials  []trial
	plain   []string
	mutates bool
	there   *corev1.Pod
}

// set the stage: none of our policies is in force. The largest pods are refused by share-bypass too, and the server says the sentence of
// either: until the test is over it has no binding, so that each pod is refused by the policy that is tried here.
func set(t *testing.T) *stage {
	t.Helper()
	must(t, forget())
	validating := api.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	passing, err := validating.Get(ctx, "share-bypass.quartermaster.io", metav1.GetOptions{})
	must(t, err)
	must(t, validating.Delete(ctx, passing.Name, metav1.DeleteOptions{}))
	t.Cleanup(func() {
		passing.ResourceVersion, passing.UID = "", ""
		if _, err := validating.Create(ctx, passing, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	s := &stage{mutates: api.Fills}
	s.trials, err = table()
	must(t, err)
	// Until the server has seen that the object is gone.
	must(t, until(30*time.Second, "pods without rules", func() (bool, error) {
		s.plain = nil
		for _, a := range s.trials {
			code, said, text, err := a.send()
			if err != nil || code != 201 {
				return false, fmt.Errorf("%s: %d %s %v", a.name, code, said, err)
			}
			var is corev1.Pod
			if err := json.Unmarshal([]byte(text), &is); err != nil {
				return false, err
			}
			asked := admission.NewPod()
			asked.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
			a.change(asked)
			if asked.Spec.SchedulerName == "" {
				asked.Spec.SchedulerName = corev1.DefaultSchedulerName
			}
			if is.Spec.SchedulerName != asked.Spec.SchedulerName || len(is.Spec.Tolerations) != len(asked.Spec.Tolerations) {
				return false, fmt.Errorf("%s is mutated: %s", a.name, text)
			}
			s.plain = append(s.plain, text)
		}
		return true, nil
	}))
	// A pod that waits, made before: no one schedules here.
	s.there = admission.NewPod()
	s.there.Name, s.there.Spec.Containers = "there", []corev1.Container{{Name: "main", Image: "none", Resources: limits(map[string]string{"nvidia.com/gpu": "1"})}}
	pods := api.Client.CoreV1().Pods("default")
	now := int64(0)
	_ = pods.Delete(ctx, "there", metav1.DeleteOptions{GracePeriodSeconds: &now})
	s.there, err = pods.Create(ctx, s.there, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = pods.Delete(ctx, "there", metav1.DeleteOptions{GracePeriodSeconds: &now}) })
	return s
}

// update of the pod that was there before: whatever is on, it is as it was, with the new label.
func (s *stage) update() error {
	is, err := api.Client.CoreV1().Pods("default").Patch(ctx, s.there.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"new":"x"}}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	want, _ := json.Marshal(s.there.Spec)
	if text, _ := json.Marshal(is.Spec); string(text) != string(want) {
		return fmt.Errorf("it became %s", text)
	}
	return nil
}

// wrong says what of the table comes out otherwise, a few at a time.
func (s *stage) wrong(on bool) (out []string) {
	out, _ = s.wrongOf(on, s.all())
	return out
}

// all are the indices of the whole table; one more is the update.
func (s *stage) all() (out []int) {
	for i := range len(s.trials) + 1 {
		out = append(out, i)
	}
	return out
}

// wrongOf is the same for some of the table, and says which these are.
func (s *stage) wrongOf(on bool, indices []int) (out []string, wrong []int) {
	var lock sync.Mutex
	judge := func(i int) {
		name, err := "an update", error(nil)
		if i == len(s.trials) {
			err = s.update()
		} else {
			name, err = s.trials[i].name, s.trials[i].judge(on, s.mutates, s.plain[i])
		}
		if err != nil {
			lock.Lock()
			out, wrong = append(out, name+": "+err.Error()), append(wrong, i)
			lock.Unlock()
		}
	}
	work := make(chan int)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range work {
				judge(i)
			}
		})
	}
	for _, i := range indices {
		work <- i
	}
	close(work)
	workers.Wait()
	slices.Sort(out)
	return out, wrong
}

// settle until the table comes out as it should. While a server has not seen a policy yet, it is asked for what was wrong alone: at most for
// two of these.
func (s *stage) settle(t *testing.T, on bool) {
	t.Helper()
	next := s.all()
	must(t, until(90*time.Second, "the table", func() (bool, error) {
		asked := next
		said, wrong := s.wrongOf(on, asked)
		if next = wrong[:min(len(wrong), 2)]; len(wrong) == 0 {
			next = s.all()
		}
		return len(wrong) == 0 && len(asked) > len(s.trials), fmt.Errorf("%d wrong: %.8000s", len(wrong), strings.Join(said, "\n"))
	}))
}

// unmutated makes the server one that does not mutate, as one below 1.36 is, until the test is over.
func (s *stage) unmutated(t *testing.T) {
	t.Helper()
	if !api.Fills {
		return
	}
	bindings := api.Client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	point := func(at string) error {
		_, err := bindings.Patch(ctx, policyName, types.MergePatchType, []byte(`{"spec":{"paramRef":{"selector":{"matchLabels":{"quartermaster.io/scheduler":"`+at+`"}}}}}`), metav1.PatchOptions{})
		return err
	}
	must(t, point("Nobody"))
	s.mutates = false
	t.Cleanup(func() {
		if err := point("Dedicated"); err != nil {
			t.Error(err)
		}
	})
}

func TestPodsThatAskForAcceleratorsGoToTheScheduler(t *testing.T) {
	s := set(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
	t.Logf("%d pods, %d to be named", len(s.trials), len(slices.DeleteFunc(slices.Clone(s.trials), func(a trial) bool { return a.says == "" })))
}

// A server whose mutation fails, or that knows none: nothing slips by.
func TestWhatIsNotMutatedIsRefused(t *testing.T) {
	s := set(t)
	s.unmutated(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
}

// A policy that costs more than the server grants it does nothing, so a pod that must be refused has to be, whatever its size.
func TestNoPodIsTooLargeToBeRefused_long(t *testing.T) {
	s := set(t)
	s.unmutated(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
	for _, of := range []struct{ containers, amounts int }{{9000, 0}, {1, 50_000}, {200, 200}} {
		last := fmt.Sprintf("container c%d asks for nvidia.com/gpu", of.containers-1)
		large := trial{change: many(of.containers, of.amounts), becomes: given, says: last}
		// A busy server may not be done within its 34 s; then the pod is not made either, and the client asks again.
		err := large.judge(true, false, "")
		for again := 0; again < 3 && err != nil && strings.Contains(err.Error(), ": 504 Timeout"); again++ {
			t.Logf("%d containers of %d limits: asked again: %.500s", of.containers, of.amounts, err)
			err = large.judge(true, false, "")
		}
		if err != nil {
			t.Errorf("%d containers of %d limits: %.500s", of.containers, of.amounts, err)
		}
	}
}

func TestWithoutTheLabelEveryPodIsLeftAlone(t *testing.T) {
	s := set(t)
	for _, label := range []string{"", "None", "StaticPod"} {
		must(t, write("Dedicated"))
		s.settle(t, true)
		must(t, write(label))
		s.settle(t, false)
	}
	must(t, write("Dedicated"))
	s.settle(t, true)
	must(t, forget())
	s.settle(t, false)
}

func TestTheServerHasNothingToSayAgainstThePolicy(t *testing.T) {
	var policy *admissionv1.ValidatingAdmissionPolicy
	must(t, until(60*time.Second, "the status of the policy", func() (bool, error) {
		var err error
		policy, err = api.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, policyName, metav1.GetOptions{})
		return err == nil && policy.Status.ObservedGeneration == policy.Generation && policy.Status.TypeChecking != nil, err
	}))
	for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
		t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
	}
}
