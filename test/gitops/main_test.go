// Package gitops is about the chart in the hands of Flux: its real helm-controller installs it, watches it, changes it and removes it.
package gitops

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"quartermaster.io/test/faults/kit"
)

const (
	registry = "quartermaster.test"
	cardNode = "t4-0" // simulated; the operator's pods are on the real node
)

var (
	ctx      = context.Background()
	must     = kit.Must
	cluster  *kit.Cluster
	programs = os.Getenv("QM_GITOPS") // the folder of the tools' programs
)

// One cluster with a real node for the pods of the operator and of the chart's Jobs, and a simulated one with a card.
// QM_GITOPS_CLUSTER names a cluster that is left running.
func TestMain(m *testing.M) {
	os.Exit(kit.RunLane(m, "gitops", "QM_GITOPS_CLUSTER", func(name string) (err error) {
		if cluster, err = kit.Up(ctx, name, kit.Minor(), "--real-nodes", "1"); err != nil {
			return err
		}
		if said, err := cluster.Script("node-image", registry+"/quartermaster:"+os.Getenv("QM_IMAGE_TAG"), "--archive", os.Getenv("QM_IMAGE")); err != nil {
			return fmt.Errorf("%w\n%s", err, said)
		}
		_, err = cluster.Run("", "sim", "nodes", "--profile", "t4=1")
		return err
	}))
}

// launch starts a program of the folder that ends with the test. Its output is in the log of a test that failed.
func launch(t *testing.T, name string, environment []string, program string, args ...string) {
	t.Helper()
	log := filepath.Join(cluster.Dir, "logs", name+".log")
	file, err := os.Create(log)
	must(t, err)
	defer file.Close()
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = file, file
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		if t.Failed() {
			text, _ := exec.Command("tail", "-n", "40", log).Output()
			t.Logf("%s:\n%s", log, text)
		}
		if folder := os.Getenv("QM_GITOPS_LOGS"); folder != "" {
			exec.Command("cp", log, folder).Run()
		}
	})
}

// freePort of loopback, for one program.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := kit.FreePort()
	must(t, err)
	return port
}
