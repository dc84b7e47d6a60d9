package scheduler_config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

var at *stage

// sampled: in the short form a third of a table, another one each day; all of it with QM_NIGHTLY. QM_SEED chooses the third.
func sampled(i int) bool {
	third := time.Now().YearDay()
	if seed, err := strconv.Atoi(os.Getenv("QM_SEED")); err == nil {
		third = seed
	}
	return os.Getenv("QM_NIGHTLY") != "" || (i+third)%3 == 0
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		minor, name := os.Getenv("QM_K8S"), os.Getenv("QM_SCHEDULER_CLUSTER")
		if minor == "" {
			minor = "1.36"
		}
		program := os.Getenv("QM_OPERATOR")
		for _, built := range []string{"build/release/quartermaster", "build/dev/quartermaster"} {
			if file := filepath.Join(kit.Root(), built); program == "" {
				if _, err := os.Stat(file); err == nil {
					program = file
				}
			}
		}
		keep := name != ""
		if !keep {
			name = fmt.Sprintf("scheduler-config-%d", os.Getpid())
		}
		var err error
		at, err = open(context.Background(), name, minor, program)
		if !keep {
			defer (&kit.Cluster{Name: name}).Down()
		}
		if err != nil {
			fmt.Println("no cluster:", err)
			return 1
		}
		defer at.close()
		return m.Run()
	}())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
