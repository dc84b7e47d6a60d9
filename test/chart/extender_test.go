package chart

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// secretOf is a Secret of the objects, decoded.
func secretOf(t *testing.T, objects []Object, name string) map[string]string {
	t.Helper()
	for _, one := range objects {
		if one.Kind == "Secret" && one.Name == name {
			out := map[string]string{}
			for key, value := range one.Content["data"].(map[string]any) {
				text, err := base64.StdEncoding.DecodeString(value.(string))
				if err != nil {
					t.Fatalf("%s, %s: %v", name, key, err)
				}
				out[key] = string(text)
			}
			return out
		}
	}
	t.Fatalf("no Secret %s", name)
	return nil
}

func certificate(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(strings.TrimSpace(string(rest))) > 0 {
		t.Fatalf("not one certificate: %q", text)
	}
	is, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// verified asks openssl whether a certificate of the Secret is good for a purpose, and whether the key is its own.
func verified(t *testing.T, secret map[string]string, purpose string, more ...string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range secret {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(arguments ...string) string {
		cmd := exec.Command("openssl", arguments...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("openssl %v: %s", arguments, out)
		}
		return string(out)
	}
	run(append(append([]string{"verify", "-x509_strict", "-CAfile", "ca.crt", "-purpose", purpose}, more...), "tls.crt")...)
	if run("pkey", "-in", "tls.key", "-pubout") != run("x509", "-in", "tls.crt", "-noout", "-pubkey") {
		t.Error("the key is of another certificate")
	}
}

// What is rendered with the extender on, but for the parts that are made anew each time.
func Test_what_the_extender_becomes(t *testing.T) {
	objects, err := Template("{extender: {enabled: true}, networkPolicy: true}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	random := regexp.MustCompile(`(?m)^(  (?:ca\.crt|ca\.key|tls\.crt|tls\.key): )[A-Za-z0-9+/=]{300,}$`)
	for _, one := range objects {
		for _, template := range []string{"extender", "extender-policies", "scheduler-policies", "deployment", "networkpolicy"} {
			if strings.HasPrefix(one.Text, "# Source: quartermaster/templates/"+template+".yaml\n") {
				text.WriteString("---\n" + random.ReplaceAllString(one.Text, "${1}random"))
			}
		}
	}
	if is := strings.Count(text.String(), ": random\n"); is != 8 {
		t.Errorf("%d random parts, not 8", is)
	}
	Golden(t, "extender.yaml", text.String())
}

func Test_the_extenders_certificates_verify(t *testing.T) {
	for _, namespace := range []string{"kube-system", "quartermaster", strings.Repeat("n", 63)} {
		objects, err := Template("{extender: {enabled: true}}", "-n", namespace)
		if err != nil {
			t.Fatal(err)
		}
		server, client := secretOf(t, objects, "quartermaster-extender"), secretOf(t, objects, "quartermaster-extender-client")
		authority := secretOf(t, objects, "quartermaster-extender-authority")
		if server["ca.crt"] != client["ca.crt"] || server["ca.crt"] != authority["ca.crt"] {
			t.Error("two authorities")
		}
		verified(t, map[string]string{"ca.crt": authority["ca.crt"], "tls.crt": authority["ca.crt"], "tls.key": authority["ca.key"]}, "any")
		verified(t, server, "sslserver", "-verify_hostname", "quartermaster-extender."+namespace+".svc")
		verified(t, client, "sslclient")
		for _, name := range []string{"quartermaster-extender." + namespace + ".svc", "quartermaster-extender." + namespace + ".svc.cluster.local", "quartermaster-extender", "localhost"} {
			if err := certificate(t, server["tls.crt"]).VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		for name, text := range map[string]string{"the authority": server["ca.crt"], "the server's": server["tls.crt"], "the client's": client["tls.crt"]} {
			is, days := certificate(t, text), time.Duration(365)
			if name == "the authority" {
				days = 3650
			}
			if left := time.Until(is.NotAfter); left < (days-1)*24*time.Hour || left > (days+1)*24*time.Hour {
				t.Errorf("%s certificate lasts %s", name, left)
			}
			if ca := name == "the authority"; is.IsCA != ca {
				t.Errorf("%s certificate is an authority: %v", name, is.IsCA)
			}
		}
		// No other install's.
		again, err := Template("{extender: {enabled: true}}", "-n", namespace)
		if err != nil {
			t.Fatal(err)
		}
		if secretOf(t, again, "quartermaster-extender")["tls.key"] == server["tls.key"] {
			t.Error("two installs have one key")
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

// A Secret of one's own: ours are not made. Off: nothing is, and nothing of the policies, so that plugins others installed are left alone.
func Test_a_certificate_of_ones_own_and_an_extender_that_is_off(t *testing.T) {
	objects, err := Template("{extender: {enabled: true, certificateSecret: mine}}")
	if err != nil {
		t.Fatal(err)
	}
	mounted := false
	for _, one := range objects {
		if one.Kind == "Secret" && strings.Contains(one.Name, "extender") {
			t.Errorf("Secret %s is made", one.Name)
		}
		mounted = mounted || one.Kind == "Deployment" && strings.Contains(one.Text, "secret: {secretName: mine}")
	}
	if !mounted {
		t.Error("the Secret is not mounted")
	}
	for values, want := range map[string][]string{
		"": nil,
		"{extender: {enabled: false, protect: true}}": nil,
		"{extender: {enabled: true, protect: false}}": {"ClusterRole quartermaster-extender", "ClusterRoleBinding quartermaster-extender", "Role quartermaster-extender",
			"RoleBinding quartermaster-extender", "Secret quartermaster-extender", "Secret quartermaster-extender-authority", "Secret quartermaster-extender-client",
			"Service quartermaster-extender"},
	} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		if is := slices.Concat(named(objects, "extender"), named(objects, "placement")); !slices.Equal(is, want) {
			t.Errorf("%q: %v, not %v", values, is, want)
		}
		if values == "" {
			for _, one := range objects {
				if strings.Contains(one.Text, "--extender") || strings.Contains(one.Text, "9443") {
					t.Errorf("%s %s speaks of the extender", one.Kind, one.Name)
				}
			}
		}
	}
}

func Test_wrong_values_of_the_extender_are_refused_with_their_path(t *testing.T) {
	for values, want := range map[string]string{
		"extender: {enable: true}":                    "at '/extender': additional properties 'enable' not allowed",
		"extender: {enabled: \"true\"}":               "at '/extender/enabled': got string, want boolean",
		"extender: {enabled: true, port: 443}":        "at '/extender/port': minimum: got 443, want 1,025",
		"extender: {enabled: true, port: \"9443\"}":   "at '/extender/port': got string, want integer",
		"extender: {protect: 1}":                      "at '/extender/protect': got number, want boolean",
		"extender: {certificateSecret: {name: mine}}": "at '/extender/certificateSecret': got object, want string",
		"extender: {certificateSecret: Mine_1}":       "at '/extender/certificateSecret': 'Mine_1' does not match pattern",
		"extender: {certSecret: mine}":                "at '/extender': additional properties 'certSecret' not allowed",
		"extender: {enabled: true, port: 8080}":       "extender.port is 8080, which is metrics.port; allowed: another port of the pod",
		"extender: {enabled: true, port: 8443}":       "extender.port is 8443, which is admission.port; allowed: another port of the pod",
		"policy: {scheduler: {mode: Dedicated}}":      "policy.scheduler.mode is Dedicated, but extender.enabled is false; allowed: None, or extender.enabled=true",
		"policy: {scheduler: {mode: dedicated}}":      "at '/policy/scheduler/mode': value must be one of 'None', 'Dedicated', 'StaticPod'",
		"policy: {scheduler: {isolate: true}}":        "at '/policy/scheduler': additional properties 'isolate' not allowed",
		"policy: {scheduler: {replicas: 0}}":          "at '/policy/scheduler/replicas': minimum: got 0, want 1",
		"policy: {scheduler: {image: 'a b'}}":         "at '/policy/scheduler/image': 'a b' does not match pattern",
	} {
		if _, err := Template(values); err == nil {
			t.Errorf("accepted: %s", values)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nlacks: %s", values, err, want)
		}
	}
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
	objects, err := Template("{extender: {enabled: true}}", "--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
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
	if lists != 4 {
		t.Errorf("%d lists of keys, not one in each match condition and two for the message", lists)
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
	objects, err := Template("{extender: {enabled: true}}", "-n", "elsewhere")
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
