package kit

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that runs next to this one.
type Process struct {
	Began   time.Time
	Tail    *Tail
	command *exec.Cmd
	lines   chan string   // of stdout, for Expect
	exited  chan struct{} // closed once it has ended
}

// Tail keeps the end of what a program writes.
type Tail struct {
	mutex sync.Mutex
	text  []byte
}

func (t *Tail) Write(text []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, text...)
	if over := len(t.text) - 2000; over > 0 {
		t.text = t.text[over:]
	}
	return len(text), nil
}

func (t *Tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.TrimSpace(string(t.text))
}

// Command is the program, pinned to a core.
func Command(core int, program string, arguments ...string) *exec.Cmd {
	if core != AnyCore {
		program, arguments = "taskset", append([]string{"-c", strconv.Itoa(core), program}, arguments...)
	}
	return exec.Command(program, arguments...)
}

// Spawn starts the program; Tail has what it writes.
func Spawn(core int, program string, arguments ...string) (*Process, error) {
	return Start(Command(core, program, arguments...))
}

// SpawnTalking starts a program whose stdout is read with Expect.
func SpawnTalking(core int, program string, arguments ...string) (*Process, error) {
	command, lines := Command(core, program, arguments...), &lineWriter{channel: make(chan string, 16)}
	command.Stdout = lines
	process, err := Start(command)
	if err == nil {
		process.lines = lines.channel
	}
	return process, err
}

// Start a command; Tail has what it writes, except for a stream that is set already.
func Start(command *exec.Cmd) (*Process, error) {
	process := &Process{Began: time.Now(), Tail: &Tail{}, command: command, exited: make(chan struct{})}
	if command.Stdout == nil {
		command.Stdout = process.Tail
	}
	command.Stderr = process.Tail
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		command.Wait()
		close(process.exited)
	}()
	return process, nil
}

// lineWriter sends each whole line.
type lineWriter struct {
	channel chan string
	rest    []byte
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		w.rest = rest
		w.channel <- string(line)
	}
}

func (p *Process) String() string { return strings.Join(p.command.Args, " ") }

// PID of the program.
func (p *Process) PID() int { return p.command.Process.Pid }

// Alive is an error once the program has ended.
func (p *Process) Alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s ended (%v): %s", p, p.command.ProcessState, p.Tail)
	default:
		return nil
	}
}

// Kill ends it without warning, as the kernel does.
func (p *Process) Kill() { p.Stop(syscall.SIGKILL) }

// Stop sends the signal and waits until the program has ended. It is killed after 12 s.
func (p *Process) Stop(signal syscall.Signal) {
	p.command.Process.Signal(signal)
	late := time.After(12 * time.Second)
	for {
		select {
		case <-p.exited:
			return
		case <-p.lines: // nobody reads them any more
		case <-late:
			p.command.Process.Kill()
		}
	}
}

// Expect is the next line of stdout that begins with the word, split into fields.
func (p *Process) Expect(ctx context.Context, word string, within time.Duration) ([]string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case line := <-p.lines:
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == word {
				return fields, nil
			}
		case <-p.exited:
			if len(p.lines) == 0 {
				return nil, p.Alive()
			}
		case <-timer.C:
			return nil, fmt.Errorf("%s did not say %q within %s: %s", p, word, within, p.Tail)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// CPU time so far.
func (p *Process) CPU() (time.Duration, error) { return CPU(p.PID()) }

// Memory in MiB by its name in /proc/PID/status.
func (p *Process) Memory() (map[string]float64, error) { return Memory(p.PID()) }
