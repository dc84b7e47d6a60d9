package chart

import (
	"strings"
	"testing"
)

func Test_what_the_agent_for_static_pods_becomes(t *testing.T) {
	objects, err := Template("{extender: {enabled: true}, staticPod: {enabled: true}, imagePullSecrets: [{name: pull}]}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, one := range objects {
		if strings.HasPrefix(one.Text, "# Source: quartermaster/templates/static-pod.yaml\n") {
			text.WriteString("---\n" + one.Text)
		}
	}
	Golden(t, "static-pod.yaml", text.String())
}

// What one half needs of the other is said before anything is installed.
func Test_the_agent_for_static_pods_and_what_it_needs(t *testing.T) {
	for values, want := range map[string]string{
		"{staticPod: {enabled: true}}":                                                              "staticPod.enabled is true, but extender.enabled is false",
		"{extender: {enabled: true}, policy: {scheduler: {mode: StaticPod}}}":                       "policy.scheduler.mode is StaticPod, but staticPod.enabled is false",
		"{extender: {enabled: true}, staticPod: {enabled: 1}}":                                      "at '/staticPod/enabled': got number, want boolean",
		"{extender: {enabled: true}, staticPod: {enabled: true, patienceSeconds: 5}}":               "at '/staticPod/patienceSeconds': minimum: got 5, want 30",
		"{extender: {enabled: true}, staticPod: {enabled: true, root: /etc}}":                       "at '/staticPod': additional properties 'root' not allowed",
		"{extender: {enabled: true}, staticPod: {enabled: true, resources: {limit: {cpu: \"1\"}}}}": "at '/staticPod/resources': additional properties 'limit' not allowed",
	} {
		if _, err := Template(values); err == nil {
			t.Errorf("accepted: %s", values)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nlacks: %s", values, err, want)
		}
	}
	objects, err := Template("{extender: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range objects {
		if strings.Contains(one.Name, "static-pod") {
			t.Errorf("%s %s without staticPod.enabled", one.Kind, one.Name)
		}
	}
}
