package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// facts of a card, as the agent reports them.
type facts struct {
	UUID, Model string
	MemoryMiB   int
	Mig         bool
}

// bed is the card, and what its ways to be shared need.
type bed struct {
	options
	facts
	driver, folder  string
	multiprocessors int
	keeper          *kit.Process // of MPS, while it is on
}

// way to share the card.
type way struct {
	name     string
	programs int
	mps      bool
	limits   bool
}

// load of a request: its blocks, and the steps of each with which it takes as long as it is to.
type load struct {
	name          string
	blocks, steps int
}

func openBed(ctx context.Context, o options) (*bed, error) {
	b := &bed{options: o}
	text, err := b.output(ctx, exec.CommandContext(ctx, filepath.Join(o.release, "quartermaster"), "agent", "--print"))
	if err != nil {
		return nil, err
	}
	var report struct {
		Cards  []facts
		Driver struct{ Version string }
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return nil, fmt.Errorf("quartermaster agent --print: %w", err)
	}
	for _, card := range report.Cards {
		if b.facts.UUID == "" && (o.card == "" || o.card == card.UUID) {
			b.facts, b.driver = card, report.Driver.Version
		}
	}
	switch {
	case len(report.Cards) == 0:
		return nil, fmt.Errorf("no card of NVIDIA here that the driver answers for; -dry plays one")
	case b.facts.UUID == "":
		return nil, fmt.Errorf("-card: there is no %s; quartermaster agent --print has the cards", o.card)
	case b.facts.Mig:
		return nil, fmt.Errorf("card %s is cut by MIG: name another with -card", b.facts.UUID)
	}
	if b.folder, err = os.MkdirTemp("", "card-"); err != nil { // short: sockets are in it
		return nil, err
	}
	return b, os.Chmod(b.folder, 0o755)
}

func (b *bed) close() {
	b.stopMps()
	os.RemoveAll(b.folder)
}

// output of a program that ends by itself.
func (b *bed) output(ctx context.Context, command *exec.Cmd) (string, error) {
	var said bytes.Buffer
	command.Stderr = &said
	command.Env = b.environment(command.Env...)
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return string(text), nil
}

// environment of all programs: without what a shell has set for MPS.
func (b *bed) environment(more ...string) (out []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUDA_") {
			out = append(out, variable)
		}
	}
	if b.dry {
		out = append(out, "LD_LIBRARY_PATH="+b.standins, "PATH="+b.standins+":"+os.Getenv("PATH"), "QM_NVML_FIXTURE=test/nvml/fixtures/t4.json")
	}
	return append(out, more...)
}

// program on the card, in this way.
func (b *bed) program(ctx context.Context, is way, arguments ...string) *exec.Cmd {
	if b.dry {
		arguments = append([]string{"--dry"}, arguments...)
	}
	command := exec.CommandContext(ctx, b.client, arguments...)
	if is.mps {
		command.Env = append(command.Env, "CUDA_MPS_PIPE_DIRECTORY="+filepath.Join(b.folder, "mps", b.facts.UUID, "pipe"))
	} else {
		command.Env = append(command.Env, "CUDA_VISIBLE_DEVICES="+b.facts.UUID)
	}
	if is.limits { // as agent/card_plugin.cpp gives them
		command.Env = append(command.Env, fmt.Sprint("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=", b.cores()), fmt.Sprintf("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=%dM", b.memoryMiB()))
	}
	return command
}

// cores and memory of a share: the programs have all of the card together.
func (b *bed) cores() int     { return 100 / b.clients }
func (b *bed) memoryMiB() int { return b.facts.MemoryMiB / b.clients }

// startMps as a node has it: `quartermaster agent mps`.
func (b *bed) startMps(ctx context.Context) error {
	if b.keeper != nil {
		return nil
	}
	command := exec.Command(filepath.Join(b.release, "quartermaster"), "agent", "mps", "--folder", filepath.Join(b.folder, "mps"))
	command.Env = b.environment()
	var err error
	if b.keeper, err = kit.Start(command); err != nil {
		return err
	}
	for until := time.Now().Add(30 * time.Second); ; {
		if err := b.keeper.Alive(); err != nil {
			return err
		}
		for _, line := range strings.Split(b.keeper.Tail.String(), "\n") {
			if strings.Contains(line, "a card is ready for shares by MPS") && strings.Contains(line, b.facts.UUID) {
				return nil
			}
		}
		if time.Now().After(until) {
			return fmt.Errorf("MPS does not take the card: %s", b.keeper.Tail)
		}
		if err := kit.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// stopMps, which gives the cards back.
func (b *bed) stopMps() {
	if b.keeper != nil {
		b.keeper.Stop(syscall.SIGTERM)
	}
	b.keeper = nil
}

// numbers after the word of the line that begins with it.
func numbers(text, word string, count int) (out []float64, err error) {
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) != count+1 || fields[0] != word {
			continue
		}
		for _, field := range fields[1:] {
			number, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, err
			}
			out = append(out, number)
		}
		return out, nil
	}
	return nil, fmt.Errorf("no line %q in %q", word, text)
}

// asks a program that is alone on the card.
func (b *bed) asks(ctx context.Context, is way, word string, count int, arguments ...string) ([]float64, error) {
	text, err := b.output(ctx, b.program(ctx, is, arguments...))
	if err != nil {
		return nil, err
	}
	return numbers(text, word, count)
}

func (b *bed) measure(ctx context.Context) ([]figures.Row, error) {
	alone := way{name: "alone", programs: 1}
	whole, err := b.asks(ctx, alone, "took", 3, "take")
	if err != nil {
		return nil, err
	}
	b.multiprocessors = int(whole[1])
	loads := []load{{name: "wide", blocks: 8 * b.multiprocessors}, {name: "narrow", blocks: max(1, b.multiprocessors/(2*b.clients))}}
	for i := range loads {
		is, err := b.asks(ctx, alone, "steps", 1, "calibrate", "--blocks", fmt.Sprint(loads[i].blocks), "--time", fmt.Sprint(b.request.Microseconds()))
		if err != nil {
			return nil, err
		}
		loads[i].steps = int(is[0])
	}
	fmt.Printf("%d multiprocessors; a wide request is %d blocks of %d steps, a narrow one %d of %d\n", b.multiprocessors, loads[0].blocks, loads[0].steps, loads[1].blocks, loads[1].steps)

	// Without MPS first: while it keeps the card, programs that pass it by get nothing.
	ways := []way{alone, {name: "in turns", programs: b.clients}, {name: "MPS", programs: b.clients, mps: true}, {name: "shares", programs: b.clients, mps: true, limits: true}}
	found := map[string]figures.Series{}
	for _, load := range loads {
		for _, is := range ways {
			found[load.name+is.name] = figures.Series{}
		}
	}
	for round := range b.rounds {
		for _, is := range ways {
			if is.mps {
				err = b.startMps(ctx)
			} else {
				b.stopMps()
			}
			if err != nil {
				return nil, err
			}
			for _, load := range loads {
				if err := b.turn(ctx, is, load, found[load.name+is.name]); err != nil {
					return nil, fmt.Errorf("round %d, %s, %s requests: %w", round+1, is.name, load.name, err)
				}
			}
		}
	}
	rows := b.rows(loads, ways, found)
	held, err := b.limits(ctx, ways[len(ways)-1])
	return append(rows, held...), err
}

// turn of all programs of a way at once.
func (b *bed) turn(ctx context.Context, is way, load load, found figures.Series) error {
	begin := time.Now().Add(b.warmUp)
	texts := make([]string, is.programs)
	err := kit.Each(is.programs, is.programs, func(i int) (err error) {
		texts[i], err = b.output(ctx, b.program(ctx, is, "answer", "--blocks", fmt.Sprint(load.blocks), "--steps", fmt.Sprint(load.steps),
			"--begin", fmt.Sprint(begin.UnixMilli()), "--seconds", fmt.Sprint(b.seconds)))
		return err
	})
	if err != nil {
		return err
	}
	var rates, medians, slow []float64
	var sum float64
	for _, text := range texts {
		values, err := numbers(text, "answered", 3)
		if err != nil {
			return err
		}
		rates, medians, slow = append(rates, values[0]/b.seconds), append(medians, values[1]), append(slow, values[2])
		sum += values[0] / b.seconds
	}
	found.Add("requests a second", sum)
	found.Add("p50", figures.Median(medians))
	found.Add("p99 of the slowest program", figures.Quantile(slow, 1))
	found.Add("slowest by quickest program", figures.Quantile(rates, 0)/figures.Quantile(rates, 1))
	return nil
}

// rows: each way next to a program that is alone.
func (b *bed) rows(loads []load, ways []way, found map[string]figures.Series) (out []figures.Row) {
	units := []struct{ name, unit string }{{"requests a second", "1/s"}, {"p50", "ms"}, {"p99 of the slowest program", "ms"}, {"slowest by quickest program", ""}}
	for _, load := range loads {
		for _, is := range ways[1:] {
			for _, value := range units {
				out = append(out, figures.Compare(fmt.Sprintf("%s, %s: %s", load.name, is.name, value.name), value.unit, 0, found[load.name+is.name], found[load.name+ways[0].name], value.name))
			}
		}
	}
	return out
}

// limits of a share, as a program meets them: none passes what the plugin has given.
func (b *bed) limits(ctx context.Context, shares way) ([]figures.Row, error) {
	values, err := b.asks(ctx, shares, "took", 3, "take", "--chunk", "16")
	if err != nil {
		return nil, err
	}
	most := b.multiprocessors*b.cores()/100 + 1
	fmt.Printf("a share of %d %% and %d MiB: %d of %d multiprocessors, and %.0f MiB could be taken\n\n", b.cores(), b.memoryMiB(), int(values[1]), b.multiprocessors, values[0])
	return []figures.Row{figures.Absolute("share: memory that could be taken", "MiB", float64(b.memoryMiB()), []float64{values[0]}),
		figures.Absolute("share: multiprocessors", "", float64(most), []float64{values[1]})}, nil
}
