package load

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTheSameSeedMakesTheSamePod(t *testing.T) {
	a, b := Pod(1, 7, 100, 25), Pod(1, 7, 100, 25)
	first, _ := a.Marshal()
	second, _ := b.Marshal()
	if !bytes.Equal(first, second) {
		t.Fatal("two pods of one seed and index differ")
	}
	other, _ := Pod(2, 7, 100, 25).Marshal()
	if bytes.Equal(first, other) {
		t.Fatal("the seed does not matter")
	}
}

func TestObjectsAreAsBigAsAskedAndValid(t *testing.T) {
	envs := Variables(Options{Nodes: 100, Size: 10_000})
	pod := Pod(1, 0, 100, envs)
	if size := pod.Size(); size < 9_500 || size > 10_500 {
		t.Fatalf("a pod of 10,000 bytes was asked for, it has %d", size)
	}
	if bad := validation.IsDNS1123Subdomain(pod.Name); bad != nil {
		t.Fatal(bad)
	}
	for key, value := range Node(1, 3).Labels {
		if bad := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); bad != nil {
			t.Fatal(key, value, bad)
		}
	}
	for _, entry := range append(pod.ManagedFields, Node(1, 3).ManagedFields...) {
		if !json.Valid(entry.FieldsV1.Raw) {
			t.Fatalf("%s owns invalid fields: %s", entry.Manager, entry.FieldsV1.Raw)
		}
	}
	raw, _ := json.Marshal(pod)
	node, _ := json.Marshal(Node(1, 3))
	t.Logf("pod %d protobuf, %d JSON; node %d protobuf, %d JSON", pod.Size(), len(raw), Node(1, 3).Size(), len(node))
	t.Logf("least pod %d, with 25 variables %d", Pod(1, 0, 100, 5).Size(), Pod(1, 0, 100, 25).Size())
}
