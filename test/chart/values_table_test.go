package chart

import (
	"os"
	"slices"
	"testing"
)

// Where this fails after a change of values.yaml: QM_GOLDEN=write test/go_test.sh chart
func TestTheReadmeHasEveryValue(t *testing.T) {
	file, is, want, err := ValuesReadme()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(is, want) {
		return
	}
	if os.Getenv("QM_GOLDEN") != "write" {
		t.Fatal("the table in charts/quartermaster/README.md is not what values.yaml says: QM_GOLDEN=write test/go_test.sh chart")
	}
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The reader of values.yaml takes a comment that goes on, a comment before a key, and the default as it is written.
func TestValuesAreReadWithTheirComments(t *testing.T) {
	read := valuesOf("# About all.\n\n# About a.\na:\n  b: {c: 1}   # first\n              # second\n  d: \"\"\n")
	want := []value{{[]string{"a"}, "", []string{"About a."}}, {[]string{"a", "b"}, "{c: 1}", []string{"first", "second"}}, {[]string{"a", "d"}, `""`, nil}}
	for i := range want {
		if i >= len(read) || !slices.Equal(read[i].path, want[i].path) || read[i].given != want[i].given || !slices.Equal(read[i].comments, want[i].comments) {
			t.Errorf("%d: %+v, not %+v", i, read, want[i])
		}
	}
	if said := sentences([]string{"One two.", "a b c d e f g h i j k l m n o p q r s t u v w x y z", "0 1 2."}); said != "One two" {
		t.Errorf("a long comment becomes %q", said)
	}
}
