package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// recording of what a real plugin words (test/plugins/recorded).
type recording struct {
	Plugin, Fixture, Resource string
	Register                  []struct{ Version, Endpoint, Resource string }
	Allocated                 map[string]struct{ Environment map[string]string }
	Devices                   [][]struct{ ID, Health string }
	Annotations               map[string]string
}

// The simulator plays plugins as the real ones are: the same resources, as many devices, named after the same cards.
func TestPlaysWhatRealPluginsSaid(t *testing.T) {
	files, err := filepath.Glob("../plugins/recorded/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("nothing was recorded: ", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var words recording
			read(t, file, &words)
			cards := cardsOf(t, words.Fixture)
			module, _, _ := strings.Cut(name, "-")
			if name == "pgpu-mixed" || name == "pgpu-single" {
				namesSlices(t, words)
				return
			}

			modules := catalogue(t)
			patch, _ := advertise(profile{Vendor: "nvidia", Cards: int64(len(cards)), MemoryMiB: t4MiB}, modules, map[string]bool{module: true}, nil, 0, corev1.NodeStatus{}, noon)
			registered := map[string]bool{}
			for _, registration := range words.Register {
				registered[registration.Resource] = true
			}
			itself := func(key string) bool { return modules[module].Resources[key].Stays } // written into the status, not registered
			if played := slices.DeleteFunc(slices.Sorted(maps.Keys(patch.Capacity)), itself); !slices.Equal(played, slices.Sorted(maps.Keys(registered))) {
				t.Errorf("%s registers %v, we play %v", words.Plugin, registered, played)
			}
			first := words.Devices[0]
			if played := patch.Allocatable[words.Resource]; played != int64(len(first)) {
				t.Errorf("%s has %d devices on %s, we play %d", words.Plugin, len(first), words.Fixture, played)
			}
			for _, device := range first {
				if !slices.Contains(cards, cardOf(device.ID)) || device.Health != "Healthy" {
					t.Errorf("device %+v is none of the cards %v", device, cards)
				}
			}
			namesCards(t, words)
			if module == "hami" {
				registersAlike(t, words, cards)
			}
		})
	}
}

// t4MiB is the memory of a card of the fixture t4_pair, which has the plugins that look at it.
const t4MiB = 15360

// cardOf a device, whose name ends in the number of the share: "::3" from NVIDIA's plugin, "-3" from HAMi's, "-_-3" from gpushare's.
func cardOf(device string) string {
	if card, _, ofMemory := strings.Cut(device, "-_-"); ofMemory {
		return card
	}
	card, _, shared := strings.Cut(device, "::")
	if parts := strings.Split(device, "-"); !shared && len(parts) == 7 {
		card = strings.Join(parts[:6], "-")
	}
	return card
}

// registersAlike: we write the same keys of each card to the node as HAMi's plugin. It leaves out what is 0 or false.
func registersAlike(t *testing.T, words recording, cards []string) {
	t.Helper()
	keys := func(text string) (out [][]string) {
		var list []map[string]any
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err, text)
		}
		for _, card := range list {
			out = append(out, slices.Sorted(maps.Keys(card)))
		}
		return out
	}
	written := keys(words.Annotations[registerKey])
	played := keys(register(profile{Vendor: "nvidia", Cards: int64(len(cards)), Model: "Tesla T4", MemoryMiB: t4MiB}, "a", map[string]bool{"hami": true}))
	if !slices.EqualFunc(written, played, slices.Equal) {
		t.Errorf("HAMi's plugin writes %v, we write %v", written, played)
	}
}

// namesCards: a container is told the card's own name, without the number of the share.
func namesCards(t *testing.T, words recording) {
	t.Helper()
	for id, answer := range words.Allocated {
		if answer.Environment["NVIDIA_VISIBLE_DEVICES"] != cardOf(id) {
			t.Errorf("device %s is given as %v", id, answer.Environment)
		}
	}
}

// namesSlices: a slice of a card is a device of its own.
func namesSlices(t *testing.T, words recording) {
	t.Helper()
	for _, device := range words.Devices[0] {
		if !strings.HasPrefix(device.ID, "MIG-") {
			t.Errorf("device %s is no slice", device.ID)
		}
	}
	namesCards(t, words)
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}

// cardsOf a fixture, by UUID.
func cardsOf(t *testing.T, fixture string) (out []string) {
	t.Helper()
	var node struct{ Cards []struct{ UUID string } }
	read(t, "../nvml/fixtures/"+fixture+".json", &node)
	for _, card := range node.Cards {
		out = append(out, card.UUID)
	}
	return out
}
