package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// The table of values in the chart's README is made of values.yaml (names, defaults, comments) and values.schema.json (what else is
// allowed: the other words of an enumeration, or the limits of a number).

const (
	tableBegins = "<!-- made from values.yaml: QM_GOLDEN=write test/go_test.sh chart -->\n"
	tableEnds   = "<!-- end of the table -->\n"
	mostWords   = 28 // of a cell; test/prose asks for it
)

// value is a line `key: default  # comment` of values.yaml.
type value struct {
	path     []string
	given    string // the default as it is written there; empty: on the following lines
	comments []string
}

var (
	keyLine     = regexp.MustCompile(`^( *)([A-Za-z_]+):(?: (.*?))?(?: +# (.*))?$`)
	commentLine = regexp.MustCompile(`^( *)# (.*)$`)
)

// valuesOf reads our own form of YAML: two blanks a level, a comment after a value or on the lines before it.
func valuesOf(text string) []value {
	var out []value
	var parents, pending []string
	column := -1 // of the comment after the last value, which may go on on the next line
	for _, line := range strings.Split(text, "\n") {
		if comment := commentLine.FindStringSubmatch(line); comment != nil {
			if len(comment[1]) == column {
				last := &out[len(out)-1]
				last.comments = append(last.comments, comment[2])
			} else {
				column = -1
				pending = append(pending, comment[2])
			}
			continue
		}
		column = -1
		key := keyLine.FindStringSubmatch(line)
		if key == nil { // a blank line, or an entry of a list
			pending = nil
			continue
		}
		parents = append(parents[:len(key[1])/2:len(key[1])/2], key[2])
		one := value{path: slices.Clone(parents), given: key[3], comments: pending}
		if key[4] != "" {
			one.comments = append(one.comments, key[4])
			column = strings.LastIndex(line, "# "+key[4])
		}
		out, pending = append(out, one), nil
	}
	return out
}

// sentences are as many of a comment as a cell holds; the rest is in values.yaml.
func sentences(comments []string) string {
	words := strings.Fields(strings.Join(comments, " "))
	if len(words) > mostWords {
		end := mostWords
		for end > 1 && !strings.HasSuffix(words[end-1], ".") && !strings.HasSuffix(words[end-1], ";") {
			end--
		}
		if end > 1 {
			words = words[:end]
		}
	}
	return strings.TrimRight(strings.Join(words, " "), ".;")
}

func inTable(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// allowed says which values the schema takes besides the default, where that is a choice of words or a range of numbers.
func allowed(schema map[string]any, path []string, given string) string {
	at := any(schema)
	for _, name := range path {
		at = follow(schema, at)
		properties, _ := at.(map[string]any)["properties"].(map[string]any)
		if at = properties[name]; at == nil {
			return ""
		}
	}
	is, _ := follow(schema, at).(map[string]any)
	if choices, ok := is["enum"].([]any); ok {
		var out []string
		for _, choice := range choices {
			if word := fmt.Sprint(choice); word != "" && word != given {
				out = append(out, "`"+word+"`")
			}
		}
		return strings.Join(out, ", ")
	}
	if least, ok := is["minimum"]; ok {
		return fmt.Sprintf("%.0f to %.0f", least, is["maximum"])
	}
	return ""
}

func follow(schema map[string]any, at any) any {
	for {
		is, _ := at.(map[string]any)
		name, ok := is["$ref"].(string)
		if !ok {
			return at
		}
		at = schema
		for _, part := range strings.Split(strings.TrimPrefix(name, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
	}
}

// partOf says whether the row of the value above has this one: requests and limits are in the row of resources.
func partOf(path []string) bool { return len(path) > 1 && path[len(path)-2] == "resources" }

// ValuesTable is the table, a row per value that can be set.
func ValuesTable() (string, error) {
	text, err := os.ReadFile(filepath.Join(Chart(), "values.yaml"))
	if err != nil {
		return "", err
	}
	var defaults, schema map[string]any
	if err := yaml.UnmarshalStrict(text, &defaults); err != nil {
		return "", err
	}
	judge, err := os.ReadFile(SchemaFile())
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(judge, &schema); err != nil {
		return "", err
	}
	values := valuesOf(string(text))
	found, written := map[string]bool{}, map[string]string{}
	for _, one := range values {
		written[strings.Join(one.path, ".")] = one.given
	}
	var out bytes.Buffer
	out.WriteString("| value | default (or) | what it decides |\n|---|---|---|\n")
	for _, one := range values {
		name := strings.Join(one.path, ".")
		found[name] = true
		is := any(defaults)
		for _, key := range one.path {
			is = is.(map[string]any)[key]
		}
		if partOf(one.path) {
			continue
		}
		given := one.given
		if one.path[len(one.path)-1] == "resources" {
			given = fmt.Sprintf("{requests: %s, limits: %s}", written[name+".requests"], written[name+".limits"])
		}
		if group, ok := is.(map[string]any); ok && given == "" && len(group) > 0 { // its parts have the rows
			continue
		}
		if given == "" {
			flow, err := json.Marshal(is)
			if err != nil {
				return "", err
			}
			given = string(flow)
		}
		if len(one.comments) == 0 {
			return "", fmt.Errorf("values.yaml: no comment says what %s decides", name)
		}
		others := allowed(schema, one.path, given)
		if given != "" {
			given = "`" + inTable(given) + "`"
		}
		if others != "" {
			given += " (" + inTable(others) + ")"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, given, inTable(sentences(one.comments)))
	}
	for name := range defaults {
		if !found[name] {
			return "", fmt.Errorf("values.yaml: %s is not written in the form that the table is made from", name)
		}
	}
	return out.String(), nil
}

// ValuesReadme is the chart's README as it has to be.
func ValuesReadme() (file string, is, want []byte, err error) {
	file = filepath.Join(Chart(), "README.md")
	if is, err = os.ReadFile(file); err != nil {
		return
	}
	table, err := ValuesTable()
	if err != nil {
		return
	}
	before, rest, begins := bytes.Cut(is, []byte(tableBegins))
	_, after, ends := bytes.Cut(rest, []byte(tableEnds))
	if !begins || !ends {
		return file, is, nil, fmt.Errorf("%s has no lines %q and %q", file, tableBegins, tableEnds)
	}
	want = slices.Concat(before, []byte(tableBegins), []byte(table), []byte(tableEnds), after)
	return
}
