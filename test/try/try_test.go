// Package try is `./dev try` as people see it: its own script, the commands as it prints them, and Ctrl-C.
package try

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// known is what each command has to show, in the order in which they are printed.
var known = []struct {
	command string
	shows   []string
}{
	{"quartermaster inspect nodes", []string{
		`(?m)^a100-0 +pgpu +Ready +8 +gpu 3/8 `, `(?m)^t4-8 +none +Refused .*UnknownMode`, `(?m)^v100-0 +vgpu -> \w+ +Draining .*PodsHoldCards`, `(?m)^t4-9 +none +- `,
		`(?m)^a100-6 +mps +Ready `, `(?m)^a100-4 +hami +Ready `, `(?m)^a100-7 +share +Ready `, `(?m)^t4-5 +gpushare +Ready `, `(?m)^ascend910b-0 +ascend +Ready `}},
	{"quartermaster explain pod training/eight-cards", nil}, // reasons has it
	{"quartermaster verify v100-0", []string{`research/finetune-`}},
	{"quartermaster top cards l40s-1", []string{`(?m)^l40s-1 +\S+ .* 1 +Unhealthy$`, `(?m)^l40s-1 +\S+ .* 1 +Healthy$`}},
	{"quartermaster report chargeback", []string{`(?m)^training +NVIDIA-H100-80GB-HBM3 .*EUR$`, `(?m)^inference +`, `(?m)^It adds up\.`}},
	{"kubectl label node t4-9 nvidia-device-enable=share", []string{`node/t4-9 labeled`, `node/t4-9 condition met`}},
}

// reasons are why the pods of objects/waiting.yaml wait, and the change that would help, where there is one.
var reasons = map[string][]string{
	"training/eight-cards": {`fit on 0 of 3[67] nodes`, `(?m)^10 +too few free cards +container main$`,
		`(?m)^2 +too small, even with nothing on it +container main: asks for 8 cards, the largest of them has 4$`,
		`lower nvidia\.com/gpu of container main from 8 to 6`},
	"inference/too-much-memory": {`fit on 0 of 3[67] nodes`, `too small, even with nothing on it +container main: asks for 51200 MiB of a card, the largest card of them has 4[56]\d+ MiB`,
		`lower tencent\.com/vcuda-memory of container main from 200 to 179`},
	"research/typing-mistake":   {`fits on no node: nvidia\.com/gpus: no node offers it and no one declares it\. Did you mean nvidia\.com/gpu\?`},
	"students/beyond-the-quota": {`Its namespace's quota refuses it: namespace students may use 2 cards, uses 2, asks for 1`},
	"inference/on-an-h200":      {`closed to it: 7 nodes: nodeSelector wants label nvidia\.com/gpu\.product=NVIDIA-H200`},
}

// trial is one `./dev try`. All that it starts has its mark in the environment.
type trial struct {
	root, folder, mark string
	command            *exec.Cmd
	screen             string // the file with all that it prints
	ended              chan error
}

func begin(t *testing.T) *trial {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "temporary"), 0o700); err != nil {
		t.Fatal(err)
	}
	return (&trial{root: root, folder: folder}).begin(t)
}

// begin one in the same folder.
func (r *trial) begin(t *testing.T) *trial {
	t.Helper()
	out := &trial{root: r.root, folder: r.folder, mark: fmt.Sprintf("QM_TRIAL=%d", time.Now().UnixNano()), screen: filepath.Join(t.TempDir(), "screen"), ended: make(chan error, 1)}
	screen, err := os.Create(out.screen)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	out.command = out.of("test/try/try.sh")
	out.command.Stdout, out.command.Stderr = screen, screen
	out.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // Ctrl-C reaches the group of a terminal
	if err := out.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { out.ended <- out.command.Wait() }()
	t.Cleanup(func() {
		if out.command.ProcessState == nil {
			syscall.Kill(out.command.Process.Pid, syscall.SIGTERM)
			<-out.ended
		}
	})
	return out
}

func (r *trial) temporary() string { return filepath.Join(r.folder, "temporary") }
func (r *trial) clusters() string  { return filepath.Join(r.folder, "clusters") }

// of is a command in the root of the tree, with clusters of this test's own.
func (r *trial) of(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(program, arguments...)
	command.Dir = r.root
	command.Env = append(os.Environ(), r.mark, "QUARTERMASTER_CLUSTERS="+r.clusters(), "TMPDIR="+r.temporary(), "TERM=dumb")
	return command
}

func (r *trial) printed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.screen)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(string(text), "")
}

// shows waits until it has printed that, and returns all that it has printed.
func (r *trial) shows(t *testing.T, text string) string {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		select {
		case err := <-r.ended:
			r.ended <- err
			t.Fatalf("it ended by itself: %v\n%s", err, r.printed(t))
		default:
		}
		if all := r.printed(t); strings.Contains(all, text) {
			return all
		}
	}
	t.Fatalf("it does not show %q after five minutes:\n%s", text, r.printed(t))
	return ""
}

// typed is what a shell answers that has typed the line before.
func (r *trial) typed(t *testing.T, first, line string) string {
	t.Helper()
	command := r.of("bash", "-c", first+"\n"+line)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// until the answer shows it, or 30 seconds are over.
func (r *trial) until(t *testing.T, first, line, pattern string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		if regexp.MustCompile(pattern).MatchString(r.typed(t, first, line)) {
			return
		}
	}
}

func matches(t *testing.T, line, answer string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(answer) {
			t.Errorf("%s does not show %q:\n%s", line, pattern, answer)
		}
	}
}

// left are the processes with the mark.
func (r *trial) left() (out []string) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(r.mark+"\x00")) {
			words, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			out = append(out, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return
}

func TestTheProductToTry(t *testing.T) {
	r := begin(t)
	screen := r.shows(t, "Everything stays until Ctrl-C.\n")
	first := regexp.MustCompile(`(?m)first: (eval .*)$`).FindStringSubmatch(screen)
	if first == nil {
		t.Fatalf("it does not say what another shell needs:\n%s", screen)
	}
	t.Run("the six commands", func(t *testing.T) { r.sixCommands(t, screen, first[1]) })
	t.Run("five pods wait for five reasons", func(t *testing.T) { r.fiveReasons(t, first[1]) })
	t.Run("the node goes on when its blocker ends", func(t *testing.T) {
		scale := regexp.MustCompile(`kubectl scale .*`).FindString(screen)
		answer := r.typed(t, first[1], scale+" && kubectl wait anode/v100-0 --for=jsonpath='{.status.actualMode}'=share --timeout=60s")
		matches(t, scale, answer, `v100-0 condition met`)
	})
	t.Run("the link signs in", func(t *testing.T) { r.console(t, screen) })
	t.Run("a second one says what to do", func(t *testing.T) {
		second, err := r.of("./dev", "try").CombinedOutput()
		matches(t, "./dev try", string(second), fmt.Sprintf(`runs already, as process %d\. Its console: http://`, r.command.Process.Pid), `--env`, `Ctrl-C`)
		if err == nil {
			t.Error("the second one ended with 0")
		}
	})
	t.Run("Ctrl-C takes all down", func(t *testing.T) { r.takesAllDown(t) })
	// At once, under the same name: what watched over the first cluster must not take down the second.
	t.Run("the next one starts, and Ctrl-C takes it down half-way", func(t *testing.T) {
		next := r.begin(t)
		next.shows(t, `each node has the plugin`)
		next.takesAllDown(t)
	})
}

func (r *trial) sixCommands(t *testing.T, screen, first string) {
	lines := regexp.MustCompile(`(?m)^  ((?:quartermaster|kubectl) .*)\n      (\S.*)$`).FindAllStringSubmatch(screen, -1)
	if len(lines) != len(known) {
		t.Fatalf("it prints %d commands, each with what it shows, and %d are known:\n%s", len(lines), len(known), screen)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line[1], known[i].command) {
			t.Errorf("command %d is %q, expected %q", i+1, line[1], known[i].command)
			continue
		}
		if strings.Contains(line[1], "chargeback") { // up to ten seconds ago, as its line says
			r.until(t, first, line[1], `(?m)^training `)
			r.until(t, first, line[1], `(?m)^inference `)
		}
		matches(t, line[1], r.typed(t, first, line[1]), known[i].shows...)
	}
	// What a person who reads the table sees of the fleet.
	rows := strings.Split(strings.TrimSpace(r.typed(t, first, "quartermaster inspect nodes --no-headers")), "\n")
	if len(rows) != 38 {
		t.Errorf("inspect nodes has %d rows, expected 38: the nodes with cards", len(rows))
	}
}

func (r *trial) fiveReasons(t *testing.T, first string) {
	waiting := strings.Fields(r.typed(t, first, "kubectl get pods -A --field-selector=status.phase=Pending -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {end}'"))
	if len(waiting) != len(reasons) {
		t.Errorf("%v wait, expected %d", waiting, len(reasons))
	}
	for _, pod := range waiting {
		if reasons[pod] == nil {
			t.Errorf("%s waits, and no one expects it to", pod)
			continue
		}
		line := "quartermaster explain pod " + pod
		answer := r.typed(t, first, line+"; echo \"exit code $?\"")
		matches(t, line, answer, append(reasons[pod], `exit code 3\n$`)...)
	}
}

func (r *trial) console(t *testing.T, screen string) {
	link := regexp.MustCompile(`(http://127\.0\.0\.1:\d+/console/)#token=(\S+)`).FindStringSubmatch(screen)
	if link == nil {
		t.Fatalf("no link:\n%s", screen)
	}
	ask := func(path, token string) (int, string) {
		request, err := http.NewRequest("GET", link[1]+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, _ := ask("", ""); status != 200 {
		t.Errorf("the page: %d", status)
	}
	if status, _ := ask("api/v1/fleet", ""); status != 401 {
		t.Errorf("the fleet without a token: %d", status)
	}
	if status, body := ask("api/v1/fleet", link[2]); status != 200 || !strings.Contains(body, `"h100-5"`) || !strings.Contains(body, `"ascend910b-1"`) {
		t.Errorf("the fleet: %d %.300s", status, body)
	}
}

func (r *trial) takesAllDown(t *testing.T) {
	if len(r.left()) < 8 {
		t.Errorf("its processes are not seen: %v", r.left())
	}
	if err := syscall.Kill(-r.command.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		t.Fatalf("it still runs a minute after Ctrl-C:\n%s", r.printed(t))
	}
	if code := r.command.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, expected 130:\n%s", code, r.printed(t))
	}
	// What watches over the cluster looks once a second.
	for deadline := time.Now().Add(5 * time.Second); len(r.left()) > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
	}
	for _, process := range r.left() {
		t.Errorf("left: %s", process)
	}
	for _, folder := range []string{r.temporary(), filepath.Join(r.clusters(), "try")} {
		if rest, _ := os.ReadDir(folder); len(rest) > 0 {
			t.Errorf("%s still has %s", folder, rest[0].Name())
		}
	}
}

// What is wrong is said before anything is built or started.
func TestWhatIsWrongIsSaidAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	root, _ := filepath.Abs("../..")
	for _, row := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"--port", port}, 1, "port " + port + " is taken by another program: choose another --port"},
		{[]string{"--port", "0"}, 2, "--port '0' is not a port"},
		{[]string{"--port"}, 2, "--port needs a value"},
		{[]string{"--k8s", "1.30"}, 2, "--k8s goes with --real"},
		{[]string{"--real", "--k8s", "1.29"}, 2, "--k8s '1.29' is not one of: 1.37, 1.36, 1.30"},
		{[]string{"--real"}, 1, "QM_PLUGINS names no folder"},
		{[]string{"--all"}, 2, "'--all' is not known; allowed are"},
		{[]string{"--env"}, 1, "no ./dev try runs here"},
		{[]string{"--help"}, 0, "usage: ./dev try"},
	} {
		command := exec.Command("./dev", append([]string{"try"}, row.arguments...)...)
		command.Dir = root
		command.Env = append(os.Environ(), "QUARTERMASTER_CLUSTERS="+t.TempDir(), "QM_PLUGINS=")
		out, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != row.code || !strings.Contains(string(out), row.says) {
			t.Errorf("./dev try %v: exit code %d, expected %d with %q: %s", row.arguments, code, row.code, row.says, out)
		}
	}
}
