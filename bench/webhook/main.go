// What a call of an admission webhook costs: ours against one on controller-runtime that does the same, from the same rules, on the same
// review. README.md in this folder says what is measured and how; bench/webhook/run.sh builds and calls this from the repository's root.
package main

import (
	"context"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	pairs, rate, connections, size, keys int
	span, full                           time.Duration
	short                                bool
	output                               kit.Output
	release, peers                       string
	callerCore, serverCore               int
}

func parse(arguments []string) (options, error) {
	var o options
	first, second := kit.FirstAndLast()
	flags := flag.NewFlagSet("webhook", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "1 pair of a second; no verdict is taken from it")
	flags.IntVar(&o.pairs, "pairs", 7, "alternating runs of each program")
	flags.IntVar(&o.rate, "rate", 500, "calls a second")
	flags.DurationVar(&o.span, "span", 10*time.Second, "length of the phase at that rate")
	flags.DurationVar(&o.full, "full", 5*time.Second, "length of the phase in which each connection calls again at once")
	flags.IntVar(&o.connections, "connections", 4, "kept TLS connections")
	flags.IntVar(&o.size, "size", 11_273, "bytes of the review, about")
	flags.IntVar(&o.keys, "keys", 200, "declared keys")
	o.output.Flags(flags)
	flags.StringVar(&o.release, "release", "build/release", "folder of webhook_server")
	flags.StringVar(&o.peers, "peers", "build/bench-go", "folder of the peer")
	flags.IntVar(&o.callerCore, "caller-core", first, "core of this program, which calls")
	flags.IntVar(&o.serverCore, "server-core", second, "core of the webhook under measurement")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		return o, kit.SetDefaults(flags, map[string]string{"pairs": "1", "span": "1s", "full": "1s"})
	}
	return o, nil
}

func main() { kit.Main(os.Args[1:], parse, run) }

// contender is a webhook and what was measured of it.
type contender struct {
	name    string
	command []string
	found   figures.Series
}

func run(ctx context.Context, o options) error {
	kit.PinSelf(o.callerCore)
	folder, err := os.MkdirTemp("", "quartermaster-webhook-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	trust, err := kit.Certificates(folder, "tls")
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
	before := kit.LoadAverage()
	for round := -1; round < o.pairs; round++ { // the first does not count
		for _, c := range kit.InTurn(all, round) {
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
		figures.Compare("calls a second at most", "1/s", 0, ours, raw, "most"),
		figures.Compare("memory after it all (RSS)", "MiB", 0, ours, raw, "rss"),
		figures.Compare("peer writes its patch: CPU a call", "us", 0, ours, own, "cpu"),
		figures.Compare("peer writes its patch: latency p99", "ms", 0, ours, own, "p99"),
	}
	fmt.Printf("\nwebhook: a review of %d bytes, %d TLS connections, %d declared keys, %d pairs; %d calls a second for %s, then all they can for %s\n", len(body), o.connections,
		o.keys, o.pairs, o.rate, o.span, o.full)
	fmt.Printf("calls a second at most: ours %.0f, peer %.0f, peer with its own patch %.0f\n", figures.Median(ours["most"]), figures.Median(raw["most"]), figures.Median(own["most"]))
	fmt.Printf("load average before: %s, at the end: %s\n\n", before, kit.LoadAverage())
	form := figures.FormOf("short", o.short)
	form.Unjudge(rows)
	form.Report(rows, "targets")
	return o.output.Write("webhook", "full", rows)
}

// once starts the program, holds it to the right answer, and measures both phases.
func (c *contender) once(ctx context.Context, o options, trust *x509.CertPool, body []byte, counts bool) error {
	p, err := kit.SpawnTalking(o.serverCore, c.command[0], c.command[1:]...)
	if err != nil {
		return err
	}
	defer p.Kill()
	serving, err := p.Expect(ctx, "serving", 20*time.Second)
	if err != nil {
		return err
	}
	calls := newCaller(trust, serving[1], body, o.connections)
	defer calls.close()
	if err := calls.right(ctx); err != nil {
		return err
	}
	if _, err := calls.steadily(ctx, o.rate, o.span/5); err != nil { // until it is warm
		return err
	}
	measure := func(how func() (result, error)) (result, float64, error) {
		cpu, err := kit.CPU(p.PID())
		if err != nil {
			return result{}, 0, err
		}
		r, err := how()
		if err != nil {
			return r, 0, err
		}
		after, err := kit.CPU(p.PID())
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
	memory, err := kit.Memory(p.PID())
	if err != nil {
		return err
	}
	kit.Say("%s: %d calls, CPU %.1f us a call, p50 %.3f ms, p99 %.3f ms; then %.0f calls a second at %.1f us", c.name, steady.calls, cpu, steady.p50, steady.p99,
		float64(full.calls)/o.full.Seconds(), cpuFull)
	if counts {
		for name, value := range map[string]float64{"cpu": cpu, "p50": steady.p50, "p99": steady.p99, "cpu-full": cpuFull, "p50-full": full.p50, "p99-full": full.p99,
			"most": float64(full.calls) / o.full.Seconds(), "rss": memory["VmRSS"]} {
			c.found.Add(name, value)
		}
	}
	return nil
}
