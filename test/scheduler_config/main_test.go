package scheduler_config

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

var (
	at   *stage
	must = kit.Must
)

// sampled: in the short form a third of a table, another one each day; all of it with QM_NIGHTLY. QM_SEED chooses the third.
func sampled(i int) bool {
	third := time.Now().YearDay()
	if seed, err := strconv.Atoi(os.Getenv("QM_SEED")); err == nil {
		third = seed
	}
	return os.Getenv("QM_NIGHTLY") != "" || (i+third)%3 == 0
}

func TestMain(m *testing.M) {
	code := kit.RunLane(m, "scheduler-config", "QM_SCHEDULER_CLUSTER", func(name string) (err error) {
		at, err = open(context.Background(), name, kit.Minor(), kit.Program())
		return err
	})
	if at != nil {
		at.close()
	}
	os.Exit(code)
}
