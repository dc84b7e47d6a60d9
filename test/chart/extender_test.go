package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is rendered of the extender, which needs no value.
func Test_what_the_extender_becomes(t *testing.T) {
	objects, err := Template("{networkPolicy: true}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, one := range objects {
		for _, template := range []string{"extender", "extender-policies", "scheduler-policies", "deployment", "networkpolicy"} {
			if strings.HasPrefix(one.Text, "# Source: quartermaster/templates/"+template+".yaml\n") {
				text.WriteString("---\n" + one.Text)
			}
		}
	}
	Golden(t, "extender.yaml", text.String())
}

// Who renders the chart without a server (Argo CD, `helm template | kubectl apply`) applies the same each time: nothing in it is random, of the
// hour, or a secret.
func Test_two_renderings_are_equal_byte_for_byte(t *testing.T) {
	for _, values := range []string{
		"",
		"{pgpu_enable: true, policy: {scheduler: {mode: Dedicated}}, networkPolicy: true, metrics: {serviceMonitor: {enabled: true}}}",
		"{extender: {certificateSecret: mine, protect: always}, policy: {scheduler: {mode: StaticPod}}}",
	} {
		render := func() string {
			t.Helper()
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
				t.Fatal(err)
			}
			text, err := Render("quartermaster", Chart(), "-n", "quartermaster", "-f", file, "--kube-version", "1.36.0")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		first := render()
		if render() != first {
			t.Errorf("%q: two renderings differ", values)
		}
		objects, err := Objects(first)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range objects {
			if one.Kind == "Secret" {
				t.Errorf("%q: Secret %s is rendered; the operator makes Secrets", values, one.Name)
			}
		}
	}
}

// No value switches a part of the scheduler off: the mode of the policy does.
func Test_no_value_takes_a_part_of_the_scheduler_away(t *testing.T) {
	for _, values := range []string{"", "{replicaCount: 0}", "{policy: {scheduler: {mode: None}}}", "{policy: {scheduler: {mode: StaticPod}}}"} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Service quartermaster-extender", "ServiceAccount quartermaster-scheduler", "DaemonSet quartermaster-static-pod",
			"ConfigMap quartermaster-static-pod", "Lease quartermaster-static-pod"} {
			if !slices.ContainsFunc(objects, func(one Object) bool { return one.Kind+" "+one.Name == want }) {
				t.Errorf("%q: no %s", values, want)
			}
		}
	}
	for _, part := range []string{"extender", "staticPod"} {
		for _, value := range []string{"true", "false", "yes please"} {
			_, err := Template(part + ": {enabled: " + value + "}")
			if want := part + ".enabled is no value any more: both parts are always there, and spec.scheduler.mode"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s.enabled %s: %v", part, value, err)
			}
		}
		if _, err := Template(part+": {enabled: true}", "--set", part+".enabled=null"); err != nil {
			t.Errorf("what the message says does not help: %v", err)
		}
	}
}

func named(objects []Object, part string) (out []string) {
	for _, one := range objects {
		if strings.Contains(one.Name, part) {
			out = append(out, one.Kind+" "+one.Name)
		}
	}
	slices.Sort(out)
	return
}

// A Secret of one's own is mounted and its files are named; otherwise the operator makes the certificates and reads no file.
func Test_a_certificate_of_ones_own(t *testing.T) {
	for values, want := range map[string]bool{"": false, "{extender: {certificateSecret: mine}}": true} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range objects {
			if one.Kind != "Deployment" {
				continue
			}
			if is := strings.Contains(one.Text, "secret: {secretName: mine, optional: true}"); is != want {
				t.Errorf("%q: mounted: %v", values, is)
			}
			for _, flag := range []string{"--extender-cert-file", "--extender-key-file", "--extender-client-ca"} {
				if is := strings.Contains(one.Text, flag); is != want {
					t.Errorf("%q: %s: %v", values, flag, is)
				}
			}
			if !strings.Contains(one.Text, "--extender-address=:9443") {
				t.Errorf("%q: no extender", values)
			}
		}
	}
}

// Plugins that others installed are left alone where nothing asks the extender, unless the values say otherwise.
func Test_when_it_is_protected_which_cards_a_pod_has(t *testing.T) {
	for values, want := range map[string]string{
		"": "auto", "{extender: {protect: auto}}": "auto", "{extender: {protect: always}}": "always", "{extender: {protect: never}}": "never",
	} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		is := named(objects, "placement")
		if want == "never" {
			if len(is) > 0 {
				t.Errorf("%q: %v", values, is)
			}
			continue
		}
		if len(is) != 4 {
			t.Errorf("%q: %v", values, is)
		}
		for _, one := range objects {
			if !strings.Contains(one.Name, "placement") {
				continue
			}
			binding := strings.HasSuffix(one.Kind, "Binding")
			if asks := strings.Contains(one.Text, "values: [Dedicated, StaticPod]") && binding || strings.Contains(one.Text, "paramKind:") && !binding; asks != (want == "auto") {
				t.Errorf("%q: %s %s follows the mode: %v", values, one.Kind, one.Name, asks)
			}
			if fails := strings.Contains(one.Text, "failurePolicy: Fail"); fails && want == "auto" {
				t.Errorf("%q: %s %s would stop every pod where the type is missing", values, one.Kind, one.Name)
			}
		}
	}
}

func Test_wrong_values_of_the_extender_are_refused_with_their_path(t *testing.T) {
	refused(t, map[string]string{
		"extender: {enable: true}":                    "at '/extender': additional properties 'enable' not allowed",
		"extender: {port: 443}":                       "at '/extender/port': minimum: got 443, want 1,025",
		"extender: {port: \"9443\"}":                  "at '/extender/port': got string, want integer",
		"extender: {protect: true}":                   "at '/extender/protect': value must be one of 'auto', 'always', 'never'",
		"extender: {certificateSecret: {name: mine}}": "at '/extender/certificateSecret': got object, want string",
		"extender: {certificateSecret: Mine_1}":       "at '/extender/certificateSecret': 'Mine_1' does not match pattern",
		"extender: {certSecret: mine}":                "at '/extender': additional properties 'certSecret' not allowed",
		"extender: {port: 8080}":                      "extender.port is 8080, which is metrics.port; allowed: another port of the pod",
		"extender: {port: 8443}":                      "extender.port is 8443, which is admission.port; allowed: another port of the pod",
		"policy: {scheduler: {mode: dedicated}}":      "at '/policy/scheduler/mode': value must be one of 'None', 'Dedicated', 'StaticPod'",
		"policy: {scheduler: {isolate: true}}":        "at '/policy/scheduler': additional properties 'isolate' not allowed",
		"policy: {scheduler: {replicas: 0}}":          "at '/policy/scheduler/replicas': minimum: got 0, want 1",
		"policy: {scheduler: {image: 'a b'}}":         "at '/policy/scheduler/image': value must be '[HOST[:PORT]/]NAME[:TAG]",
	})
}

// Which keys go to our scheduler: those it asks the extender about, as the document has them, and the ledger knows each.
func Test_the_policies_name_the_keys_of_the_document(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(Root(), file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	vocabulary := read("quota/vocabulary.cpp")
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^ +- \{name: ([^,}]+)`).FindAllStringSubmatch(read("docs/scheduling.md"), -1) {
		want = append(want, found[1])
		if !strings.Contains(vocabulary, `.key = "`+found[1]+`"`) {
			t.Errorf("quota/vocabulary.cpp has no %s", found[1])
		}
	}
	if len(want) < 10 {
		t.Fatalf("the document has %v", want)
	}
	objects, err := Template("", "--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, one := range objects {
		for _, found := range regexp.MustCompile(`\['(nvidia.com/gpu'[^\]]+)'\]`).FindAllStringSubmatch(one.Text, -1) {
			lists++
			if is := strings.Split(found[1], "', '"); !slices.Equal(is, want) {
				t.Errorf("%s %s names %v, the document %v", one.Kind, one.Name, is, want)
			}
		}
	}
	if lists != 7 {
		t.Errorf("%d lists of keys, not one in each of three match conditions and two for each of two messages", lists)
	}
}

// The policy lets those plugins write that the modules install, by the names the modules give their accounts.
func Test_the_policy_names_the_modules_accounts(t *testing.T) {
	account := regexp.MustCompile(`constexpr std::string_view account = "([^"]+)"`)
	writers := map[string]bool{"vgpu.cpp": true, "hami.cpp": true, "gpushare.cpp": true}
	var want []string
	for name := range writers {
		text, err := os.ReadFile(filepath.Join(Root(), "reconcilers/modules", name))
		if err != nil {
			t.Fatal(err)
		}
		found := account.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s names no account", name)
		}
		want = append(want, string(found[1]))
	}
	want = append(want, "quartermaster")
	objects, err := Template("", "-n", "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range objects {
		if one.Kind != "ValidatingAdmissionPolicy" || one.Name != "placements.quartermaster.io" {
			continue
		}
		var is []string
		for _, found := range regexp.MustCompile(`'system:serviceaccount:elsewhere:([^']+)'`).FindAllStringSubmatch(one.Text, -1) {
			is = append(is, found[1])
		}
		slices.Sort(is)
		slices.Sort(want)
		if !slices.Equal(is, want) {
			t.Errorf("the policy names %v, the modules %v", is, want)
		}
		return
	}
	t.Error("no policy")
}
