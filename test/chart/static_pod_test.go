package chart

import (
	"strings"
	"testing"
)

func Test_what_the_agent_for_static_pods_becomes(t *testing.T) {
	objects, err := Template("{imagePullSecrets: [{name: pull}]}")
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

func Test_wrong_values_of_the_agent_for_static_pods_are_refused_with_their_path(t *testing.T) {
	for values, want := range map[string]string{
		"{staticPod: {patienceSeconds: 5}}":               "at '/staticPod/patienceSeconds': minimum: got 5, want 30",
		"{staticPod: {root: /etc}}":                       "at '/staticPod': additional properties 'root' not allowed",
		"{staticPod: {resources: {limit: {cpu: \"1\"}}}}": "at '/staticPod/resources': additional properties 'limit' not allowed",
	} {
		if _, err := Template(values); err == nil {
			t.Errorf("accepted: %s", values)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nlacks: %s", values, err, want)
		}
	}
}
