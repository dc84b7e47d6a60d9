package placements

import (
	"context"
	"os"
	"testing"

	"quartermaster.io/test/faults/kit"
)

var (
	at      *stage
	program = kit.Program()
	must    = kit.Must
	until   = kit.Until
)

func TestMain(m *testing.M) {
	os.Exit(kit.RunLane(m, "placements", "QM_PLACEMENTS_CLUSTER", func(name string) (err error) {
		at, err = open(context.Background(), name, kit.Minor())
		return err
	}))
}
