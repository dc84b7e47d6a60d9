// Package machine is about a virtual machine as a node: a kernel of its own with cgroup version 2, systemd, containerd and a kubelet. QEMU
// emulates its processors, so it is about ten times slower than this machine, and waits are long.
package machine

import (
	"context"
	"fmt"
	"os"
	"testing"

	"quartermaster.io/test/faults/kit"
)

var (
	ctx     = context.Background()
	must    = kit.Must
	await   = kit.Await
	cluster *kit.Cluster
	vm      *machine
)

// One cluster without KWOK, and one machine for all tests, which take turns.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		defer func() {
			if vm != nil {
				vm.end()
			}
		}()
		return kit.RunLane(m, "machine", "QM_MACHINE_CLUSTER", func(name string) (err error) {
			if cluster, err = kit.Up(ctx, name, kit.Minor(), "--no-kwok"); err != nil {
				return err
			}
			if vm, err = boot(); err != nil {
				return fmt.Errorf("no machine: %w", err)
			}
			return nil
		})
	}())
}
