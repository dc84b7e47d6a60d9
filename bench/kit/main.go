// Package kit is what the benches share: how they start, the control plane they run against, and the programs they measure.
package kit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Main runs a bench. Exit code 2: the arguments are wrong; 1: the run failed.
func Main[Options any](arguments []string, parse func([]string) (Options, error), run func(context.Context, Options) error) {
	options, err := parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		Say("%v", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options); err != nil {
		Say("%v", err)
		os.Exit(1)
	}
}

// Parse reads options; there are no other arguments.
func Parse(flags *flag.FlagSet, arguments []string) error {
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	is := func(name string) bool {
		option := flags.Lookup(name)
		return option != nil && option.Value.String() == "true"
	}
	if is("record") && (is("short") || is("end-to-end")) {
		return errors.New("--record is for a whole run: omit --short and --end-to-end")
	}
	return nil
}

// SetDefaults gives these values to the options that have none yet.
func SetDefaults(flags *flag.FlagSet, values map[string]string) error {
	given := map[string]bool{}
	flags.Visit(func(option *flag.Flag) { given[option.Name] = true })
	for name, value := range values {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Say writes a line to stderr.
func Say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arguments...)
}

// LoadAverage of the machine over 1, 5 and 15 minutes.
func LoadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// Milliseconds of a duration, with fractions.
func Milliseconds(duration time.Duration) float64 {
	return float64(duration) / float64(time.Millisecond)
}

// Pause waits; it ends early, with an error, when the context does.
func Pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// InTurn is A B C in even rounds and C B A in odd ones: what drifts, drifts for all.
func InTurn[T any](order []T, round int) []T {
	turn := slices.Clone(order)
	if round%2 != 0 {
		slices.Reverse(turn)
	}
	return turn
}

// Each calls `do` for 0 to count-1 from several workers, until one call fails.
func Each(count, workers int, do func(int) error) error {
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := int(next.Add(1) - 1); i < count && failure.Load() == nil; i = int(next.Add(1) - 1) {
				if err := do(i); err != nil {
					failure.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	running.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}
