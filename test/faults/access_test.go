package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// mortalToken is a token that can be ended at once: it is bound to a Secret and dies with it.
func (b *bench) mortalToken(name string) string {
	b.t.Helper()
	secrets := b.Client.CoreV1().Secrets(kit.Namespace)
	_ = secrets.Delete(b.ctx, name, metav1.DeleteOptions{})
	secret, err := secrets.Create(b.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	b.must(err)
	token, err := b.Token(b.ctx, &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: name, UID: secret.UID})
	b.must(err)
	return token
}

// F19: the token ends while it is in use, and the file is replaced, as a kubelet does. First in good order (file, then end), then late
// (end, then file). No restart, no token in a log.
func TestF19_token_rotated_long(t *testing.T) {
	b := take(t, "calm")
	first, second, third := b.mortalToken("token-1"), b.mortalToken("token-2"), b.mortalToken("token-3")
	b.token = first
	o := b.converged("rotated")
	file := filepath.Join(b.dir, "token")
	secrets := b.Client.CoreV1().Secrets(kit.Namespace)

	b.must(kit.WriteAtomically(file, second))
	b.must(secrets.Delete(b.ctx, "token-1", metav1.DeleteOptions{}))
	since := time.Now()
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.must(b.Await(b.ctx, 30*time.Second))
	o.Proxy.Refuse(true) // and its watches, which the server judges only when they open
	o.Proxy.Refuse(false)
	b.must(b.Ask(b.ctx, "t4-0", "pgpu"))
	b.must(b.Await(b.ctx, 30*time.Second))

	b.must(secrets.Delete(b.ctx, "token-2", metav1.DeleteOptions{}))
	refused := b.awaitStatus(o, since, 401, 20*time.Second) // the server remembers a good token for 10 s
	b.must(kit.WriteAtomically(file, third))
	rotated := time.Now()
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.must(b.Await(b.ctx, 70*time.Second))
	if code, gone := o.Exited(0); gone {
		t.Errorf("ended with code %d: a rotated token needs no restart", code)
	}
	t.Logf("401 seen at %s, good %s after the new file", refused.Format("15:04:05"), time.Since(rotated).Round(100*time.Millisecond))
	b.clean(kit.NoSecrets(o.Log(), first, second, third))
	b.stable(o, 10*time.Second, time.Second)
}

func (b *bench) awaitStatus(o *kit.Operator, since time.Time, status int, patience time.Duration) time.Time {
	b.t.Helper()
	patience = kit.Patient(patience)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, e := range o.Proxy.Since(since, nil) {
			if e.Status == status {
				return e.At
			}
		}
	}
	b.t.Fatalf("no answer %d in %s", status, patience)
	return time.Time{}
}

// F20: the rights are taken away and given back. Loud meanwhile, patient, and well again without a restart.
func TestF20_rights_cut_and_restored(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("rights")
	bindings := b.Client.RbacV1().ClusterRoleBindings()
	all, err := bindings.List(b.ctx, metav1.ListOptions{})
	b.must(err)
	removed := 0
	for _, binding := range all.Items {
		for _, subject := range binding.Subjects {
			if subject.Kind == "ServiceAccount" && subject.Namespace == kit.Namespace && subject.Name == kit.ServiceAccount {
				b.must(bindings.Delete(b.ctx, binding.Name, metav1.DeleteOptions{}))
				removed++
				defer func() {
					binding.ResourceVersion, binding.UID = "", ""
					_, _ = bindings.Create(b.ctx, &binding, metav1.CreateOptions{})
				}()
				break
			}
		}
	}
	if removed == 0 {
		t.Fatal("the ServiceAccount has no ClusterRoleBinding: this test would prove nothing")
	}
	kept := all
	before, since := o.Log(), time.Now()
	o.Proxy.Refuse(true) // the watches have to be asked for again, without rights
	o.Proxy.Refuse(false)
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.awaitStatus(o, since, 403, 10*time.Second)
	time.Sleep(form(6*time.Second, time.Minute))
	log := o.Proxy.Since(since, nil)
	b.clean(kit.RateBudget(log, 60))
	if code, gone := o.Exited(0); gone {
		t.Errorf("ended with code %d: rights may come back", code)
	}
	if said := o.Log()[len(before):]; len(said) == 0 {
		t.Error("not a word in the log about the rights that are missing")
	} else if !loud.MatchString(said) {
		t.Errorf("nothing in the log speaks of 403 or forbidden:\n%s", o.LogTail(5))
	}
	for _, binding := range kept.Items {
		if _, err := bindings.Get(b.ctx, binding.Name, metav1.GetOptions{}); err != nil {
			binding.ResourceVersion, binding.UID = "", ""
			_, err := bindings.Create(b.ctx, &binding, metav1.CreateOptions{})
			b.must(err)
		}
	}
	restored := time.Now()
	b.must(b.Await(b.ctx, 60*time.Second))
	t.Logf("well again %s after the rights were back", time.Since(restored).Round(100*time.Millisecond))
	b.rest(o, 4*time.Second) // its watches come back one by one
	b.stable(o, 10*time.Second, time.Second)
}

// F20, one right alone: what can still be written says what is missing, where an administrator looks: an event on the policy and a condition of it,
// which goes when the right is back.
func TestF20_one_right_cut_is_told_on_the_policy_long(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("right")
	roles := b.Client.RbacV1().ClusterRoles()
	whole, err := roles.Get(b.ctx, "quartermaster", metav1.GetOptions{})
	b.must(err)
	cut := whole.DeepCopy()
	cut.Rules = slices.DeleteFunc(cut.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.Resources, []string{"pods"})
	})
	if len(cut.Rules) == len(whole.Rules) {
		t.Fatal("no rule of the ClusterRole is about pods alone: this test would prove nothing")
	}
	_, err = roles.Update(b.ctx, cut, metav1.UpdateOptions{})
	b.must(err)
	restore := func() error {
		now, err := roles.Get(context.Background(), "quartermaster", metav1.GetOptions{})
		if err == nil {
			now.Rules = whole.Rules
			_, err = roles.Update(context.Background(), now, metav1.UpdateOptions{})
		}
		return err
	}
	defer func() { _ = restore() }()
	since := time.Now()
	o.Proxy.Refuse(true)
	o.Proxy.Refuse(false)
	b.awaitStatus(o, since, 403, 10*time.Second)
	told := func() string {
		events, err := b.Client.EventsV1().Events("default").List(b.ctx, metav1.ListOptions{})
		b.must(err)
		for _, e := range events.Items {
			if e.Reason == "Forbidden" && e.Regarding.Kind == "AcceleratorPolicy" && e.EventTime.After(since) {
				return e.Note
			}
		}
		return ""
	}
	for end := time.Now().Add(20 * time.Second); told() == ""; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			b.must(errors.New("no event Forbidden on the policy in 20 s"))
		}
	}
	if note := told(); !strings.Contains(note, "pods") || !strings.Contains(note, "helm upgrade") {
		t.Errorf("the event does not name what is missing and what to do: %q", note)
	}
	refused := func() string {
		p, err := b.Dynamic.Resource(kit.Policies).Get(b.ctx, "default", metav1.GetOptions{})
		b.must(err)
		conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
		for _, is := range conditions {
			if c := is.(map[string]any); c["type"] == "WatchesRefused" {
				return fmt.Sprint(c["status"], " ", c["reason"], ": ", c["message"])
			}
		}
		return ""
	}
	b.eventuallySo(10*time.Second, func() string {
		if is := refused(); !strings.HasPrefix(is, "True Forbidden: ") || !strings.HasSuffix(is, " pods") {
			return "no condition names the pods: " + is
		}
		return ""
	})
	b.must(restore())
	b.eventuallySo(60*time.Second, refused)
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.must(b.Await(b.ctx, 60*time.Second))
	b.rest(o, 4*time.Second)
	b.stable(o, 10*time.Second, time.Second)
}

func tokenRequest() *authenticationv1.TokenRequest { return &authenticationv1.TokenRequest{} }
