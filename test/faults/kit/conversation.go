package kit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Conversation of a real device plugin with a kubelet, as test/plugins/recorded/NAME.json has it. Nothing in it changes from run to run.
type Conversation struct {
	Plugin, Fixture string
	Resource        string // what was asked for
	Register        []PluginRegistration
	Options         PluginOptions
	Preferred       []string `json:",omitempty"` // the card or slice it prefers when one device of all but the first is wanted
	Allocated       map[string]PluginAllocation
	Devices         [][]PluginDevice  // ListAndWatch, answer after answer
	Annotations     map[string]string `json:",omitempty"` // that it wrote to the node
}

type PluginRegistration struct{ Version, Endpoint, Resource string }

type PluginOptions struct{ PreStartRequired, GetPreferredAllocationAvailable bool }

type PluginDevice struct {
	ID, Health string
	NUMA       []int64 `json:",omitempty"`
}

type PluginAllocation struct {
	Environment map[string]string `json:",omitempty"`
	Mounts      []string          `json:",omitempty"`
	Devices     []string          `json:",omitempty"`
	Annotations map[string]string `json:",omitempty"`
	CDI         []string          `json:",omitempty"`
}

// ConversationFile is where the conversation of that name lies.
func ConversationFile(name string) string {
	return filepath.Join(Root(), "test/plugins/recorded", name+".json")
}

// Conversations are all that were recorded, by name.
func Conversations() (map[string]Conversation, error) {
	files, err := filepath.Glob(ConversationFile("*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("none was recorded: %v", err)
	}
	out := map[string]Conversation{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var words Conversation
		if err := json.Unmarshal(text, &words); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = words
	}
	return out, nil
}
