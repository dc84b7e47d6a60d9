package admission

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Set is a number of declarations and the pods that meet them; README.md tells how one is written.
type Set struct {
	Name    string              `json:"name"`
	Declare []map[string]string `json:"declare"` // the data of a ConfigMap each
	CompileOptions
	Refused []string `json:"refused"` // keys whose declarations are themselves refused, so that no pod is checked against them
	Sweep   *Sweep   `json:"sweep"`
	Pods    []Row    `json:"pods"`
}

// Row is one pod and what must come of it.
type Row struct {
	Say     string                 `json:"say"`
	Places  []string               `json:"places"`  // where the container is: container, init, sidecar; all three when not given
	Ask     map[string]json.Number `json:"ask"`     // its limits
	Request map[string]json.Number `json:"request"` // its requests, where they are given and not left to the server
	Class   string                 `json:"class"`   // of the pod: runtimeClassName

	Annotations map[string]string `json:"annotations"` // of the pod
	Labels      map[string]string `json:"labels"`

	Containers []Box `json:"containers"` // instead of Places, Ask and Request

	// Nothing of these: the pod is taken as it is.
	Refuse   string                 `json:"refuse"`   // what the one text says, after the name of the container
	Advise   string                 `json:"advise"`   // the same of a warning
	Fill     map[string]json.Number `json:"fill"`     // into the (last) container
	SetClass string                 `json:"setClass"` // the runtime class that is filled in
	Server   string                 `json:"server"`   // Kubernetes itself refuses the pod, and says this
}

// Box is a container of a pod of several.
type Box struct {
	In  string                 `json:"in"` // container, init, sidecar
	Ask map[string]json.Number `json:"ask"`
}

// Sweep makes a pod of each amount of a key; what must come of it is in the table, a file next to it.
type Sweep struct {
	Key    string                 `json:"key"`
	Table  string                 `json:"table"`
	Beside map[string]json.Number `json:"beside"`
	rows   [][4]string
}

// Case is one pod, made, with what must come of it.
type Case struct {
	Name           string
	Pod            *corev1.Pod
	Allowed        bool
	Refuse, Advise string
	Server         string
	Fills          []Fill
	SetClass       string
}

// LoadSets reads cases/*.yaml. `$` stands for a text of each set's own, so that many sets can be held in one ResourceRules object.
func LoadSets() ([]Set, error) {
	files, err := filepath.Glob(filepath.Join(Root(), "test/admission/cases/*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no cases: %v", err)
	}
	slices.Sort(files)
	var all []Set
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var count struct {
			Sets []any `json:"sets"`
		}
		if err := yaml.Unmarshal(text, &count); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i := range count.Sets {
			var content struct {
				Sets []Set `json:"sets"`
			}
			own := strings.ReplaceAll(string(text), "$", fmt.Sprintf("s%d", len(all)))
			if err := yaml.UnmarshalStrict([]byte(own), &content); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			set := content.Sets[i]
			if set.Sweep != nil {
				if set.Sweep.rows, err = readTable(filepath.Join(filepath.Dir(file), set.Sweep.Table)); err != nil {
					return nil, err
				}
			}
			set.Name = strings.TrimSuffix(filepath.Base(file), ".yaml") + "/" + set.Name
			all = append(all, set)
		}
	}
	return all, nil
}

// ConfigMaps of the set, named as the house names them.
func (s Set) ConfigMaps() []corev1.ConfigMap {
	var out []corev1.ConfigMap
	for _, data := range s.Declare {
		all := map[string]string{"dataType": "integer", "limits": "optional", "requests": "disabled"}
		for field, value := range data {
			all[field] = value
		}
		out = append(out, ConfigMap(configMapName(all), all))
	}
	return out
}

func configMapName(data map[string]string) string {
	key := data["key"]
	group := data["group"]
	if group == "" {
		group = strings.SplitN(key, ".", 2)[0]
	}
	return "cf-crl-" + group + "-" + key[strings.LastIndex(key, "/")+1:]
}

// Cases of the set, sweeps left out.
func (s Set) Cases() []Case {
	var out []Case
	for _, row := range s.Pods {
		if len(row.Containers) > 0 {
			out = append(out, row.made(s.Name, row.Containers, nil))
			continue
		}
		places := row.Places
		if len(places) == 0 {
			places = []string{"container", "init", "sidecar"}
		}
		for _, place := range places {
			out = append(out, row.made(s.Name+"/"+place, []Box{{In: place, Ask: row.Ask}}, row.Request))
		}
	}
	return out
}

// made puts the boxes into a pod: init containers and sidecars are named first-N, the others main-N. There is always a main one.
func (r Row) made(name string, boxes []Box, requests map[string]json.Number) Case {
	out := Case{Name: name + "/" + r.Say, Pod: NewPod(), Server: r.Server, SetClass: r.SetClass, Allowed: r.Refuse == ""}
	out.Name = strings.ReplaceAll(out.Name, " ", "-")
	out.Pod.Annotations, out.Pod.Labels = r.Annotations, r.Labels
	spec := &out.Pod.Spec
	if r.Class != "" {
		spec.RuntimeClassName = &r.Class
	}
	var path, title string
	for _, box := range boxes {
		c := corev1.Container{Image: "none", Resources: corev1.ResourceRequirements{Limits: quantities(box.Ask), Requests: quantities(requests)}}
		if box.In == "container" {
			c.Name = fmt.Sprintf("main-%d", len(spec.Containers))
			path, title = fmt.Sprintf("/spec/containers/%d", len(spec.Containers)), "container "+c.Name
			spec.Containers = append(spec.Containers, c)
			continue
		}
		c.Name = fmt.Sprintf("first-%d", len(spec.InitContainers))
		if box.In == "sidecar" {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		path, title = fmt.Sprintf("/spec/initContainers/%d", len(spec.InitContainers)), "init container "+c.Name
		spec.InitContainers = append(spec.InitContainers, c)
	}
	if len(spec.Containers) == 0 {
		spec.Containers = []corev1.Container{{Name: "main-0", Image: "none"}}
	}
	about := func(text string) string {
		if text == "" || len(boxes) > 1 { // then the row names the container
			return text
		}
		return title + ": " + text
	}
	out.Refuse, out.Advise = about(r.Refuse), about(r.Advise)
	for key, amount := range r.Fill {
		out.Fills = append(out.Fills, Fill{path + "/resources/limits/" + strings.ReplaceAll(key, "/", "~1"), amount.String()})
	}
	return out
}

// NewPod without containers.
func NewPod() *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: "default"}}
}

func quantities(of map[string]json.Number) corev1.ResourceList {
	if len(of) == 0 {
		return nil
	}
	out := corev1.ResourceList{}
	for key, amount := range of {
		out[corev1.ResourceName(key)] = resource.MustParse(amount.String())
	}
	return out
}

// readTable of a sweep: amount, verdict alone, verdict together with what it needs, nearest legal amount.
func readTable(file string) ([][4]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows [][4]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("%s: %q has not four fields", file, line)
		}
		rows = append(rows, [4]string(fields))
	}
	return rows, nil
}

// SweepCases are a pod of one amount of the table in so many, and of each amount next to another verdict; `partner` is what a share needs in addition.
func (s Set) SweepCases(partner string, each int) []Case {
	if s.Sweep == nil {
		return nil
	}
	var out []Case
	for i, row := range s.Sweep.rows {
		same := func(n int) bool {
			return n >= 0 && n < len(s.Sweep.rows) && slices.Equal(s.Sweep.rows[n][1:3], row[1:3])
		}
		if i%each != 0 && same(i-1) && same(i+1) {
			continue
		}
		amount, verdict, nearest := row[0], row[1], row[3]
		if _, beside := s.Sweep.Beside[partner]; beside {
			verdict = row[2]
		}
		pod := Row{Say: amount, Ask: map[string]json.Number{s.Sweep.Key: json.Number(amount)}}
		for key, beside := range s.Sweep.Beside {
			pod.Ask[key] = beside
		}
		switch verdict {
		case "not_legal":
			pod.Refuse = fmt.Sprintf("%s is %s; allowed are 1 to 99 (a share of a card) and multiples of 100 (whole cards), nearest %s", s.Sweep.Key, amount, nearest)
		case "needs_memory":
			pod.Refuse = fmt.Sprintf("%s is %s, a share of a card, and needs %s beside it; 100 is a whole card and needs none", s.Sweep.Key, amount, partner)
		case "needs_core":
			pod.Refuse = fmt.Sprintf("%s is %s and needs %s beside it", partner, s.Sweep.Beside[partner], s.Sweep.Key)
		}
		out = append(out, pod.made(s.Name, []Box{{In: "container", Ask: pod.Ask}}, nil))
	}
	return out
}

// Wrong is what an answer of either form has wrong about the case, in words; the fills are those the pod got.
func (c Case) Wrong(a Answer) []string {
	var wrong []string
	say := func(format string, arguments ...any) { wrong = append(wrong, fmt.Sprintf(format, arguments...)) }
	if a.Allowed != c.Allowed {
		say("allowed is %v, not %v: %q", a.Allowed, c.Allowed, a.Refusals)
	}
	if c.Allowed != (a.Refusals == "") || !strings.Contains(a.Refusals, c.Refuse) {
		say("the refusal is %q, not %q", a.Refusals, c.Refuse)
	}
	// Warnings next to a refusal are not checked.
	if c.Allowed && ((c.Advise == "") != (a.Advice == "") || !strings.Contains(a.Advice, c.Advise)) {
		say("the advice is %q, not %q", a.Advice, c.Advise)
	}
	byPath := func(a, b Fill) int { return strings.Compare(a.Path, b.Path) }
	want, got := slices.SortedFunc(slices.Values(c.Fills), byPath), slices.SortedFunc(slices.Values(a.Fills), byPath)
	if !slices.Equal(want, got) {
		say("the fills are %v, not %v", got, want)
	}
	if a.RuntimeClassName != c.SetClass {
		say("the runtime class to write is %q, not %q", a.RuntimeClassName, c.SetClass)
	}
	return wrong
}

// FillsOf are the limits that one pod has and the other had not, and the runtime class likewise.
func FillsOf(before, after *corev1.Pod) (fills []Fill, class string) {
	lists := [][2][]corev1.Container{{before.Spec.InitContainers, after.Spec.InitContainers}, {before.Spec.Containers, after.Spec.Containers}}
	for i, pair := range lists {
		for j, c := range pair[1] {
			for key, amount := range c.Resources.Limits {
				if _, had := pair[0][j].Resources.Limits[key]; !had {
					path := fmt.Sprintf("/spec/%s/%d/resources/limits/%s", []string{"initContainers", "containers"}[i], j, strings.ReplaceAll(string(key), "/", "~1"))
					fills = append(fills, Fill{path, amount.String()})
				}
			}
		}
	}
	if after.Spec.RuntimeClassName != nil && (before.Spec.RuntimeClassName == nil || *before.Spec.RuntimeClassName != *after.Spec.RuntimeClassName) {
		class = *after.Spec.RuntimeClassName
	}
	return fills, class
}

// Amounts is a list of one.
func Amounts(key, amount string) corev1.ResourceList {
	return quantities(map[string]json.Number{key: json.Number(amount)})
}
