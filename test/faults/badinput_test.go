package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// Wrong from the start: one line that names what is wrong, code 1 (failed) or 2 (wrong usage), within its deadline. Never a crash, a
// stack, or a process that waits in silence.
func TestO7_wrong_from_the_start(t *testing.T) {
	b := take(t, "calm")
	proxy, err := kit.NewProxy("bad", b.Config, b.dir)
	b.must(err)
	t.Cleanup(proxy.Close) // after the cases, which run side by side
	token := filepath.Join(b.dir, "token")
	b.must(kit.WriteAtomically(token, b.token))
	write := func(name, content string) string {
		file := filepath.Join(b.dir, name)
		b.must(os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	good := filepath.Join(b.dir, "good")
	b.must(kit.WriteKubeconfig(good, proxy.URL, proxy.CAFile(), token))
	variant := func(name string, server, ca, tokenFile string) string {
		file := filepath.Join(b.dir, name)
		b.must(kit.WriteKubeconfig(file, server, ca, tokenFile))
		return file
	}
	other, err := kit.NewProxy("other", b.Config, b.dir)
	b.must(err)
	t.Cleanup(other.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	nobody := closed.Addr().String()
	closed.Close()
	nothing, err := b.Client.CoreV1().ServiceAccounts("default").CreateToken(b.ctx, "default", tokenRequest(), metav1.CreateOptions{})
	b.must(err)

	cases := []struct {
		name, kubeconfig string
		args             []string
		rule             *kit.Rule
		code             int
		says             string
	}{
		{name: "unknown flag", kubeconfig: good, args: []string{"--no-such-flag"}, code: 2, says: `no-such-flag`},
		{name: "flag without value", kubeconfig: good, args: []string{"--namespace"}, code: 2, says: `namespace`},
		{name: "invalid value", kubeconfig: good, args: []string{"--log-level", "loud"}, code: 2, says: `log-level.*loud|loud.*log-level`},
		{name: "lease shorter than its deadline", kubeconfig: good, args: []string{"--lease-duration", "5"}, code: 2, says: `(?i)lease|duration`},
		{name: "invalid address", kubeconfig: good, args: []string{"--metrics-address", "localhost:http:80"}, code: 2, says: `metrics-address|localhost:http`},
		{name: "no kubeconfig file", kubeconfig: filepath.Join(b.dir, "none"), code: 1, says: `none`},
		{name: "kubeconfig is not YAML", kubeconfig: write("garbage", "\x00{[\n: :"), code: 1, says: `garbage`},
		{name: "kubeconfig without cluster", kubeconfig: write("empty", "apiVersion: v1\nkind: Config\ncurrent-context: x\n"), code: 1, says: `empty|context`},
		{name: "no one listens", kubeconfig: variant("nobody", "https://"+nobody, proxy.CAFile(), token), code: 1, says: nobody},
		{name: "wrong CA", kubeconfig: variant("ca", proxy.URL, other.CAFile(), token), code: 1, says: `(?i)certificat|TLS|SSL`},
		{name: "CA file is missing", kubeconfig: variant("noca", proxy.URL, "/nonexistent/ca.crt", token), code: 1, says: `/nonexistent/ca.crt`},
		{name: "token is refused", kubeconfig: variant("401", proxy.URL, proxy.CAFile(), write("badtoken", "not-a-token-0123456789abcdef")), code: 1, says: `(?i)401|unauthorized`},
		{name: "no rights", kubeconfig: variant("403", proxy.URL, proxy.CAFile(), write("poor", nothing.Status.Token)), code: 1, says: `(?i)403|forbidden`},
		{name: "CRDs not installed", kubeconfig: good, rule: &kit.Rule{Match: func(r *kit.Request) bool {
			return r.Group == "quartermaster.io" || r.Path == "/apis/quartermaster.io/v1alpha1"
		},
			Status: 404}, code: 1, says: `(?i)CRD|acceleratorpolicies|quartermaster\.io`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mine := proxy
			if c.rule != nil { // a proxy of its own, for the rule must not reach the others
				var err error
				if mine, err = kit.NewProxy("rule", b.Config, t.TempDir()); err != nil {
					t.Fatal(err)
				}
				defer mine.Close()
				mine.Use(*c.rule)
				c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
				if err := kit.WriteKubeconfig(c.kubeconfig, mine.URL, mine.CAFile(), token); err != nil {
					t.Fatal(err)
				}
			}
			o, err := kit.StartOperator(kit.OperatorOptions{Name: strings.ReplaceAll(c.name, " ", "-"), Program: program, Kubeconfig: c.kubeconfig,
				Namespace: kit.Namespace, Dir: b.dir, Args: c.args})
			if err != nil {
				t.Fatal(err)
			}
			code, gone := o.Exited(40 * time.Second)
			if !gone {
				o.Kill()
				t.Fatalf("still runs after 40 s; it says:\n%s", o.LogTail(6))
			}
			if code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
			if last := o.LogTail(1); !regexp.MustCompile(c.says).MatchString(last) {
				t.Errorf("the last line does not say what is wrong (%s):\n%s", c.says, o.LogTail(6))
			}
			if lines := strings.Count(strings.TrimSpace(o.Log()), "\n") + 1; lines > 30 {
				t.Errorf("%d lines where one would do:\n%s", lines, o.LogTail(6))
			}
			for _, w := range kit.NoSecrets(o.Log(), b.token, "not-a-token-0123456789abcdef") {
				t.Error(w)
			}
		})
	}
	for what, bad := range map[string]struct{ modules, says string }{ // the API refuses it in words
		"an unknown module":                       {"{warp: {enabled: true}}", "warp"},
		"a toleration that no DaemonSet may have": {"{pgpu: {tolerations: [{effect: NoSchedule}]}}", "without a key the operator must be Exists"},
	} {
		t.Run("policy with "+what, func(t *testing.T) {
			_, err := b.Run("apiVersion: quartermaster.io/v1alpha1\nkind: AcceleratorPolicy\nmetadata: {name: default}\nspec: {modules: "+bad.modules+"}\n",
				"kubectl", "apply", "--validate=strict", "-f", "-")
			if err == nil || !strings.Contains(fmt.Sprint(err), bad.says) {
				t.Errorf("accepted, or refused without saying %q: %v", bad.says, err)
			}
		})
	}
}
