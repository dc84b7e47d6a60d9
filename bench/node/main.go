// How long pods with cards and with shares take to run on one real node: by our own plugin, by NVIDIA's and by HAMi's, in turn. README.md in this
// folder says what is real and what is played; bench/node/run.sh builds everything and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	rounds, shares   int
	rest             time.Duration
	short, keep      bool
	output           kit.Output
	release, standin string
	plugins          string
	nvidia, hami     bool // are there
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "one round of a few pods; shows that everything runs")
	flags.IntVar(&o.rounds, "rounds", 9, "how often each plugin has its turn with cards, and with shares")
	flags.IntVar(&o.shares, "shares", 40, "pods of a round with shares; those of a round with cards are eight")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long CPU is measured while nothing happens")
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster running")
	o.output.Flags(flags)
	flags.StringVar(&o.release, "release", "build/release", "folder of quartermaster")
	flags.StringVar(&o.standin, "standin", "build/dev/nvml", "folder of the stand-ins for the card and for MPS (./dev build dev nvml_standin nvml_smi mps_control)")
	flags.StringVar(&o.plugins, "plugins", os.Getenv("QM_PLUGINS"), "folder of the others' plugins (test/plugins/README.md); of QM_PLUGINS, where that is set")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		if err := kit.SetDefaults(flags, map[string]string{"rounds": "1", "shares": "8", "rest": "3s"}); err != nil {
			return o, err
		}
	}
	if o.shares < 8 || o.shares > 80 {
		return o, errors.New("-shares is 8 to 80: a card has ten")
	}
	if o.rounds < 1 || o.rest < time.Second {
		return o, errors.New("-rounds is at least 1, -rest is at least 1s")
	}
	for _, folder := range []*string{&o.release, &o.standin, &o.plugins} {
		if *folder == "" {
			continue
		}
		var err error
		if *folder, err = filepath.Abs(*folder); err != nil {
			return o, err
		}
	}
	o.nvidia, o.hami = o.has("nvidia-device-plugin"), o.has("hami/nvidia-device-plugin")
	if flags.Lookup("record").Value.String() == "true" && !(o.nvidia && o.hami) {
		return o, errors.New("--record is for a run next to NVIDIA's and HAMi's plugin: QM_PLUGINS does not name a folder with both (test/plugins/README.md)")
	}
	return o, nil
}

// has this program of the others.
func (o options) has(program string) bool {
	if o.plugins == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(o.plugins, program))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func main() { kit.Main(os.Args[1:], parse, run) }

func run(ctx context.Context, o options) error {
	before := kit.LoadAverage()
	var absent []string
	if !o.nvidia {
		absent = append(absent, "NVIDIA's plugin")
	}
	if !o.hami {
		absent = append(absent, "HAMi's plugin")
	}
	if absent != nil {
		kit.Say("no %s: QM_PLUGINS names no folder with it (test/plugins/README.md), and its rows are absent", strings.Join(absent, ", no "))
	}
	rows, err := measure(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\nnode: %d rounds of %d pods with a card each, and of %d with a share each, on one node with eight cards; %s of rest\n", o.rounds, cardsOfNode, o.shares, o.rest)
	fmt.Printf("load average before: %s, at the end: %s; %d cores\n\n", before, kit.LoadAverage(), len(kit.Cores))
	figures.FormOf("short", o.short).Report(rows, "time")
	return o.output.Write("node", form(before), rows)
}

// form of a whole run: a machine that does other work says so.
func form(before string) string {
	minute, _, _ := strings.Cut(before, " ")
	if load, err := strconv.ParseFloat(minute, 64); err == nil && load >= 1 {
		return "full, with other work (load " + minute + ")"
	}
	return "full"
}
