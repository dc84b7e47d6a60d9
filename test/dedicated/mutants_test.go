package dedicated

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
)

func kind(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}

var (
	validating        = kind("validatingadmissionpolicies")
	validatingBinding = kind("validatingadmissionpolicybindings")
	mutating          = kind("mutatingadmissionpolicies")
	mutatingBinding   = kind("mutatingadmissionpolicybindings")
)

// specOf is the spec of one of our policies, as text.
func specOf(of schema.GroupVersionResource) (string, error) {
	is, err := api.Dynamic.Resource(of).Get(ctx, policyName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(is.Object["spec"])
	return out.String(), err
}

// hold the policy to this spec. kube-controller-manager writes its status meanwhile.
func hold(of schema.GroupVersionResource, spec string) error {
	objects := api.Dynamic.Resource(of)
	var to map[string]any
	if err := json.Unmarshal([]byte(spec), &to); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		next, err := objects.Get(ctx, policyName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		next.Object["spec"] = to
		_, err = objects.Update(ctx, next, metav1.UpdateOptions{})
		return err
	})
}

type mutant struct {
	name, from, to string
}

const (
	inits = " + (has(dyn(object.spec).initContainers) ? dyn(object.spec).initContainers : [])"
	some  = "sign(quantity(c.resources.limits[k])) > 0"
)

// asking are the parts both policies have: which pods they are about. Left out are the looks whether a thing is there at all: where one
// is missing the expression fails, and a policy that fails does nothing, which is right for a container that has no limits.
var asking = []mutant{
	{"pods that have a node", "!has(object.spec.nodeName) && ", ""},
	{"init containers are not looked at", inits, ""},
	{"containers are not looked at", "dyn(object.spec).containers + ", "[] + "},
	{"the first key is forgotten", "'nvidia.com/gpu', ", ""},
	{"the last key is forgotten", ", 'aliyun.com/gpu-core.percentage'", ""},
	{"declared keys are forgotten", " || k in params.spec.rules", ""},
	{"none is some", some, "sign(quantity(c.resources.limits[k])) >= 0"},
	{"any key", "(k in ['nvidia.com/gpu'", "(true || k in ['nvidia.com/gpu'"},
	{"no one opts out", `"ignore"`, `"another"`},
	{"any value opts out", `"operator":"NotIn","values":["ignore"]`, `"operator":"DoesNotExist"`},
	{"updates", `["CREATE"]`, `["CREATE","UPDATE"]`},
	{"nothing is made", `["CREATE"]`, `["UPDATE"]`},
}

// bound are the parts both bindings have.
var bound = []mutant{
	{"without the label", `"Dedicated"`, `"StaticPod"`},
	{"system namespaces", `"operator":"NotIn","values":["kube-system",`, `"operator":"NotIn","values":[`},
	{"the namespace of the release", `,"quartermaster"]`, `]`},
}

var refusing = []mutant{
	{"any scheduler", "object.spec.schedulerName == 'default-scheduler' && ", ""},
	{"the message: a key of which none is asked", " && sign(quantity(variables.asking.resources.limits[k])) > 0", ""},
	{"the message: declared keys", " + params.spec.keys", ""},
	{"the message: a container that asks for nothing", "filter(c, ", "filter(c, true || "},
}

var giving = []mutant{
	{"any scheduler", "object.spec.schedulerName in ['default-scheduler', 'quartermaster'] && ", ""},
	{"not those that have the name", "['default-scheduler', 'quartermaster']", "['default-scheduler']"},
	{"no name", "[JSONPatch{op: 'add', path: '/spec/schedulerName', value: 'quartermaster'}] + ", ""},
	{"twice tolerated", "variables.tolerates ? [] : ", ""},
	{"no toleration", "variables.tolerates ? ", "true ? "},
	{"one value is tolerated", "t.operator == 'Exists'", "true"},
	{"a toleration without an operator", "has(t.operator) && ", ""},
	{"tolerations of everything do not count", "!has(t.key) || ", "has(t.key) && "},
	{"tolerations of other taints count", "t.key == 'quartermaster.io/accelerator'", "true"},
	{"tolerations of every effect do not count", "!has(t.effect) || ", "has(t.effect) && "},
	{"tolerations of other effects count", "t.effect == 'NoSchedule'", "true"},
	{"the others' tolerations are lost", "has(object.spec.tolerations) ? [", "false ? ["},
	{"where there are none", "has(object.spec.tolerations) ? [", "true ? ["},
	{"no tolerations to look at", "has(object.spec.tolerations) && object", "object"},
}

// A third of the mistakes in every run, another third each day; all of them with QM_NIGHTLY=1. QM_SEED chooses the third.
var third = func() int {
	if seed, err := strconv.Atoi(os.Getenv("QM_SEED")); err == nil {
		return seed
	}
	return time.Now().YearDay()
}()

// caught says what of the table each mutant of an object brings out otherwise. From one mutant to the next the server is seen to be
// back at the original: a table that is wrong then is this mutant's doing.
func (s *stage) caught(t *testing.T, of schema.GroupVersionResource, all ...[]mutant) {
	t.Helper()
	original, err := specOf(of)
	must(t, err)
	defer func() {
		if err := hold(of, original); err != nil {
			t.Error(err)
		}
	}()
	for _, mutants := range all {
		for i, m := range mutants {
			if os.Getenv("QM_NIGHTLY") == "" && (i+third)%3 != 0 {
				continue
			}
			if !strings.Contains(original, m.from) {
				t.Errorf("%s, %s: %q is nowhere in it: %s", of.Resource, m.name, m.from, original)
				continue
			}
			must(t, hold(of, strings.ReplaceAll(original, m.from, m.to)))
			var found []string
			if err := until(30*time.Second, "a mistake", func() (bool, error) {
				deaths := api.Deaths()
				found = s.wrong(true)
				return len(found) > 0 && api.Deaths() == deaths, nil // what a server says that has just started is no one's mistake
			}); err != nil {
				t.Errorf("%s, %s: nothing of the table comes out otherwise", of.Resource, m.name)
			} else {
				t.Logf("%s, %s: %d, such as %.90s", of.Resource, m.name, len(found), found[0])
			}
			must(t, hold(of, original))
			s.settle(t, true)
		}
	}
}

func TestAMistakeInAnyPartOfTheRefusalIsNoticed_long(t *testing.T) {
	s := set(t)
	s.unmutated(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
	s.caught(t, validating, asking, refusing)
	s.caught(t, validatingBinding, bound, []mutant{{"warned only", `["Deny"]`, `["Warn"]`}})
}

func TestAMistakeInAnyPartOfTheMutationIsNoticed_long(t *testing.T) {
	if !api.Fills {
		t.Skip("this server has no MutatingAdmissionPolicies")
	}
	s := set(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
	s.caught(t, mutating, asking, giving)
	s.caught(t, mutatingBinding, bound)
}
