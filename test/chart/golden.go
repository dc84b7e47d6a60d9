package chart

import (
	"os"
	"path/filepath"
	"testing"
)

// Golden holds text against a file of test/golden/chart; QM_GOLDEN=write writes it.
func Golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(Root(), "test/golden/chart", name)
	if os.Getenv("QM_GOLDEN") == "write" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("not as in test/golden/chart/%s (QM_GOLDEN=write test/go_test.sh chart writes it):\n%s", name, text)
	}
}
