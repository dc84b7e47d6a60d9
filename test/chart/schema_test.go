package chart

import (
	"os"
	"testing"
)

// The policy in values is judged by the CRD's own schema. Where this fails after a change of crds/:
// QM_GOLDEN=write test/go_test.sh chart
func TestS2_values_schema_of_the_policy_is_that_of_the_crd(t *testing.T) {
	is, want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if string(is) == string(want) {
		return
	}
	if os.Getenv("QM_GOLDEN") != "write" {
		t.Fatal("values.schema.json is not what crds/ say: QM_GOLDEN=write test/go_test.sh chart")
	}
	if err := os.WriteFile(SchemaFile(), want, 0o644); err != nil {
		t.Fatal(err)
	}
}
