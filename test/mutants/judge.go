package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stage says how far the tests had to go.
type stage string

const (
	folderStage  stage = "folder"
	suiteStage   stage = "suite"
	unitStage    stage = "unit"
	changedStage stage = "changed"
	testStage    stage = "test"
)

const (
	// A suite that takes so much longer than without a fault does not end.
	slowest, leastLimit = 4, time.Minute
	longestUnit         = 30 * time.Minute
	longestLanes        = 2 * time.Hour
	// For what a failed test prints after ctest has said that it failed.
	lastWords = 3 * time.Second
	// For lanes to take down their clusters.
	patience = 90 * time.Second
)

// verdict of a mutant.
type verdict string

const (
	seen       verdict = "seen"
	notSeen    verdict = "NOT SEEN"
	noCompile  verdict = "does not compile"
	notOfFault verdict = "UNCLEAR" // the test fails without the fault, too, or not each time with it
)

// selection is a part of the tests of one program; without a filter all of them.
type selection struct{ suite, filter string }

type judge struct {
	tree   *tree
	last   stage
	suites []string                 // the programs of unit tests
	usual  map[string]time.Duration // of a suite without a fault
}

// newJudge builds the suites of the mutants and runs them once: they must pass, and what they take is the measure for one that hangs.
func newJudge(ctx context.Context, tree *tree, last stage, upcoming []mutant) (*judge, error) {
	lists, err := os.ReadFile(filepath.Join(tree.root, "test/CMakeLists.txt"))
	if err != nil {
		return nil, err
	}
	out := &judge{tree: tree, last: last, usual: map[string]time.Duration{}}
	for _, match := range regexp.MustCompile(`(?m)^qm_suite\((\w+)`).FindAllStringSubmatch(string(lists), -1) {
		out.suites = append(out.suites, match[1])
	}
	var needed []string
	for _, mutant := range upcoming {
		for _, near := range out.near(mutant.File) {
			needed = append(needed, near.suite)
		}
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	log, err := out.log("without-a-fault")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	say("building without a fault: %s", or(strings.Join(targets(needed), ", "), "all"))
	if built, err := out.build(ctx, log, needed); err != nil || !built {
		return nil, errors.Join(err, fmt.Errorf("the tree does not build without a fault, see %s", log.Name()))
	}
	for _, suite := range needed {
		if err := out.measure(ctx, log, suite); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// measure runs a suite, unless that has been done.
func (judge *judge) measure(ctx context.Context, log *os.File, suite string) error {
	if judge.usual[suite] > 0 {
		return nil
	}
	say("running %s without a fault", suite)
	began := time.Now()
	test, err := judge.runSelection(ctx, log, selection{suite: suite}, longestUnit)
	if err == nil && test != "" {
		err = fmt.Errorf("%s fails without a fault, see %s", test, log.Name())
	}
	judge.usual[suite] = time.Since(began)
	return err
}

func targets(suites []string) []string {
	var out []string
	for _, suite := range suites {
		out = append(out, suite+"_test")
	}
	return out
}

func (judge *judge) log(name string) (*os.File, error) {
	folder := filepath.Join(filepath.Dir(judge.tree.root), "logs")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(folder, name+".log"))
}

// try puts the mutant in, runs tests until one fails, and takes it out again.
func (judge *judge) try(ctx context.Context, mutant mutant) (result, error) {
	began := time.Now()
	log, err := judge.log(mutant.ID)
	if err != nil {
		return result{}, err
	}
	defer log.Close()
	line, takeOut, err := judge.tree.put(mutant)
	if err != nil {
		return result{}, err
	}
	out := result{ID: mutant.ID, File: mutant.File, Line: line, Change: changeOf(mutant), Breaks: mutant.Breaks, Log: log.Name()}
	out.Verdict, out.Stage, out.Test, err = judge.find(ctx, log, mutant)
	if err == nil && out.Verdict == seen {
		err = judge.again(ctx, log, &out)
	}
	err = errors.Join(err, takeOut())
	if err == nil && out.Verdict == seen && out.Stage != folderStage && out.Stage != suiteStage {
		err = judge.confirm(ctx, log, &out)
	}
	out.Seconds = time.Since(began).Round(time.Second).Seconds()
	return out, err
}

func (judge *judge) find(ctx context.Context, log *os.File, mutant mutant) (verdict, stage, string, error) {
	near := judge.near(mutant.File)
	var suites []string
	for _, part := range near {
		suites = append(suites, part.suite)
	}
	if built, err := judge.build(ctx, log, suites); err != nil || !built {
		return noCompile, "", "", err
	}
	for _, step := range []stage{folderStage, suiteStage} {
		for _, part := range near {
			if step == suiteStage {
				part.filter = "-" + part.filter
			}
			limit := max(slowest*judge.usual[part.suite], leastLimit)
			if test, err := judge.runSelection(ctx, log, part, limit); err != nil || test != "" {
				return seen, step, test, err
			}
		}
	}
	steps := []stage{unitStage}
	if judge.last != unitStage {
		steps = append(steps, judge.last)
	}
	for _, step := range steps {
		if built, err := judge.build(ctx, log, nil); err != nil || !built {
			return noCompile, "", "", err
		}
		if test, err := judge.runEntries(ctx, log, step, ""); err != nil || test != "" {
			return seen, step, test, err
		}
	}
	return notSeen, "", "", nil
}

// again runs what has failed once more with the fault in: a test may have failed because the machine is busy.
func (judge *judge) again(ctx context.Context, log *os.File, out *result) error {
	entry, name, _ := strings.Cut(out.Test, ": ")
	var test string
	var err error
	if out.Stage == folderStage || out.Stage == suiteStage {
		name, _, _ = strings.Cut(or(name, entry), " ")
		for _, part := range judge.near(out.File) {
			if test == "" && err == nil {
				test, err = judge.runSelection(ctx, log, selection{part.suite, name}, max(slowest*judge.usual[part.suite], leastLimit))
			}
		}
	} else {
		test, err = judge.runEntries(ctx, log, out.Stage, entry)
	}
	if err == nil && test == "" {
		out.Verdict = notOfFault
	}
	return err
}

// confirm runs the failed entry of ctest without the fault. Suites have passed without a fault already.
func (judge *judge) confirm(ctx context.Context, log *os.File, out *result) error {
	entry, _, _ := strings.Cut(out.Test, ": ")
	test, err := judge.runEntries(ctx, log, out.Stage, entry)
	if err == nil && test != "" {
		out.Verdict = notOfFault
	}
	return err
}

// build returns false where the mutant does not compile. Without suites all is built.
func (judge *judge) build(ctx context.Context, log io.Writer, suites []string) (bool, error) {
	_, rc, err := judge.command(ctx, log, false, append([]string{"./dev", "build", "dev"}, targets(suites)...)...)
	return rc == 0, errors.Join(err, ctx.Err())
}

// runSelection returns the first test that fails; empty where all pass.
func (judge *judge) runSelection(ctx context.Context, log io.Writer, selection selection, limit time.Duration) (string, error) {
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	arguments := []string{"build/dev/" + selection.suite + "_test", "--gtest_brief=0"} // to know what ran when it crashes
	if selection.filter != "" {
		arguments = append(arguments, "--gtest_filter="+selection.filter)
	}
	out, rc, err := judge.command(limited, log, false, arguments...)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	switch {
	case limited.Err() != nil:
		return or(out.test("(does not end)"), selection.suite), nil
	case err != nil || rc == 0:
		return "", err
	}
	return or(out.test("(crashes)"), selection.suite+" (crashes)"), nil
}

// runEntries runs ./dev test of the stage until an entry of ctest fails, and returns its name; only the named entry where there is one.
func (judge *judge) runEntries(ctx context.Context, log io.Writer, stage stage, entry string) (string, error) {
	arguments, limit := []string{"./dev", "test"}, longestLanes
	switch {
	case stage == unitStage:
		arguments, limit = append(arguments, "--unit"), longestUnit
	case stage == changedStage && entry == "":
		arguments = append(arguments, "--changed", "HEAD")
	}
	if entry != "" {
		arguments = append(arguments, "-R", "^"+entry+"$")
	}
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	out, rc, err := judge.command(limited, log, true, arguments...)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if out.entry != "" {
		return out.test("(crashes)"), nil
	}
	if limited.Err() != nil {
		return fmt.Sprintf("%s: does not end in %v", strings.Join(arguments, " "), limit), nil
	}
	if err == nil && rc != 0 {
		err = fmt.Errorf("'%s' failed, and no test of it: see the end of its log", strings.Join(arguments, " "))
	}
	return "", err
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// command runs a program in the tree. It is interrupted, with all that it has started, when the context ends, and soon after an entry of
// ctest has failed.
func (judge *judge) command(ctx context.Context, log io.Writer, byCTest bool, arguments ...string) (*output, int, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	fmt.Fprintf(log, "\n$ %s\n", strings.Join(arguments, " "))
	reader := &reader{output: output{byCTest: byCTest}, log: log, stop: stop}
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Path = filepath.Join(judge.tree.root, arguments[0])
	command.Dir = judge.tree.root
	command.Stdout, command.Stderr = reader, reader
	// A fault may make a loop allocate without end.
	command.Env = append(os.Environ(), "GTEST_FAIL_FAST=1", "ASAN_OPTIONS="+os.Getenv("ASAN_OPTIONS")+":hard_rss_limit_mb=6000")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = patience
	err := command.Run()
	if command.Process == nil {
		return &reader.output, -1, err
	}
	syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // what did not listen
	reader.finish()
	return &reader.output, command.ProcessState.ExitCode(), nil
}

// reader writes output into the log and reads its lines.
type reader struct {
	output
	log    io.Writer
	stop   func()
	lock   sync.Mutex
	rest   []byte
	isOver bool
}

func (reader *reader) Write(data []byte) (int, error) {
	reader.lock.Lock()
	defer reader.lock.Unlock()
	reader.log.Write(data)
	reader.rest = append(reader.rest, data...)
	for {
		line, rest, found := bytes.Cut(reader.rest, []byte("\n"))
		if !found {
			break
		}
		reader.read(string(line))
		reader.rest = rest
	}
	if reader.byCTest && reader.entry != "" && !reader.isOver {
		reader.isOver = true
		time.AfterFunc(lastWords, reader.stop)
	}
	return len(data), nil
}

func (reader *reader) finish() {
	reader.lock.Lock()
	defer reader.lock.Unlock()
	reader.read(string(reader.rest))
}

var testName = regexp.MustCompile(`(?m)^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),`)

// near selects the tests next to a file: those in its folder under test/, else those that name it.
func (judge *judge) near(file string) []selection {
	var files []string
	if beside, _ := filepath.Glob(filepath.Join(judge.tree.root, "test", path.Dir(file), "*_test.cpp")); len(beside) > 0 {
		files = beside
	} else {
		files = judge.naming(file)
	}
	filters := map[string][]string{}
	for _, name := range files {
		inTest, _ := filepath.Rel(filepath.Join(judge.tree.root, "test"), name)
		suite, _, _ := strings.Cut(inTest, "/")
		if !slices.Contains(judge.suites, suite) {
			continue
		}
		content, _ := os.ReadFile(name)
		for _, match := range testName.FindAllSubmatch(content, -1) {
			filters[suite] = append(filters[suite], string(match[1])+".*", "*/"+string(match[1])+".*")
		}
	}
	var out []selection
	for suite, parts := range filters {
		slices.Sort(parts)
		out = append(out, selection{suite, strings.Join(slices.Compact(parts), ":")})
	}
	slices.SortFunc(out, func(left, right selection) int { return strings.Compare(left.suite, right.suite) })
	return out
}

// naming finds the test files that include the header of the file; of what is not C++ those that read its folder.
func (judge *judge) naming(file string) []string {
	needle := `"` + strings.TrimSuffix(file, ".cpp") + `.hpp"`
	if !strings.HasSuffix(file, ".cpp") {
		parts := strings.Split(file, "/")
		needle = `"` + strings.Join(parts[:min(2, len(parts)-1)], "/")
	}
	var out []string
	filepath.WalkDir(filepath.Join(judge.tree.root, "test"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.cpp") {
			return nil
		}
		if content, _ := os.ReadFile(name); bytes.Contains(content, []byte(needle)) {
			out = append(out, name)
		}
		return nil
	})
	return out
}
