// mutants puts faults into the product, one after the other, and says which test sees each of them. Faults are put into a copy of the tree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"quartermaster.io/test/repository"
)

const help = `usage: ./dev test --mutants [--with unit|changed|test] [--only ID,...] [--json FILE]
       ./dev test --mutants --random N [--seed S] [--with ...] [--json FILE]
       ./dev test --mutants --list | --check

A mutant is one deliberate fault in the product: a flipped condition, a lost write, a dropped check, an off-by-one, a wrong key. Each mutant
is put into a copy of the working tree (build/mutants/tree, removed at the end), which is built. Then the tests run until one of them fails:
  folder   the tests that stand in the mutant's folder under test/
  suite    the other tests of that program
  unit     ./dev test --unit
  changed  ./dev test --changed HEAD: also the lanes of what the mutant changes
  test     ./dev test
The table says which test saw the mutant and how far it had to go: a test that fails in a small set fails in each larger one.

  --with S     the last step: unit, changed (default) or test
  --only ID    only these of the list, separated by commas
  --random N   N random mutants instead of the list: a comparison, a logical operator, a negation or a call, anywhere in the product's C++
  --seed S     the same random mutants again, as long as the tree is the same
  --json FILE  the table as JSON
  --list       the mutants of the list, and what each breaks for people
  --check      do the mutants of the list still fit the product? (a second)

The list is test/mutants/mutants.txt. What the tests print is kept in build/mutants/logs. The first build takes as long as ./dev build dev.
Exit codes: 0 each mutant of the list was seen; 1 one was not, or does not fit or compile; 2 wrong usage, or the tests cannot run.
Random mutants that no test sees do not change the exit code, because some change nothing that anyone could see.
`

// usageError is answered with exit code 2.
type usageError struct{ error }

func wrong(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errUnseen is answered with exit code 1. All has been said.
var errUnseen = errors.New("")

type options struct {
	last        stage
	only        []string
	random      int
	seed        int64
	json        string
	list, check bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case err == nil:
		return
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "mutants: stopped")
		os.Exit(130)
	case errors.Is(err, errUnseen):
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "mutants: "+err.Error())
	var staleError staleError
	if errors.As(err, &staleError) {
		os.Exit(1)
	}
	os.Exit(2)
}

func parse(args []string) (options, error) {
	var out options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(&strings.Builder{})
	with := flags.String("with", "changed", "")
	only := flags.String("only", "", "")
	flags.IntVar(&out.random, "random", 0, "")
	flags.Int64Var(&out.seed, "seed", 0, "")
	flags.StringVar(&out.json, "json", "", "")
	flags.BoolVar(&out.list, "list", false, "")
	flags.BoolVar(&out.check, "check", false, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return out, err
		}
		return out, wrong("%v (see ./dev test --mutants --help)", err)
	}
	if flags.NArg() > 0 {
		return out, wrong("'%s' is not known (see ./dev test --mutants --help)", flags.Arg(0))
	}
	if *only != "" {
		out.only = strings.Split(*only, ",")
	}
	set := map[string]bool{}
	flags.Visit(func(entry *flag.Flag) { set[entry.Name] = true })
	switch {
	case !slices.Contains([]string{"unit", "changed", "test"}, *with):
		return out, wrong("--with '%s' is not known; allowed are unit, changed and test", *with)
	case set["random"] && out.random < 1:
		return out, wrong("--random needs a number from 1")
	case set["random"] && set["only"]:
		return out, wrong("--random and --only exclude each other")
	case out.check && flags.NFlag() > 1:
		return out, wrong("--check stands alone")
	case set["seed"] && !set["random"]:
		return out, wrong("--seed is for --random N")
	}
	out.last = stage(*with)
	if !set["seed"] {
		out.seed = time.Now().Unix()
	}
	return out, nil
}

func run(ctx context.Context, args []string) error {
	options, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(help)
		return nil
	}
	if err != nil {
		return err
	}
	root := repository.Root()
	all, err := readList(filepath.Join(root, listFile))
	if err != nil {
		return err
	}
	if options.random == 0 {
		if err := check(root, all); err != nil {
			return err
		}
	}
	if options.check {
		fmt.Printf("mutants: all %d fit the product\n", len(all))
		return nil
	}
	if options.list {
		for _, mutant := range all {
			fmt.Printf("%s  %s\n    %s\n", mutant.ID, mutant.File, mutant.Breaks)
		}
		return nil
	}
	chosen, err := choose(all, options.only)
	if err != nil {
		return err
	}
	return runAll(ctx, root, chosen, options)
}

func choose(all []mutant, ids []string) ([]mutant, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var out []mutant
	for _, id := range ids {
		index := slices.IndexFunc(all, func(mutant mutant) bool { return mutant.ID == id })
		if index < 0 {
			return nil, wrong("--only: the list has no mutant '%s'; ./dev test --mutants --list shows it", id)
		}
		out = append(out, all[index])
	}
	return out, nil
}

func runAll(ctx context.Context, root string, fixed []mutant, options options) error {
	report := report{Seed: options.seed, With: options.last, total: len(fixed), path: options.json}
	unlock, err := lock(root)
	if err != nil {
		return err
	}
	defer unlock()
	if options.json != "" { // a path that cannot be written is said now, not after an hour
		if err := report.write(); err != nil {
			return wrong("--json: %v", err)
		}
	}
	tree, err := newTree(ctx, root)
	if err != nil {
		return err
	}
	defer tree.remove()
	next := func() (mutant, bool) {
		if len(fixed) == 0 {
			return mutant{}, false
		}
		first := fixed[0]
		fixed = fixed[1:]
		return first, true
	}
	upcoming := fixed
	if options.random > 0 {
		sites, err := allSites(ctx, tree.root)
		if err != nil {
			return err
		}
		say("seed %d: %d places for a fault in the product", options.seed, len(sites))
		drawn := draw(sites, options.seed)
		report.total = options.random
		upcoming = drawn[:min(len(drawn), options.random)]
		next = func() (mutant, bool) { // those that do not compile do not count
			if report.judged() == options.random || len(report.Mutants) >= min(len(drawn), 4*options.random) {
				return mutant{}, false
			}
			return drawn[len(report.Mutants)], true
		}
	}
	judge, err := newJudge(ctx, tree, options.last, upcoming)
	if err != nil {
		return err
	}
	for mutant, more := next(); more; mutant, more = next() {
		result, err := judge.try(ctx, mutant)
		if err != nil {
			return err
		}
		report.add(result)
	}
	report.print(os.Stdout)
	if err := report.write(); err != nil {
		return err
	}
	if options.random == 0 && report.seen() < len(report.Mutants) {
		return errUnseen
	}
	return nil
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "\033[1m==>\033[0m "+format+"\n", args...)
}
