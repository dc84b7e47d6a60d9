// How quickly programs answer that share one card: alone, in turns, by MPS, and by MPS with the limits that our plugin gives to shares. README.md in
// this folder says what is measured; bench/card/run.sh builds everything and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	clients, rounds           int
	seconds                   float64
	request, warmUp           time.Duration
	short, dry                bool
	card, json                string
	release, client, standins string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("card", flag.ContinueOnError)
	flags.BoolVar(&o.dry, "dry", false, "play card, driver and MPS: it shows what the bench does, on a machine without a card")
	flags.BoolVar(&o.short, "short", false, "one round of a second each; shows that everything runs")
	flags.IntVar(&o.clients, "clients", 4, "programs that share the card")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each way has its turn")
	flags.Float64Var(&o.seconds, "seconds", 10, "how long a turn is")
	flags.DurationVar(&o.request, "request", 2*time.Millisecond, "how long a request takes a program that is alone")
	flags.DurationVar(&o.warmUp, "warm-up", 10*time.Second, "until all programs of a turn have the driver's answer")
	flags.StringVar(&o.card, "card", "", "UUID of the card, as nvidia-smi -L says it (default: the first)")
	flags.StringVar(&o.json, "json", "", "write the figures to this file")
	flags.StringVar(&o.release, "release", "build/release", "folder of quartermaster")
	flags.StringVar(&o.client, "client", "build/release/card_client", "program that uses the card")
	flags.StringVar(&o.standins, "standin", "build/dev/nvml", "with -dry: folder of the stand-ins (./dev build dev nvml_standin mps_control)")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short || o.dry {
		defaults := map[string]string{"rounds": "1", "seconds": "1"}
		if o.dry {
			defaults["warm-up"] = "1s"
		}
		if err := kit.SetDefaults(flags, defaults); err != nil {
			return o, err
		}
	}
	if o.clients < 2 || o.clients > 48 {
		return o, errors.New("-clients is 2 to 48, as many as MPS takes on a card of Pascal and newer")
	}
	if o.rounds < 1 || o.seconds < 0.5 || o.request < 100*time.Microsecond || o.request > time.Second || o.warmUp < time.Second {
		return o, errors.New("-rounds is at least 1, -seconds at least 0.5, -request 100us to 1s, -warm-up at least 1s")
	}
	for _, path := range []*string{&o.release, &o.client, &o.standins} {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	if os.Geteuid() != 0 {
		return o, errors.New("not root: MPS wants the card in EXCLUSIVE_PROCESS, which root may set")
	}
	return o, nil
}

func main() { kit.Main(os.Args[1:], parse, run) }

func run(ctx context.Context, o options) error {
	bed, err := openBed(ctx, o)
	if err != nil {
		return err
	}
	defer bed.close()
	fmt.Printf("\ncard: %s %s, driver %s; %d programs, %d rounds of %g s\n\n", bed.facts.Model, bed.facts.UUID, bed.driver, o.clients, o.rounds, o.seconds)
	rows, err := bed.measure(ctx)
	if err != nil {
		return err
	}
	form := figures.FormOf("short", o.short)
	if o.dry {
		form = "dry"
	}
	form.Report(rows, "card")
	if err := figures.WriteJSON(o.json, rows); err != nil {
		return err
	}
	return figures.Check(rows)
}
