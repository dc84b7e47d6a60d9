package main

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed profiles/*.yaml modules.yaml
var data embed.FS

// A profile is a kind of machine: one file of profiles/, named like it.
type profile struct {
	Name      string            `json:"-"`
	Title     string            `json:"title"`
	Vendor    string            `json:"vendor"` // nvidia, amd, huawei; empty: no cards
	Arch      string            `json:"arch"`   // of the machine; amd64 when not given
	Node      map[string]string `json:"node"`   // capacity without cards
	Cards     int64             `json:"cards"`
	Model     string            `json:"model"`
	MemoryMiB int64             `json:"memoryMiB"` // of one card
	Family    string            `json:"family"`
	Compute   string            `json:"compute"` // compute capability, "8.0"
	Driver    string            `json:"driver"`  // "550.144.03"
	Cuda      string            `json:"cuda"`    // the highest version of the driver, "12.4"
	Mig       bool              `json:"mig"`
	Mode      string            `json:"mode"` // compute or graphics
	Machine   string            `json:"machine"`
	Labels    map[string]string `json:"labels"` // what cannot be derived from the facts above
}

// loadProfiles reads all profiles, by name. A file that is wrong is a bug of this program.
func loadProfiles() (map[string]profile, error) {
	files, err := data.ReadDir("profiles")
	if err != nil {
		return nil, err
	}
	profiles := map[string]profile{}
	for _, f := range files {
		text, err := data.ReadFile(path.Join("profiles", f.Name()))
		if err != nil {
			return nil, err
		}
		p := profile{Name: strings.TrimSuffix(f.Name(), ".yaml"), Arch: "amd64"}
		if err := yaml.UnmarshalStrict(text, &p); err != nil {
			return nil, fmt.Errorf("profiles/%s: %w", f.Name(), err)
		}
		profiles[p.Name] = p
	}
	return profiles, nil
}

// A formula says how much of a resource a module's plugin advertises on a node.
type formula struct {
	PerCard       int64 `json:"perCard"`
	MemoryUnitMiB int64 `json:"memoryUnitMiB"`
	Stays         bool  `json:"stays"` // when the plugin goes: it wrote the resource into the status itself
}

func (f formula) of(p profile) int64 {
	if f.MemoryUnitMiB > 0 {
		return p.Cards * p.MemoryMiB / f.MemoryUnitMiB
	}
	return p.Cards * f.PerCard
}

type module struct {
	Vendor    string             `json:"vendor"`
	Resources map[string]formula `json:"resources"`
}

func loadModules() (map[string]module, error) {
	text, err := data.ReadFile("modules.yaml")
	if err != nil {
		return nil, err
	}
	modules := map[string]module{}
	if err := yaml.UnmarshalStrict(text, &modules); err != nil {
		return nil, fmt.Errorf("modules.yaml: %w", err)
	}
	return modules, nil
}

// A want is how many nodes of a profile there shall be.
type want struct {
	profile profile
	count   int
}

// parseWants reads "t4=2,a100=1". Names without a number share count nodes in turn; no names at all means all profiles with cards.
func parseWants(text string, count int, profiles map[string]profile) ([]want, error) {
	names := slices.Sorted(maps.Keys(profiles))
	var wants []want
	numbered, plain := false, false
	if text == "" {
		plain = true
		for _, name := range names {
			if profiles[name].Cards > 0 {
				wants = append(wants, want{profile: profiles[name]})
			}
		}
	} else {
		for item := range strings.SplitSeq(text, ",") {
			name, number, has := strings.Cut(strings.TrimSpace(item), "=")
			p, ok := profiles[name]
			if !ok {
				return nil, fmt.Errorf("unknown profile %q: the profiles are %s", name, strings.Join(names, ", "))
			}
			if slices.ContainsFunc(wants, func(w want) bool { return w.profile.Name == name }) {
				return nil, fmt.Errorf("profile %q is named twice", name)
			}
			w := want{profile: p}
			if has {
				n, err := strconv.Atoi(number)
				if err != nil || n < 0 {
					return nil, fmt.Errorf("profile %q: %q is not a number of nodes", name, number)
				}
				w.count, numbered = n, true
			} else {
				plain = true
			}
			wants = append(wants, w)
		}
	}
	switch {
	case numbered && plain:
		return nil, fmt.Errorf("give a number to every profile or to none")
	case numbered && count > 0:
		return nil, fmt.Errorf("--count and numbers in --profile say the same thing twice: give one of them")
	case plain && count <= 0:
		return nil, fmt.Errorf("say how many nodes: --count 8, or a number for each profile (--profile t4=2,a100=1)")
	}
	for i := range count {
		wants[i%len(wants)].count++
	}
	return wants, nil
}
