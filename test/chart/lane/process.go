package lane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// Process is a program that ends with its test.
type Process struct {
	*exec.Cmd
	Log string // the file with all that it says; a failed test prints the end of it
}

// Start runs a program with more variables in its environment.
func Start(t *testing.T, environment []string, program string, arguments ...string) Process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s %v:\n%s", filepath.Base(program), arguments, text[max(0, len(text)-3000):])
		}
	})
	return Process{cmd, log.Name()}
}

// FreePort is one that stays free for this process.
func FreePort(t *testing.T) string {
	t.Helper()
	port, err := kit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// Until waits until `done` has no error. The last one is in the message when patience has ended.
func Until(t *testing.T, patience time.Duration, wish string, done func() error) {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", wish, patience, err)
}
