package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listKeys are the lists that server-side apply merges by key; what lies under any other list is owned as one.
var listKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"}, "volumeMounts": {"mountPath"},
	"ports": {"containerPort", "protocol"}, "conditions": {"type"}, "ownerReferences": {"uid"}, "addresses": {"type"}, "podIPs": {"ip"},
	"imagePullSecrets": {"name"},
}

// managed is the managedFields entry that `manager` would have for the given parts of an object ("metadata", "spec", "status").
func managed(manager, subresource string, at metav1.Time, object any, parts ...string) metav1.ManagedFieldsEntry {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		panic(err)
	}
	owned := map[string]any{}
	for _, part := range parts {
		if value, ok := tree[part]; ok {
			owned[part] = value
		}
	}
	if m, ok := owned["metadata"].(map[string]any); ok {
		maps.DeleteFunc(m, func(key string, _ any) bool {
			return !slices.Contains([]string{"labels", "annotations", "ownerReferences"}, key)
		})
	}
	var out bytes.Buffer
	writeFields(&out, owned, false)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: out.Bytes()}, Subresource: subresource}
}

// writeFields writes the FieldsV1 set of a JSON object; `self` adds the "." that stands for the object as an item.
func writeFields(out *bytes.Buffer, object map[string]any, self bool) {
	out.WriteByte('{')
	comma := func() {
		if b := out.Bytes(); b[len(b)-1] != '{' {
			out.WriteByte(',')
		}
	}
	if self {
		out.WriteString(`".":{}`)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		comma()
		fmt.Fprintf(out, "%q:", "f:"+key)
		switch value := object[key].(type) {
		case map[string]any:
			writeFields(out, value, true)
		case []any:
			writeListFields(out, value, listKeys[key])
		default:
			out.WriteString("{}")
		}
	}
	out.WriteByte('}')
}

func writeListFields(out *bytes.Buffer, list []any, keys []string) {
	if keys == nil {
		out.WriteString("{}")
		return
	}
	out.WriteString(`{".":{}`)
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		id := map[string]any{}
		for _, key := range keys {
			if value, ok := fields[key]; ok {
				id[key] = value
			}
		}
		raw, _ := json.Marshal(id)
		fmt.Fprintf(out, ",%q:", "k:"+string(raw))
		writeFields(out, fields, true)
	}
	out.WriteByte('}')
}
