package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Engine is the CEL form, run by the API server's own packages but without a server. It is put together as
// k8s.io/apiserver/pkg/admission/plugin/policy/{validating,mutating} do it, whose constructors are not exported.
type Engine struct {
	rules, advice, templates *validation
	declarations             *validation
	defaults                 *mutation // nil: as on a server without MutatingAdmissionPolicies
	interfaces               admission.ObjectInterfaces
}

// compiled are the parts every policy has.
type compiled struct {
	name      string
	compiler  *plugincel.CompositedCompiler
	options   plugincel.OptionalVariableDeclarations
	variables []string
	matcher   matchconditions.Matcher
	matching  plugincel.ConditionEvaluator // what the matcher asks
}

type validation struct {
	compiled
	validator   validating.Validator
	count       int
	expressions []plugincel.ConditionEvaluator // the validations and their messages, as the server evaluates them: one after the other
}

type mutation struct {
	compiled
	patcher   patch.Patcher
	evaluator plugincel.MutatingEvaluator
}

// NewEngine compiles the policies with what a server of Kubernetes 1.<minor> knows; every expression that does not compile is in the error.
func NewEngine(from *Policies, minor uint) (*Engine, error) {
	// A server accepts what the version before it knows too, so that it can be rolled back.
	base := environment.MustBaseEnvSet(version.MajorMinor(1, minor))
	var wrong []error
	e := &Engine{
		rules:        newValidation(base, from.Rules, &wrong),
		advice:       newValidation(base, from.Advice, &wrong),
		templates:    newValidation(base, from.Templates, &wrong),
		declarations: newValidation(base, from.Declarations, &wrong),
	}
	if from.Defaults != nil {
		e.defaults = newMutation(base, from.Defaults, &wrong)
	}
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddTypeDefaultingFunc(&corev1.Pod{}, func(o any) { CopyLimits(o.(*corev1.Pod)) })
	e.interfaces = admission.NewObjectInterfacesFromScheme(scheme)
	return e, errors.Join(wrong...)
}

// CopyLimits is the part of the server's defaulting of pods that matters here: a limit without a request is the request
// (SetDefaults_Pod). Templates are not treated so.
func CopyLimits(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			of := &containers[i].Resources
			for key, amount := range of.Limits {
				if of.Requests == nil {
					of.Requests = corev1.ResourceList{}
				}
				if _, ok := of.Requests[key]; !ok {
					of.Requests[key] = amount.DeepCopy()
				}
			}
		}
	}
}

// condition is an expression of any kind, for the parts that only a name and a type tell apart.
type condition struct {
	text string
	is   *celgo.Type
}

func (c condition) GetExpression() string      { return c.text }
func (c condition) ReturnTypes() []*celgo.Type { return []*celgo.Type{c.is} }

func (c *compiled) begin(base *environment.EnvSet, name string, variables []admissionv1.Variable, conditions []admissionv1.MatchCondition,
	wrong *[]error) {
	c.name = name
	c.options = plugincel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}
	var err error
	if c.compiler, err = plugincel.NewCompositedCompiler(base); err != nil {
		*wrong = append(*wrong, err)
		return
	}
	for _, v := range variables {
		c.variables = append(c.variables, v.Name)
		result := c.compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, c.options, environment.NewExpressions)
		c.note(wrong, "variable "+v.Name, result)
	}
	accessors := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		accessors[i] = (*matchconditions.MatchCondition)(&conditions[i])
		// The server does not know variables where it checks these.
		alone, err := plugincel.NewCompositedCompiler(base)
		if err != nil {
			*wrong = append(*wrong, err)
			continue
		}
		c.note(wrong, "match condition "+conditions[i].Name, alone.CompileCELExpression(accessors[i], c.options, environment.NewExpressions))
	}
	c.matching = c.compiler.CompileCondition(accessors, c.options, environment.NewExpressions)
	// Fail where the policy says Ignore: here an error must be seen.
	fail := admissionv1.Fail
	c.matcher = matchconditions.NewMatcher(c.matching, &fail, "policy", "validate", name)
}

func (c *compiled) note(wrong *[]error, what string, result plugincel.CompilationResult) {
	if result.Error != nil {
		*wrong = append(*wrong, fmt.Errorf("%s, %s: %s", c.name, what, result.Error.Detail))
	}
}

func newValidation(base *environment.EnvSet, from *admissionv1.ValidatingAdmissionPolicy, wrong *[]error) *validation {
	v := &validation{count: len(from.Spec.Validations)}
	v.begin(base, from.Name, from.Spec.Variables, from.Spec.MatchConditions, wrong)
	var validations, messages []plugincel.ExpressionAccessor
	for _, one := range from.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression})
	}
	without := plugincel.OptionalVariableDeclarations{HasParams: true}
	for i := range validations {
		v.note(wrong, "validation", v.compiler.CompileCELExpression(validations[i], v.options, environment.NewExpressions))
		v.note(wrong, "message", v.compiler.CompileCELExpression(messages[i], without, environment.NewExpressions))
	}
	conditions := v.compiler.CompileCondition(validations, v.options, environment.NewExpressions)
	texts := v.compiler.CompileCondition(messages, without, environment.NewExpressions)
	none := v.compiler.CompileCondition(nil, v.options, environment.NewExpressions)
	v.expressions = []plugincel.ConditionEvaluator{conditions, texts}
	fail := admissionv1.Fail
	v.validator = validating.NewValidator(conditions, v.matcher, none, texts, &fail, nil)
	return v
}

func newMutation(base *environment.EnvSet, from *admissionv1.MutatingAdmissionPolicy, wrong *[]error) *mutation {
	m := &mutation{}
	m.begin(base, from.Name, from.Spec.Variables, from.Spec.MatchConditions, wrong)
	if len(from.Spec.Mutations) != 1 || from.Spec.Mutations[0].JSONPatch == nil {
		*wrong = append(*wrong, fmt.Errorf("%s: one JSON patch was expected", from.Name))
		return m
	}
	patching := m.options
	patching.HasPatchTypes = true
	accessor := &patch.JSONPatchCondition{Expression: from.Spec.Mutations[0].JSONPatch.Expression}
	m.note(wrong, "patch", m.compiler.CompileCELExpression(accessor, patching, environment.NewExpressions))
	m.evaluator = m.compiler.CompileMutatingEvaluator(accessor, patching, environment.NewExpressions)
	m.patcher = patch.NewJSONPatcher(m.evaluator)
	return m
}

// request is one object on its way through admission, with the parameter it meets.
type request struct {
	resource   schema.GroupVersionResource
	attributes *admission.VersionedAttributes
	params     runtime.Object
}

func newRequest(object runtime.Object, kind schema.GroupVersionKind, resource, namespace string, params runtime.Object) request {
	return newUpdate(nil, object, kind, resource, namespace, params)
}

// newUpdate of what was; nil: it is created.
func newUpdate(old, object runtime.Object, kind schema.GroupVersionKind, resource, namespace string, params runtime.Object) request {
	gvr := kind.GroupVersion().WithResource(resource)
	object.GetObjectKind().SetGroupVersionKind(kind) // as the server does
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	attributes := admission.NewAttributesRecord(object, old, kind, namespace, "test", gvr, "", operation, nil, true, nil)
	return request{gvr, &admission.VersionedAttributes{Attributes: attributes, VersionedObject: admission.NewLazyObject(object),
		VersionedOldObject: admission.NewLazyObject(old), VersionedKind: kind}, params}
}

func (r request) bindings() plugincel.OptionalVariableBindings {
	return plugincel.OptionalVariableBindings{VersionedParams: r.params}
}

func (r request) review() *reviewv1.AdmissionRequest {
	return plugincel.CreateAdmissionRequest(r.attributes.Attributes, metav1.GroupVersionResource(r.resource),
		metav1.GroupVersionKind(r.attributes.VersionedKind))
}

var everyday = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}

// texts are what the policy does not like about the request, one of each validation; empty: nothing, or it is not concerned.
func (v *validation) texts(r request) ([]string, error) {
	result := v.validator.Validate(context.Background(), r.resource, r.attributes, r.params, everyday, celconfig.RuntimeCELCostBudget, nil)
	texts := make([]string, v.count)
	for i, decision := range result.Decisions {
		switch decision.Evaluation {
		case validating.EvalError:
			return nil, fmt.Errorf("%s: %s", v.name, decision.Message)
		case validating.EvalDeny:
			texts[i] = decision.Message
		}
	}
	return texts, nil
}

// text of a policy with one validation.
func (v *validation) text(r request) (string, error) {
	texts, err := v.texts(r)
	if err != nil {
		return "", err
	}
	return texts[0], nil
}

// apply returns the pod as the policy changes it, with the server's defaults.
func (e *Engine) apply(r request) (*corev1.Pod, error) {
	m := e.defaults
	ctx := m.compiler.CreateContext(context.Background())
	match := m.matcher.Match(ctx, r.attributes, r.params, nil)
	pod := r.attributes.VersionedObject.Object().(*corev1.Pod)
	if match.Error != nil || !match.Matches {
		return pod, match.Error
	}
	changed, err := m.patcher.Patch(ctx, patch.Request{MatchedResource: r.resource, VersionedAttributes: r.attributes, ObjectInterfaces: e.interfaces,
		OptionalVariables: r.bindings(), Namespace: everyday}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	e.interfaces.GetObjectDefaulter().Default(changed)
	return changed.(*corev1.Pod), nil
}

// Pod sends a pod, as the server has it after defaulting, through the policies that the label selects: first what is filled in, then what is
// refused or said. The pod that comes out is a copy.
func (e *Engine) Pod(in *corev1.Pod, rules Spec, enforcement string) (Answer, *corev1.Pod, error) {
	var out Answer
	var err error
	params := rules.Object("default", enforcement)
	pod := in.DeepCopy()
	if enforcement == "Deny" && e.defaults != nil {
		if pod, err = e.apply(newRequest(pod, podKind, "pods", "default", params)); err != nil {
			return out, nil, err
		}
		// A policy that may be invoked again must then find nothing to do.
		again, err := e.apply(newRequest(pod.DeepCopy(), podKind, "pods", "default", params))
		if err != nil {
			return out, nil, err
		}
		if !sameDemand(pod, again) {
			return out, nil, errors.New("invoked again, the policy changes the pod again")
		}
	}
	r := newRequest(pod, podKind, "pods", "default", params)
	if out.Refusals, err = e.rules.text(r); err != nil {
		return out, nil, err
	}
	if out.Advice, err = e.advice.text(r); err != nil {
		return out, nil, err
	}
	out.Allowed = out.Refusals == ""
	return out, pod, nil
}

// TemplatePrefix is what the text of a template begins with: nothing is refused where only warnings are given.
func TemplatePrefix(enforcement string) string {
	if enforcement == "Deny" {
		return "its pods would be refused: "
	}
	return "its pods break rules: "
}

// Template sends a workload whose template makes such pods through the policy for templates.
func (e *Engine) Template(kind string, pod *corev1.Pod, rules Spec, enforcement string) (refusals, advice string, err error) {
	object, of, resource := Workload(kind, pod)
	texts, err := e.templates.texts(newRequest(object, of, resource, "default", rules.Object("default", enforcement)))
	if err != nil {
		return "", "", err
	}
	refusals, ok := strings.CutPrefix(texts[0], TemplatePrefix(enforcement))
	if !ok && refusals != "" {
		return "", "", fmt.Errorf("the text of a template begins otherwise: %.200s", refusals)
	}
	return refusals, texts[1], nil
}

// Declaration sends a ConfigMap through the policy for declarations: what it is refused with, empty when it is not.
func (e *Engine) Declaration(configMap *corev1.ConfigMap, rules Spec) (string, error) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	return e.declarations.text(newRequest(configMap.DeepCopy(), kind, "configmaps", configMap.Namespace, rules.Object("default", "Deny")))
}

// Update is the same of a change.
func (e *Engine) Update(before, after *corev1.ConfigMap, rules Spec) (string, error) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	old := before.DeepCopy()
	old.GetObjectKind().SetGroupVersionKind(kind)
	return e.declarations.text(newUpdate(old, after.DeepCopy(), kind, "configmaps", after.Namespace, rules.Object("default", "Deny")))
}

// Cost is what the server's budget is charged for one policy: each expression with the variables it needs, and each variable alone.
type Cost struct {
	Policy    string
	Match     int64            // of budget celconfig.RuntimeCELCostBudgetMatchConditions
	Total     int64            // of budget celconfig.RuntimeCELCostBudget
	Variables map[string]int64 // with those each needs; each alone has celconfig.PerCallLimit
}

// Costs of a pod in every policy that looks at pods.
func (e *Engine) Costs(pod *corev1.Pod, rules Spec) ([]Cost, error) {
	r := newRequest(pod, podKind, "pods", "default", rules.Object("default", "Deny"))
	var all []Cost
	for _, v := range []*validation{e.rules, e.advice} {
		cost, err := v.cost(r)
		if err != nil {
			return nil, err
		}
		budget := int64(celconfig.RuntimeCELCostBudget)
		for _, expressions := range v.expressions {
			results, left, err := expressions.ForInput(context.Background(), r.attributes, r.review(), r.bindings(), everyday, budget)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
			for _, one := range results {
				if one.Error != nil {
					return nil, fmt.Errorf("%s: %w", v.name, one.Error)
				}
			}
			cost.Total += budget - left
			budget = left
		}
		all = append(all, cost)
	}
	if e.defaults != nil {
		cost, err := e.defaults.cost(r)
		if err != nil {
			return nil, err
		}
		ctx := e.defaults.compiler.CreateContext(context.Background())
		result, left, err := e.defaults.evaluator.ForInput(ctx, r.attributes, r.review(), r.bindings(), everyday, celconfig.RuntimeCELCostBudget)
		if err = errors.Join(err, result.Error); err != nil {
			return nil, fmt.Errorf("%s: %w", e.defaults.name, err)
		}
		cost.Total = celconfig.RuntimeCELCostBudget - left
		all = append(all, cost)
	}
	return all, nil
}

// cost of the variables: each is asked for alone, in the order they are written, and pays for those before it that it needs.
func (c *compiled) cost(r request) (Cost, error) {
	out := Cost{Policy: c.name, Variables: map[string]int64{}}
	_, left, err := c.matching.ForInput(context.Background(), r.attributes, r.review(), r.bindings(), everyday, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return out, fmt.Errorf("%s, match conditions: %w", c.name, err)
	}
	out.Match = celconfig.RuntimeCELCostBudgetMatchConditions - left
	for _, name := range c.variables {
		one := c.compiler.CompileCondition([]plugincel.ExpressionAccessor{condition{"variables." + name, celgo.AnyType}}, c.options, environment.NewExpressions)
		results, left, err := one.ForInput(context.Background(), r.attributes, r.review(), r.bindings(), everyday, celconfig.RuntimeCELCostBudget)
		if err == nil {
			err = results[0].Error
		}
		if err != nil {
			return out, fmt.Errorf("%s, variable %s: %w", c.name, name, err)
		}
		out.Variables[name] = celconfig.RuntimeCELCostBudget - left
	}
	return out, nil
}

func (e *Engine) variables(policy string) []string {
	for _, of := range []*compiled{&e.rules.compiled, &e.advice.compiled, &e.templates.compiled} {
		if of.name == policy {
			return of.variables
		}
	}
	return e.defaults.compiled.variables
}
