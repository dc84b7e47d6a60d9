package admission

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What the policy on declarations refuses at the door is what the operator would refuse afterwards, field by field: nothing sound is turned
// away, nothing broken slips in.
func TestS23_S24_TheDoorAndTheOperatorRefuseTheSameDeclarations(t *testing.T) {
	judge, engine := cppForm(t), celForm(t)
	random := rand.New(rand.NewSource(20261121))
	rules, refused := NewSpec(), 0
	rules.Finish()
	count := form(1_500, 6_000)
	for n := range count {
		configMap := randomDeclaration(random)
		compiled, err := judge.Compile([]corev1.ConfigMap{*configMap}, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := engine.Declaration(configMap, rules)
		if err != nil {
			t.Fatalf("trial %d: %v\n%v %v", n, err, configMap.Labels, configMap.Data)
		}
		if text != "" {
			refused++
		}
		if switchedOff(configMap) { // it can be switched off whatever is wrong with it
			if text != "" {
				t.Fatalf("trial %d: switched off, and the door says %q\n%v %v", n, text, configMap.Labels, configMap.Data)
			}
			continue
		}
		missing := slices.IndexFunc(compiled.Faults, func(field string) bool { return !strings.Contains(text, field+" ") })
		if (text != "") != (len(compiled.Refused) > 0) || missing >= 0 || len(strings.Split(text, "; allowed: ")) != len(compiled.Faults)+1 {
			t.Fatalf("trial %d: the operator finds fault with %q, the door says %q\n%v %v", n, compiled.Faults, text, configMap.Labels, configMap.Data)
		}
	}
	if refused < count/5 || refused > count*4/5 {
		t.Errorf("%d of %d refused: too one-sided to show anything", refused, count)
	}
}

// switchedOff: features.cpaas.io counts where labels of both domains are there.
func switchedOff(of *corev1.ConfigMap) bool {
	label, both := "features.alauda.io/enabled", of.Labels["features.cpaas.io/enabled"]
	_, cpaas := of.Labels["features.cpaas.io/enabled"]
	if cpaas {
		return both == "false"
	}
	if _, alauda := of.Labels[label]; !alauda && of.Labels["features.cpaas.io/type"] != "" {
		return false
	}
	return of.Labels[label] == "false"
}

// What the door answers when a declaration changes: it never refuses what it does not judge, nor the way out.
func TestS24_ABrokenDeclarationCanBeSwitchedOffAndItsOwnerMayChangeWhatIsHis(t *testing.T) {
	engine := celForm(t)
	rules := NewSpec()
	rules.Finish()
	broken := ConfigMap("cf-crl-lab-fpga", map[string]string{"key": "example.com/fpga", "dataType": "integer", "limits": "disabledd", "requests": "disabled"})
	for name, c := range map[string]struct {
		change  func(*corev1.ConfigMap)
		refused bool
	}{
		"another label":   {func(m *corev1.ConfigMap) { m.Labels["helm.sh/chart"] = "lab-2" }, false},
		"the description": {func(m *corev1.ConfigMap) { m.Data["descriptionEn"] = "other words" }, false},
		"our verdict":     {func(m *corev1.ConfigMap) { m.Annotations = map[string]string{"quartermaster.io/verdict": "{}"} }, false},
		"switched off":    {func(m *corev1.ConfigMap) { m.Labels["features.cpaas.io/enabled"] = "false" }, false},
		"another mistake": {func(m *corev1.ConfigMap) { m.Data["requests"] = "maybe" }, true},
		"a label of ours": {func(m *corev1.ConfigMap) { m.Labels["features.cpaas.io/group"] = "lab" }, true},
	} {
		after := broken.DeepCopy()
		c.change(after)
		text, err := engine.Update(&broken, after, rules)
		if err != nil || (text != "") != c.refused {
			t.Errorf("%s: %v %q", name, err, text)
		}
	}
}

// A second declaration of a key is turned away, but for one that a module published: a person's takes its place.
func TestS23_APersonsDeclarationTakesThePlaceOfAModules(t *testing.T) {
	judge, engine := cppForm(t), celForm(t)
	first := ConfigMap("cf-crl-lab-fpga", map[string]string{"key": "example.com/fpga", "dataType": "integer", "limits": "optional", "requests": "disabled"})
	second := first.DeepCopy()
	second.Name = "cf-crl-team-fpga"
	for _, published := range []bool{false, true} {
		if published {
			first.Labels["app.kubernetes.io/managed-by"] = "quartermaster"
		}
		compiled, err := judge.Compile([]corev1.ConfigMap{first}, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := engine.Declaration(second, compiled.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if refused := strings.Contains(text, "declares already"); refused == published {
			t.Errorf("published %t: the door says %q", published, text)
		}
	}
}

func randomDeclaration(random *rand.Rand) *corev1.ConfigMap {
	any := func(of ...string) string { return of[random.Intn(len(of))] }
	rarely := func(good string, bad ...string) string {
		if random.Intn(8) > 0 {
			return good
		}
		return any(bad...)
	}
	long := strings.Repeat("a", 63)
	domain := any("features.cpaas.io/", "features.alauda.io/")
	group := any("lab", "g.1_X")
	out := ConfigMap("cf-crl-lab-fpga", map[string]string{
		"key": rarely(any("example.com/fpga", " example.com/fpga\n", "tencent.com/vcuda-core", "a/"+long, long+".b/c", "x-y.0/A_b.C-d"), "", " ", "fpga", "/", "/a", "a/",
			"a//b", "kubernetes.io/a", "a.kubernetes.io/b", "notkubernetes.io/b", "requests.a.b/c", "requests.nvidia.com/gpu", "Example.com/a", "a..b/c", "-a.b/c", "a-.b/c", "a/"+long+"a",
			"a"+long+".b/c", strings.Repeat("a.", 121)+"aa/b", strings.Repeat("a.", 122)+"a/b", strings.Repeat("a.", 122)+"/b", "a/-b", "a/b_", "a/b c", "卡.com/a", "a/卡", "a_b/c"),
		"limits":   rarely(any("optional", "required", "disabled", " required "), "", "Required", "fromLimits", "requried", "disabled,required"),
		"requests": rarely(any("optional", "required", "disabled", "fromLimits"), "", "from-limits", "none"),
		"group":    rarely(group, "", "other", " "+group+" ", "a b"),
		"defaultValue": rarely(any("", "1", "20", "100", "300"), "0", "150", "-1", "+1", "1.5", "1e3", "4Gi", "half", "9223372036854775807", "9223372036854775808",
			"999999999999999999", "10000000000000000000", "00000000000000000000000000007", "00000000009223372036854775808", "１", "0x10", " 7 "),
		"relatedResources": rarely("", "example.com/a,example.com/b", " example.com/a , ,example.com/c", "example.com/fpga,x", "Example.com/a", strings.Repeat("example.com/z,", 60)),
		"excludeResources": rarely("", "example.com/b", "example.com/c, example.com/a,example.com/a", "example.com/fpga,x", "Example.com/a"),
		"dataType":         any("integer", "vGPU"),
	})
	out.Labels = map[string]string{domain + "type": "CustomResourceLimitation", domain + "group": group, domain + "enabled": rarely("true", "false", "yes", "", "True")}
	if random.Intn(6) == 0 { // labels of the other domain too
		other := any("features.cpaas.io/", "features.alauda.io/")
		out.Labels[other+any("type", "group", "enabled")] = any("CustomResourceLimitation", "lab", "true", "false", "")
	}
	for _, label := range []string{"group", "enabled"} {
		if random.Intn(10) == 0 {
			delete(out.Labels, domain+label)
		}
	}
	for field := range out.Data {
		if random.Intn(16) == 0 {
			delete(out.Data, field)
		}
	}
	if random.Intn(50) == 0 {
		out.Data = nil
	}
	return &out
}
