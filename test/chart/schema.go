package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// values.schema.json is written by hand down to its line `"definitions": {`; the rest is made here, of the CRD's own schema, so that
// helm refuses what the API server would refuse, with the path, before anything is installed.

// object is a piece of a schema.
type object = map[string]any

// writtenByUs are fields of the spec that no value may say: `quartermaster uninstall` writes them and takes them back.
var writtenByUs = []string{"removing"}

var (
	builtIn    = regexp.MustCompile(`self\.all\(name, name in \[([^\]]*)\] \|\| has\(self\[name\]\.device\)\)`)
	settingsOf = regexp.MustCompile(`!\('(\w+)' in self\) \|\| !has\(self\['\w+'\]\.settings\) \|\| self\['\w+'\]\.settings\.all\(k, k in\s*\[([^\]]*)\]\)`)
	valueRule  = regexp.MustCompile(`^!\('(\w+)' in self\) \|\| \(?self\['\w+'\](?: in \[(.*)\]|\.matches\('(.*?)'\))((?: && .*)?)\)?$`)
	allOfThem  = regexp.MustCompile(`^\[([^\]]*)\]\.all\(k, !\(k in self\) \|\| \(?self\[k\]\.matches\('(.*?)'\)(?: && !self\[k\]\.contains\('(.*)'\)\))?\)$`)
	flagRule   = regexp.MustCompile(`^!self\.exists\(k, k in \[([^\]]*)\] && !\(self\[k\] in \[([^\]]*)\]\)\)$`)
	bounds     = regexp.MustCompile(`int\(self\['\w+'\]\) (>=|<=) (\d+)`)
	noSettings = regexp.MustCompile(`self\.all\(name, name in \[([^\]]*)\] \|\| \(\(!has\(self\[name\]\.settings\)`)
)

func names(list string) []string {
	var out []string
	for _, one := range strings.Split(list, ",") {
		out = append(out, strings.Trim(strings.TrimSpace(one), "'"))
	}
	return out
}

// plain is a schema of the CRD as draft-07: types and limits stay, unknown keys are refused, Kubernetes' extensions and defaults go.
func plain(of object) object {
	out := object{}
	for key, value := range of {
		switch key {
		case "type", "enum", "pattern", "required", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "anyOf":
			out[key] = value
		case "items":
			out[key] = plain(value.(object))
		case "additionalProperties":
			if schema, ok := value.(object); ok {
				value = plain(schema)
			}
			out[key] = value
		case "properties":
			properties := object{}
			for name, schema := range value.(object) {
				properties[name] = plain(schema.(object))
			}
			out[key] = properties
			out["additionalProperties"] = false
		case "description", "default", "format", "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
			"x-kubernetes-map-type", "x-kubernetes-int-or-string":
		default:
			panic(fmt.Sprintf("crds/ use %q, which the chart's schema of a policy does not know: say here what becomes of it", key))
		}
	}
	return out
}

// rulesOf are the texts of the CEL rules of a schema.
func rulesOf(of object) string {
	var out []string
	for _, one := range of["x-kubernetes-validations"].([]any) {
		out = append(out, one.(object)["rule"].(string))
	}
	return strings.Join(out, "\n")
}

// upTo is a pattern of the whole numbers from 0 to this one.
func upTo(most string) string {
	parts := []string{most}
	if len(most) > 1 {
		parts = append(parts, fmt.Sprintf("[0-9]{1,%d}", len(most)-1))
	}
	for at, figure := range most {
		rest := len(most) - at - 1
		if figure > '0' && !(at == 0 && figure == '1') {
			parts = append(parts, fmt.Sprintf("%s[0-%c][0-9]{%d}", most[:at], figure-1, rest))
		}
	}
	return "^0*(" + strings.Join(parts, "|") + ")$"
}

// bounded are the parts of a schema for text that is a number between the bounds of a rule; nothing where the rule has none.
func bounded(rule string) []any {
	var out []any
	for _, one := range bounds.FindAllStringSubmatch(rule, -1) {
		number, _ := strconv.Atoi(one[2])
		if one[1] == "<=" {
			out = append(out, object{"pattern": upTo(one[2])})
		} else if number > 0 {
			out = append(out, object{"not": object{"pattern": upTo(strconv.Itoa(number - 1))}})
		}
	}
	return out
}

// formsOf says of each setting what its text may be, from the CEL rules of the CRD, whose sentence helm then says. Decimals have their form
// alone; the API server compares them.
func formsOf(settings object) (object, error) {
	out := object{}
	set := func(keys []string, form object, message string) {
		_, sentence, found := strings.Cut(message, " must be ")
		if !found {
			sentence = message
		}
		for _, key := range keys {
			out[key] = otherwise(object{"anyOf": []any{object{"not": object{"type": "string"}}, form}}, sentence)
		}
	}
	for _, one := range settings["x-kubernetes-validations"].([]any) {
		rule, message := one.(object)["rule"].(string), one.(object)["message"].(string)
		if part := valueRule.FindStringSubmatch(rule); part != nil && part[2] != "" {
			set(part[1:2], object{"enum": names(part[2])}, message)
		} else if part != nil && part[3] != "" {
			set(part[1:2], object{"allOf": append([]any{object{"pattern": part[3]}}, bounded(part[4])...)}, message)
		} else if part := allOfThem.FindStringSubmatch(rule); part != nil {
			form := object{"pattern": part[2]}
			if part[3] != "" {
				form["not"] = object{"pattern": regexp.QuoteMeta(part[3])}
			}
			set(names(part[1]), form, message)
		} else if part := flagRule.FindStringSubmatch(rule); part != nil {
			set(names(part[1]), object{"enum": names(part[2])}, message)
		} else if !strings.Contains(rule, "self.all(") { // what one setting means for others is the API server's
			return nil, fmt.Errorf("crds/ have a rule for settings that the chart's schema does not understand: %s", rule)
		}
	}
	return out, nil
}

func ref(name string) object { return object{"$ref": "#/definitions/" + name} }

// definitions are the schemas that values.schema.json refers to: `policy`, and the parts that several modules share.
func definitions(crd []byte) (object, error) {
	var document struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema object }
			}
		}
	}
	if err := yaml.Unmarshal(crd, &document); err != nil {
		return nil, err
	}
	spec := document.Spec.Versions[0].Schema.OpenAPIV3Schema["properties"].(object)["spec"].(object)
	modules := spec["properties"].(object)["modules"].(object)
	rules := rulesOf(modules)
	known := builtIn.FindStringSubmatch(rules)
	if known == nil {
		return nil, fmt.Errorf("crds/: no rule says which modules are built in")
	}
	without := noSettings.FindStringSubmatch(rules)
	if without == nil {
		return nil, fmt.Errorf("crds/: no rule says which modules have settings")
	}
	settings := map[string][]string{}
	for _, one := range settingsOf.FindAllStringSubmatch(rules, -1) {
		settings[one[1]] = names(one[2])
	}

	out := object{}
	module := plain(modules["additionalProperties"].(object))
	shared := object{}
	for name, schema := range module["properties"].(object) {
		if name != "settings" && name != "nodeSets" && name != "device" {
			out["module."+name] = schema
			shared[name] = ref("module." + name)
		}
	}
	parts := module["properties"].(object)
	value := parts["settings"].(object)["additionalProperties"]
	forModule := func(extra object) object {
		properties := object{}
		for name, schema := range shared {
			properties[name] = schema
		}
		for name, schema := range extra {
			properties[name] = schema
		}
		return object{"type": "object", "additionalProperties": false, "properties": properties}
	}

	forms, err := formsOf(modules["additionalProperties"].(object)["properties"].(object)["settings"].(object))
	if err != nil {
		return nil, err
	}

	byName := object{}
	for _, name := range names(known[1]) {
		if !slices.Contains(names(without[1]), name) {
			byName[name] = forModule(nil)
			continue
		}
		if settings[name] == nil {
			return nil, fmt.Errorf("crds/: no rule says which settings %s has", name)
		}
		allowed := object{}
		for _, key := range settings[name] {
			allowed[key] = maps.Clone(value.(object))
			if form, found := forms[key]; found {
				maps.Copy(allowed[key].(object), form.(object))
			}
		}
		out["settings."+name] = object{"type": "object", "additionalProperties": false, "properties": allowed}
		set := object{}
		for key, schema := range parts["nodeSets"].(object) {
			set[key] = schema
		}
		item := set["items"].(object)
		inSet := object{}
		for key, schema := range item["properties"].(object) {
			inSet[key] = schema
		}
		inSet["settings"] = ref("settings." + name)
		set["items"] = object{"type": "object", "additionalProperties": false, "required": item["required"], "properties": inSet}
		byName[name] = forModule(object{"settings": ref("settings." + name), "nodeSets": set})
	}
	own := object{"if": object{"required": []string{"device"}}, "then": forModule(object{"device": parts["device"]}),
		"else": object{"const": "one of the modules " + strings.Join(slices.Sorted(maps.Keys(byName)), ", ") + ", or a module of your own, which has a device"}}

	policy := plain(spec)
	for _, name := range writtenByUs {
		delete(policy["properties"].(object), name)
	}
	policy["properties"].(object)["modules"] = object{
		"type": "object", "maxProperties": modules["maxProperties"], "properties": byName, "additionalProperties": own}
	policy["properties"].(object)["scheduler"].(object)["properties"].(object)["image"] = ref("image.reference")
	out["policy"] = policy
	out["module.image"] = ref("image.reference")
	out["module.resources"] = object{"type": "object", "additionalProperties": false,
		"properties": object{"limits": ref("amounts"), "requests": ref("amounts")}}
	for name, schema := range ownForms() {
		out[name] = schema
	}
	return out, nil
}

// otherwise is a schema that refuses with a sentence: helm says "value must be" and the sentence, and no pattern.
func otherwise(form object, sentence string) object {
	return object{"if": form, "else": object{"const": sentence}}
}

func text(pattern string) object { return object{"type": "string", "pattern": "^(" + pattern + ")$"} }

// ownForms are the forms that neither the CRD nor the API server's types hold: names that a container runtime reads, and amounts that a pod can
// start with. Without them a wrong value ends as InvalidImageName, or in the middle of an installation.
func ownForms() object {
	const (
		host      = `([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(:[0-9]{1,5})?`
		component = `[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*`
		path      = component + `(/` + component + `)*`
		tag       = `[A-Za-z0-9_][A-Za-z0-9._-]{0,127}`
		digest    = `@sha256:[0-9a-f]{64}`
	)
	typed := func(pattern, sentence string) object {
		out := otherwise(object{"anyOf": []any{object{"not": object{"type": "string"}}, text(pattern)}}, sentence)
		out["type"] = "string"
		return out
	}
	oneOf := func(sentence string, forms ...any) object { return otherwise(object{"anyOf": forms}, sentence) }
	memory := oneOf("an amount of bytes with a unit, for example 64Mi or 1Gi (Mi, Gi, Ti, M, G, T; no MB)",
		text(`([1-9][0-9]*(\.[0-9]+)?|0\.[0-9]+)(Mi|Gi|Ti|M|G|T)|[1-9][0-9]{3,}(Ki|k)|[1-9][0-9]{6,}|0`),
		object{"type": "integer", "minimum": 1 << 20}, object{"type": "integer", "maximum": 0, "minimum": 0})
	return object{
		"image.registry": typed(`(`+host+`(/`+component+`)*/?)?`,
			"HOST[:PORT][/PATH] in small letters, without https:// and tag, for example registry.example.com:5000/infra"),
		"image.repository": typed(`(`+host+`/)?`+path,
			"[HOST[:PORT]/]NAME in small letters, without https:// and tag, for example infra/quartermaster"),
		"image.tag": typed(`(`+tag+`(`+digest+`)?)?`,
			"a tag of letters, figures, dot, underscore and hyphen, without colon and blanks, for example v1.0"),
		"image.reference": typed(`((`+host+`/)?`+path+`(:`+tag+`)?(`+digest+`)?)?`,
			"[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST], the name in small letters, without https://"),
		"amounts": object{
			"type": "object",
			"properties": object{
				"cpu": oneOf("a number of cores, for example 0.5, 2 or 500m",
					text(`[0-9]{1,3}(\.[0-9]{1,3})?|[0-9]{1,6}m`), object{"type": "number", "minimum": 0, "maximum": 999}),
				"memory":            memory,
				"ephemeral-storage": memory,
			},
			"patternProperties": object{
				`^hugepages-[0-9]+(Ki|Mi|Gi)$`: memory,
				`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`: oneOf("a whole number",
					text(`[0-9]+`), object{"type": "integer", "minimum": 0}),
			},
			"additionalProperties": object{
				"const": "left out: a resource is cpu, memory, ephemeral-storage, hugepages-SIZE, or has a domain, as nvidia.com/gpu has"},
		},
	}
}

const generated = "  \"definitions\": "

// Schema is values.schema.json as it has to be: what is there by hand, and the definitions.
func Schema() (is, want []byte, err error) {
	is, err = os.ReadFile(SchemaFile())
	if err != nil {
		return
	}
	crd, err := os.ReadFile(filepath.Join(Root(), "crds/acceleratorpolicies.quartermaster.io.yaml"))
	if err != nil {
		return
	}
	made, err := definitions(crd)
	if err != nil {
		return
	}
	byHand, _, found := bytes.Cut(is, []byte(generated))
	if !found {
		return nil, nil, fmt.Errorf("values.schema.json has no line %q", generated)
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("  ", "  ")
	if err = to.Encode(made); err != nil {
		return
	}
	want = append(append(append([]byte{}, byHand...), generated...), text.Bytes()...)
	return is, append(want, "}\n"...), nil
}

// SchemaFile is values.schema.json.
func SchemaFile() string { return filepath.Join(Chart(), "values.schema.json") }
