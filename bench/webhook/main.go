// What a call of an admission webhook costs: ours against one on controller-runtime that does the same, from the same rules, on the same
// review. README.md in this folder says what is measured and how; bench/webhook/run.sh builds and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"quartermaster.io/bench/figures"
)

type options struct {
	pairs, rate, connections, size, keys int
	span, full                           time.Duration
	short                                bool
	json, release, peers                 string
	callerCore, serverCore               int
}

func parse(arguments []string) (options, error) {
	var o options
	first, second := cores()
	flags := flag.NewFlagSet("webhook", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "2 pairs of a second; no verdict is taken from it")
	flags.IntVar(&o.pairs, "pairs", 7, "alternating runs of each program")
	flags.IntVar(&o.rate, "rate", 500, "calls a second")
	flags.DurationVar(&o.span, "span", 10*time.Second, "length of the phase at that rate")
	flags.DurationVar(&o.full, "full", 5*time.Second, "length of the phase in which each connection calls again at once")
	flags.IntVar(&o.connections, "connections", 4, "kept TLS connections")
	flags.IntVar(&o.size, "size", 11_273, "bytes of the review, about")
	flags.IntVar(&o.keys, "keys", 200, "declared keys")
	flags.StringVar(&o.json, "json", "", "write the figures to this file")
	flags.StringVar(&o.release, "release", "build/release", "folder of webhook_server")
	flags.StringVar(&o.peers, "peers", "build/bench-go", "folder of the peer")
	flags.IntVar(&o.callerCore, "caller-core", first, "core of this program, which calls")
	flags.IntVar(&o.serverCore, "server-core", second, "core of the webhook under measurement")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.short {
		for name, set := range map[string]func(){"pairs": func() { o.pairs = 2 }, "span": func() { o.span = time.Second }, "full": func() { o.full = time.Second }} {
			if !given[name] {
				set()
			}
		}
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arguments...)
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// contender is a webhook and what was measured of it.
type contender struct {
	name    string
	command []string
	found   figures.Series
}

func run(ctx context.Context, o options) error {
	pinSelf(o.callerCore)
	folder, err := os.MkdirTemp("", "quartermaster-webhook-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	trust, err := certificates(folder)
	if err != nil {
		return err
	}
	rules := filepath.Join(folder, "rules.json")
	if err := os.WriteFile(rules, declared(o.keys), 0o600); err != nil {
		return err
	}
	body, err := review(o.size)
	if err != nil {
		return err
	}
	peer := func(patch string) []string {
		return []string{filepath.Join(o.peers, "peer-webhook"), "-cert-dir", folder, "-rules", rules, "-patch", patch}
	}
	all := []*contender{
		{name: "ours", command: []string{filepath.Join(o.release, "webhook_server"), "--certificate", filepath.Join(folder, "tls.crt"), "--key", filepath.Join(folder, "tls.key"),
			"--rules", rules}},
		{name: "peer", command: peer("raw")},
		{name: "peer, own patch", command: peer("own")},
	}
	for _, c := range all {
		c.found = figures.Series{}
	}
	before := loadAverage()
	for round := -1; round < o.pairs; round++ { // the first does not count
		for i := range all {
			c := all[i]
			if round%2 != 0 {
				c = all[len(all)-1-i]
			}
			if err := c.once(ctx, o, trust, body, round >= 0); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	ours, raw, own := all[0].found, all[1].found, all[2].found
	rows := []figures.Row{
		figures.Compare(fmt.Sprintf("CPU a call, %d a second", o.rate), "us", 0.1, ours, raw, "cpu"),
		figures.Absolute(fmt.Sprintf("CPU a call, %d a second, at most", o.rate), "us", 60, ours["cpu"]),
		figures.Compare("CPU a call, as many as it can", "us", 0.1, ours, raw, "cpu-full"),
		figures.Compare(fmt.Sprintf("latency p50, %d a second", o.rate), "ms", 0.3, ours, raw, "p50"),
		figures.Compare(fmt.Sprintf("latency p99, %d a second", o.rate), "ms", 0.5, ours, raw, "p99"),
		figures.Absolute(fmt.Sprintf("latency p99, %d a second, at most", o.rate), "ms", 2, ours["p99"]),
		figures.Compare("latency p50, as many as it can", "ms", 0, ours, raw, "p50-full"),
		figures.Compare("latency p99, as many as it can", "ms", 0, ours, raw, "p99-full"),
		figures.Compare("memory after it all (RSS)", "MiB", 0, ours, raw, "rss"),
		figures.Compare("peer writes its patch: CPU a call", "us", 0, ours, own, "cpu"),
		figures.Compare("peer writes its patch: latency p99", "ms", 0, ours, own, "p99"),
	}
	fmt.Printf("\nwebhook: a review of %d bytes, %d TLS connections, %d declared keys, %d pairs; %d calls a second for %s, then all they can for %s\n", len(body), o.connections,
		o.keys, o.pairs, o.rate, o.span, o.full)
	fmt.Printf("calls a second at most: ours %.0f, peer %.0f, peer with its own patch %.0f\n", figures.Median(ours["most"]), figures.Median(raw["most"]), figures.Median(own["most"]))
	fmt.Printf("load average before: %s, at the end: %s\n\n", before, loadAverage())
	for i := range rows {
		if o.short {
			rows[i].OK, rows[i].Note = false, "short form: judges nothing"
		}
	}
	figures.Print(os.Stdout, rows, !o.short)
	if o.short {
		fmt.Println("\nThis is the short form: it shows that everything runs; no verdict on the targets is taken from it.")
	}
	return figures.WriteJSON(o.json, rows)
}

// once starts the program, holds it to the right answer, and measures both phases.
func (c *contender) once(ctx context.Context, o options, trust trusted, body []byte, counts bool) error {
	p, port, err := start(ctx, o.serverCore, c.command)
	if err != nil {
		return err
	}
	defer p.kill()
	calls := newCaller(trust, port, body, o.connections)
	defer calls.close()
	if err := calls.right(ctx); err != nil {
		return err
	}
	if _, err := calls.steadily(ctx, o.rate, o.span/5); err != nil { // until it is warm
		return err
	}
	measure := func(how func() (result, error)) (result, float64, error) {
		cpu, err := cpuOf(p.pid())
		if err != nil {
			return result{}, 0, err
		}
		r, err := how()
		if err != nil {
			return r, 0, err
		}
		after, err := cpuOf(p.pid())
		return r, float64((after - cpu).Nanoseconds()) / 1000 / float64(r.calls), err
	}
	steady, cpu, err := measure(func() (result, error) { return calls.steadily(ctx, o.rate, o.span) })
	if err != nil {
		return err
	}
	full, cpuFull, err := measure(func() (result, error) { return calls.fully(ctx, o.full) })
	if err != nil {
		return err
	}
	memory, err := memoryOf(p.pid())
	if err != nil {
		return err
	}
	say("%s: %d calls, CPU %.1f us a call, p50 %.3f ms, p99 %.3f ms; then %.0f calls a second at %.1f us", c.name, steady.calls, cpu, steady.p50, steady.p99,
		float64(full.calls)/o.full.Seconds(), cpuFull)
	if counts {
		for name, value := range map[string]float64{"cpu": cpu, "p50": steady.p50, "p99": steady.p99, "cpu-full": cpuFull, "p50-full": full.p50, "p99-full": full.p99,
			"most": float64(full.calls) / o.full.Seconds(), "rss": memory} {
			c.found.Add(name, value)
		}
	}
	return nil
}
