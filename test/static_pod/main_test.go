package static_pod

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"quartermaster.io/test/faults/kit"
	"quartermaster.io/test/sim/staticpods"
)

var at *stage

func TestMain(m *testing.M) {
	staticpods.Main()
	os.Exit(func() int {
		minor, program := os.Getenv("QM_K8S"), os.Getenv("QM_OPERATOR")
		if minor == "" {
			minor = "1.36"
		}
		for _, built := range []string{"build/release/quartermaster", "build/dev/quartermaster"} {
			if file := filepath.Join(kit.Root(), built); program == "" {
				if _, err := os.Stat(file); err == nil {
					program = file
				}
			}
		}
		var err error
		at, err = open(context.Background(), minor, program)
		if at != nil {
			defer at.close()
		}
		if err != nil {
			fmt.Println("no control-plane nodes:", err)
			return 1
		}
		return m.Run()
	}())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
