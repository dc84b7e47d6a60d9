package static_pod

import (
	"context"
	"fmt"
	"os"
	"testing"

	"quartermaster.io/test/faults/kit"
	"quartermaster.io/test/sim/staticpods"
)

var (
	at   *stage
	must = kit.Must
)

func TestMain(m *testing.M) {
	staticpods.Main()
	os.Exit(func() int {
		var err error
		at, err = open(context.Background(), kit.Minor(), kit.Program())
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
