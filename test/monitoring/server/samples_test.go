package server

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sample is one line of a page of metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	samplePattern = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? (\S+)$`)
	labelPattern  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
	typePattern   = regexp.MustCompile(`(?m)^# TYPE ([a-z_]+) ([a-z]+)$`)
)

func samples(t *testing.T, page string) (out []sample) {
	t.Helper()
	for _, match := range samplePattern.FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(match[3], 64)
		if err != nil {
			t.Fatalf("%s: %v", match[0], err)
		}
		labels := map[string]string{}
		for _, label := range labelPattern.FindAllStringSubmatch(match[2], -1) {
			labels[label[1]] = strings.ReplaceAll(label[2], `\\`, `\`)
		}
		out = append(out, sample{match[1], labels, value})
	}
	return out
}

// series is values by a text of their labels, as both sides of a comparison write it.
type series map[string]float64

func key(labels map[string]string) string {
	var out []string
	for name, value := range labels {
		if name != "__name__" && value != "" {
			out = append(out, fmt.Sprintf("%s=%q", name, value))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// differences between two sets of series, to nine digits.
func (s series) differences(other series) (out []string) {
	for key, value := range s {
		if is, ok := other[key]; !ok {
			out = append(out, fmt.Sprintf("{%s} is missing, wanted %v", key, value))
		} else if math.Abs(is-value) > 1e-9*math.Max(math.Abs(value), 1) {
			out = append(out, fmt.Sprintf("{%s} is %v, wanted %v", key, is, value))
		}
	}
	for key, value := range other {
		if _, ok := s[key]; !ok {
			out = append(out, fmt.Sprintf("{%s} is too much: %v", key, value))
		}
	}
	return out
}

// share is one container's part of one card, as the samples of a page say it together.
type share struct {
	labels                          map[string]string
	utilization, cores, given, used float64
}

// expected is what each recording rule should say, computed from the samples of the agents' pages.
func expected(all []sample) map[string]series {
	out := map[string]series{}
	put := func(record string, labels map[string]string, value float64) {
		if out[record] == nil {
			out[record] = series{}
		}
		out[record][key(labels)] += value
	}
	only := func(labels map[string]string, names ...string) map[string]string {
		kept := map[string]string{}
		for _, name := range names {
			kept[name] = labels[name]
		}
		return kept
	}
	sizes := map[string]float64{}
	for _, s := range all {
		if s.name == "quartermaster_model_memory_bytes" {
			sizes[s.labels["model"]] = s.value
		}
	}
	indexes, shares, cards := map[string]string{}, map[string]*share{}, map[string]int{}
	for _, s := range all {
		switch s.name {
		case "quartermaster_card_info":
			indexes[s.labels["uuid"]] = s.labels["index"]
			put("model:quartermaster_cards:count", only(s.labels, "model", "mode"), 1)
			cards[s.labels["node"]]++
		case "quartermaster_card_memory_bytes":
			put("node:quartermaster_card_memory_bytes:sum", only(s.labels, "node"), s.value)
		case "quartermaster_card_memory_used_bytes":
			put("node:quartermaster_card_memory_used_bytes:sum", only(s.labels, "node"), s.value)
		case "quartermaster_allocated_cores":
			put("namespace:quartermaster_allocated_cores:sum", only(s.labels, "namespace", "model", "mode", "organization"), s.value/100)
		case "quartermaster_allocated_memory_bytes":
			put("namespace:quartermaster_allocated_memory:sum", only(s.labels, "namespace", "model", "mode", "organization"), s.value/sizes[s.labels["model"]])
		}
		if !strings.HasPrefix(s.name, "quartermaster_share_") {
			continue
		}
		one := shares[key(s.labels)]
		if one == nil {
			one = &share{labels: s.labels}
			shares[key(s.labels)] = one
		}
		switch s.name {
		case "quartermaster_share_utilization_ratio":
			one.utilization = s.value
		case "quartermaster_share_allocated_cores_ratio":
			one.cores = s.value
		case "quartermaster_share_allocated_memory_bytes":
			one.given = s.value
		case "quartermaster_share_memory_used_bytes":
			one.used = s.value
		}
	}
	for _, s := range all {
		if s.name == "quartermaster_card_utilization_ratio" {
			put("node:quartermaster_card_utilization:avg", only(s.labels, "node"), s.value/float64(cards[s.labels["node"]]))
		}
	}
	// Each pod of this lane has one container on one card, so its mean and its sums are those of its share.
	for _, one := range shares {
		put("share:quartermaster_share_memory_used:ratio", one.labels, one.used/one.given)
		put("namespace:quartermaster_share_allocated_cores:sum", only(one.labels, "namespace", "model", "mode"), one.cores)
		put("namespace:quartermaster_share_utilization:sum", only(one.labels, "namespace", "model", "mode"), one.utilization)
		pod := only(one.labels, "namespace", "pod", "mode")
		if one.labels["mode"] == "pgpu" {
			put("workload_gpu_utilization", pod, 100*one.utilization)
			put("workload_gpu_memory_utilization", pod, 100*one.used/one.given)
		} else {
			put("workload_vgpu_utilization", pod, 100*one.utilization/one.cores)
			put("workload_vgpu_memory_utilization", pod, 100*one.used/one.given)
		}
		named := func(label, value string) map[string]string {
			return map[string]string{"namespace": one.labels["namespace"], "node": one.labels["node"], "mode": one.labels["mode"],
				"pod_name": one.labels["pod"], "container_name": one.labels["container"], label: value}
		}
		for _, gpu := range []string{"total", "gpu" + indexes[one.labels["uuid"]]} {
			put("container_gpu_utilization", named("gpu", gpu), 100*one.utilization)
			put("container_gpu_memory_total", named("gpu_memory", gpu), one.used/(1<<20))
		}
		put("container_request_gpu_utilization", named("req_of_gpu", "total"), one.cores)
		put("container_request_gpu_memory", named("req_of_gpu_memory", "total"), one.given/(1<<20))
	}
	return out
}
