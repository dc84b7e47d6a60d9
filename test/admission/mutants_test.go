package admission

import (
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Each part of the CEL form, spoiled: random rules and pods must notice every one of them, or they would not notice a mistake there.
func TestRandomPodsNoticeAMistakeInAnyPartOfTheCELForm(t *testing.T) {
	if os.Getenv("QM_NIGHTLY") == "" {
		t.Skip("nightly")
	}
	for _, mutant := range []struct{ name, is, becomes string }{
		{"init containers are not looked at", "'init container ' + c.name", "'container ' + c.name"},
		{"zero counts as used", "sign(quantity(c.limits[k])) > 0", "sign(quantity(c.limits[k])) >= 0"},
		{"keys are not sorted", "dyn(size(all) < 2 ? all", "dyn(size(all) < 20 ? all"},
		{"many keys are not sorted", "dyn(params.spec.keys.filter(k, k in all))", "all"},
		{"a request that is larger passes", ".compareTo(quantity(c.requests[k])) == 0", ".compareTo(quantity(c.requests[k])) <= 0"},
		{"a disabled key passes", "has(u.rule.forbidden) && u.rule.forbidden", "false"},
		{"the vocabulary is forgotten", "has(u.rule.amounts) && !((u.amount", "false && !((u.amount"},
		{"of two as near the larger", "u.amount % u.rule.amounts.whole <= u.rule.amounts.whole / 2", "u.amount % u.rule.amounts.whole < u.rule.amounts.whole / 2"},
		{"of two steps the lower", "u.rule.amounts.step / 2) / u.rule.amounts.step", "0) / u.rule.amounts.step"},
		{"no memory is fine", "u.rule.partner in c.used || (u.rule.partner in c.limits && sign(quantity(c.limits[u.rule.partner])) > 0)", "u.rule.partner in c.limits"},
		{"what the pod says is not looked at", "!has(u.rule.podAmount) ||", "true ||"},
		{"what the pod says counts in addition to a limit", "!(u.rule.podAmount.name in c.limits && sign(quantity(c.limits[u.rule.podAmount.name])) > 0)", "true"},
		{"what is filled in does not count instead", "u.rule.podAmount.name in c.used ||", ""},
		{"anything with a figure is a number", "matches('^[1-9][0-9]*$')", "matches('[0-9]$')"},
		{"a number of cards need not divide", "has(u.rule.podAmount.divides) && u.rule.podAmount.divides", "false"},
		{"a limit of cores below the cores", "has(u.rule.podAmount.from) ? u.rule.podAmount.from : u.amount", "1"},
		{"a limit of cores is that of whole cards", "has(u.rule.podAmount.to) && n <= u.rule.podAmount.to", "false"},
		{"labels are annotations", "u.rule.podAmount.label ? variables.about.labels :", "false ? variables.about.labels :"},
		{"exclusion is reported twice", "u.key < x", "true"},
		{"exclusion within declared keys only", "(!(x in params.spec.rules) || u.key < x)", "(x in params.spec.rules && u.key < x)"},
		{"excluded by nothing", "x in d.limits && sign(quantity(d.limits[x])) > 0", "x in d.limits"},
		{"what is filled in excludes nothing", "|| variables.judged.exists(d, x in d.used)", ""},
		{"required is optional", "has(params.spec.rules[m].must) && params.spec.rules[m].must && !(m in c.used)", "false && !(m in c.used)"},
		{"required though requested", "!(m in c.used) && !(m in c.requests && !(m in c.limits)) &&", "!(m in c.used) &&"},
		{"whole cards need memory", "(quantity(c.limits[params.spec.rules[m].waivedBy]).isInteger() ? quantity(c.limits[params.spec.rules[m].waivedBy]).asInteger() : 9223372036854775807) >= params.spec.rules[m].waivedFrom", "false"},
		{"whole cards that are filled in need memory", "int(params.spec.rules[params.spec.rules[m].waivedBy].fill) >= params.spec.rules[m].waivedFrom", "false"},
		{"of each group the last", ".indexOf(k) == 0", ".indexOf(k) >= 0"},
		{"filled over what is there", "has(params.spec.rules[m].fill) &&\n    !(m in c.limits)", "has(params.spec.rules[m].fill)"},
		{"filled over a request", "&& !(m in c.requests)).join(' ')", ").join(' ')"},
		{"the class is written over another", "has(variables.spec.runtimeClassName) && variables.spec.runtimeClassName != ''", "false"},
		{"an empty class is one", "&& variables.spec.runtimeClassName != ''", ""},
		{"undeclared related keys are reported", "m in params.spec.rules && !(m in c.used)", "!(m in c.used)"},
		{"related and required are both said", "params.spec.rules[m].group == u.rule.group", "false"},
		{"a partner that is refused is reported too", "m == u.rule.partner &&", "false &&"},
		{"a partner is reported for no amount", "!(has(u.rule.amounts) && has(u.rule.amounts.whole) && u.amount >= u.rule.amounts.whole) && !(has(u.rule.forbidden)", "!(has(u.rule.forbidden)"},
		{"a partner is not said of a disabled key", "u.amount >= u.rule.amounts.whole) && !(has(u.rule.forbidden) && u.rule.forbidden)", "u.amount >= u.rule.amounts.whole)"},
		{"offered or not", "has(u.rule.notOffered) && u.rule.notOffered", "false"},
		{"templates get warnings about what will be filled in", "dyn(params).metadata.labels['quartermaster.io/enforcement'] == 'Deny'", "false"},
		{"texts are too long", "size(variables.refusals) > 3800 ? variables.refusals.substring(0, 3800)", "size(variables.refusals) > 300 ? variables.refusals.substring(0, 300)"},
		// The match conditions, which must never say no too often.
		{"condition: a disabled key", "(has(r.forbidden) && r.forbidden) ||", ""},
		{"condition: neither share nor whole", "(has(r.amounts) && !(", "(false && !("},
		{"condition: a share with a partner of zero", "? sign(quantity(c.resources.limits[r.partner])) > 0", "? true"},
		{"condition: exclusion", "params.spec.rules[k].excluded.exists(x, x in used)", "false"},
		{"condition: what the pod says", "(has(r.podAmount) &&", "(false &&"},
		{"condition: required", "((has(params.spec.rules[m].must) && params.spec.rules[m].must)", "((false)"},
		{"condition: required and zero", "!(m in c.resources.limits && sign(quantity(c.resources.limits[m])) > 0)", "!(m in c.resources.limits)"},
		{"condition: templates with what is filled in", "|| has(params.spec.rules[m].fill)", ""},
		{"condition: requests", "c.resources.limits[k] == c.resources.requests[k]", "true"},
		{"condition: requests alone", "!(has(c.resources.limits) && k in c.resources.limits && (c.resources", "(has(c.resources.limits) && k in c.resources.limits && (c.resources"},
		{"condition: a disabled key of an init container", "+ (has(dyn(object.spec).initContainers) ? dyn(object.spec).initContainers : [])", ""},
		{"condition: not offered", "(has(r.notOffered) && r.notOffered) ||", ""},
		{"condition: related", "has(r.related) && r.related.exists", "false && r.related.exists"},
		{"condition: the class", "has(r.runtimeClassName) && !(has", "false && !(has"},
		{"condition: fills", "has(params.spec.rules[m].fill) && !(m in c.resources.limits)", "false"},
		{"condition: whole cards waive too much", ": 9223372036854775807) >= params.spec.rules[m].waivedFrom", ": 9223372036854775807) >= 0"},
		{"condition: amounts that no integer holds", "(quantity(c.resources.limits[k]).isInteger() ? quantity(c.resources.limits[k]).asInteger() : 9223372036854775807) % r.amounts.whole", "quantity(c.resources.limits[k]).asInteger() % r.amounts.whole"},
	} {
		t.Run(strings.ReplaceAll(mutant.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			policies, err := Render(true)
			if err != nil {
				t.Fatal(err)
			}
			if spoil(policies, mutant.is, mutant.becomes) == 0 {
				t.Fatalf("%q is nowhere in the policies", mutant.is)
			}
			engine, err := NewEngine(policies, 35)
			if err != nil {
				t.Fatal(err)
			}
			judge := cppForm(t)
			const enough = 4000
			for n := range enough {
				trial, err := RandomTrial(judge, 7, n)
				if err != nil {
					t.Fatal(err)
				}
				if said, err := Disagreement(judge, engine, trial); err != nil {
					t.Fatal(err)
				} else if said != "" {
					t.Logf("noticed by trial %d", n)
					return
				}
			}
			t.Errorf("%d trials do not notice it", enough)
		})
	}
}

// spoil replaces a text wherever it is, whatever blanks are around it, and says how often.
func spoil(in *Policies, is, becomes string) int {
	count := 0
	change := func(expression *string) {
		flat := strings.Join(strings.Fields(*expression), " ")
		what := strings.Join(strings.Fields(is), " ")
		if n := strings.Count(flat, what); n > 0 {
			count += n
			*expression = strings.ReplaceAll(flat, what, becomes)
		}
	}
	variables := func(of []admissionv1.Variable, conditions []admissionv1.MatchCondition) {
		for i := range of {
			change(&of[i].Expression)
		}
		for i := range conditions {
			change(&conditions[i].Expression)
		}
	}
	for _, policy := range []*admissionv1.ValidatingAdmissionPolicy{in.Rules, in.Advice, in.Templates} {
		variables(policy.Spec.Variables, policy.Spec.MatchConditions)
		for i := range policy.Spec.Validations {
			change(&policy.Spec.Validations[i].Expression)
			change(&policy.Spec.Validations[i].MessageExpression)
		}
	}
	variables(in.Defaults.Spec.Variables, in.Defaults.Spec.MatchConditions)
	for i := range in.Defaults.Spec.Mutations {
		change(&in.Defaults.Spec.Mutations[i].JSONPatch.Expression)
	}
	return count
}
