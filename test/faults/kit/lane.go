package kit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

// Env is an environment variable, or the other value where it is empty.
func Env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// Minor version of Kubernetes that a lane runs on.
func Minor() string { return Env("QM_K8S", "1.37") }

// KubeadmScheduler is the manifest of kube-scheduler as kubeadm of that version writes it.
func KubeadmScheduler(minor string) ([]byte, error) {
	name := "kubeadm.yaml"
	if minor == "1.30" {
		name = "kubeadm-1.30.yaml"
	}
	manifest, err := os.ReadFile(filepath.Join(Root(), "test/golden/scheduler_config/manifests", name))
	return regexp.MustCompile(`(kube-scheduler:v)1\.\d+`).ReplaceAll(manifest, []byte("${1}"+minor)), err
}

// Program under test: $QM_OPERATOR, else the one that was built here; "" when there is none.
func Program() string {
	program := os.Getenv("QM_OPERATOR")
	for _, built := range []string{"build/release/quartermaster", "build/dev/quartermaster"} {
		if file := filepath.Join(Root(), built); program == "" {
			if _, err := os.Stat(file); err == nil {
				program = file
			}
		}
	}
	return program
}

// RunLane runs a lane's tests and returns the exit code. Its cluster is the one $variable names, which stays, or one of its own, which ends.
func RunLane(m *testing.M, lane, variable string, start func(name string) error) int {
	name := os.Getenv(variable)
	if name == "" {
		name = fmt.Sprintf("%s-%d", lane, os.Getpid())
		ownClusters = true
		defer func() {
			if err := (&Cluster{Name: name}).Down(); err != nil {
				fmt.Println(lane+":", err)
			}
		}()
	}
	if err := start(name); err != nil {
		fmt.Println("no cluster:", err)
		return 1
	}
	return m.Run()
}

// Must ends the test when there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Patient is how long to wait for what has to come: three times as long as it takes on a machine that does nothing else. A wait that ends
// well is no longer for it.
func Patient(patience time.Duration) time.Duration { return 3 * patience }

// Until waits until `done` says so; its errors matter only when patience has ended.
func Until(ctx context.Context, patience time.Duration, what string, done func() (bool, error)) error {
	patience = Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ok, err := done()
		if ok {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s: not within %s: %v", what, patience, err)
		}
	}
}

// Output of a program that still writes it.
type Output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *Output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(text)
}

func (o *Output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}
