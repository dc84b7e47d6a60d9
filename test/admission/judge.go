package admission

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"quartermaster.io/test/repository"
)

// Root is the top of the source tree.
func Root() string { return repository.Root() }

// Judge is the C++ form: the program admission_judge, asked a line at a time.
type Judge struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartJudge runs $QM_JUDGE, else the one of build/dev.
func StartJudge() (*Judge, error) {
	program := os.Getenv("QM_JUDGE")
	if program == "" {
		program = filepath.Join(Root(), "build/dev/admission_judge")
	}
	j := &Judge{cmd: exec.Command(program)}
	j.cmd.Stderr = os.Stderr
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewReaderSize(out, 1<<20)
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: build it first (ninja admission_judge), or say QM_JUDGE=FILE", err)
	}
	return j, nil
}

// Close ends it.
func (j *Judge) Close() error {
	j.in.Close()
	return j.cmd.Wait()
}

func (j *Judge) ask(question, answer any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		return err
	}
	if line, err = j.out.ReadBytes('\n'); err != nil {
		return fmt.Errorf("admission_judge: %w", err)
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err != nil {
		return err
	}
	if failed.Error != "" {
		return errors.New("admission_judge: " + failed.Error)
	}
	return json.Unmarshal(line, answer)
}

// Compiled is what the operator would write into the ResourceRules object.
type Compiled struct {
	Spec    Spec     `json:"spec"`
	Refused []string `json:"refused"` // declarations in error
	Faults  []string `json:"faults"`  // the fields that are in error, of all
	Bytes   int      `json:"bytes"`
	LeftOut int      `json:"leftOut"`
}

// CompileOptions are what the operator knows in addition to the declarations; nil lists: nothing.
type CompileOptions struct {
	FillOptional   bool     `json:"fillOptional,omitempty"`
	RuntimeClasses []string `json:"runtimeClasses,omitempty"`
	Offered        []string `json:"offered,omitempty"`
}

// Compile judges ConfigMaps together and compiles those in force.
func (j *Judge) Compile(configMaps []corev1.ConfigMap, how CompileOptions) (Compiled, error) {
	var out Compiled
	err := j.ask(struct {
		ConfigMaps []corev1.ConfigMap `json:"configMaps"`
		CompileOptions
	}{configMaps, how}, &out)
	return out, err
}

// Fill is one amount to be written, or was.
type Fill struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Answer is what the rules say of a pod.
type Answer struct {
	Allowed          bool   `json:"allowed"`
	Refusals         string `json:"refusals"`
	Advice           string `json:"advice"`
	Fills            []Fill `json:"fills"`
	RuntimeClassName string `json:"runtimeClassName"`
}

// Evaluate asks what the rules say of a pod, or of the pods of a template.
func (j *Judge) Evaluate(rules Spec, pod *corev1.Pod, enforcement string) (Answer, error) {
	var out Answer
	err := j.ask(struct {
		Rules       Spec        `json:"rules"`
		Pod         *corev1.Pod `json:"pod"`
		Enforcement string      `json:"enforcement"`
	}{rules, pod, enforcement}, &out)
	return out, err
}
