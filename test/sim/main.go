// sim is the fleet simulator: nodes with cards, and the device plugins that would run on them, for a cluster whose kubelets KWOK plays.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const help = `sim makes a fleet of accelerator nodes in a test cluster and plays their device plugins.

  sim list                                     the hardware profiles, as a table
  sim nodes --profile t4=2,a100=1              two T4 nodes and an A100 node: t4-0, t4-1, a100-0
  sim nodes --count 8                          eight nodes, the profiles with cards in turn
  sim nodes --count 500 --profile t4,h100      five hundred, two profiles in turn
  sim plugins                                  until SIGTERM: where a pod labelled quartermaster.io/module=NAME is ready on a node,
                                               that module's resources appear in the node's status; where it went, they go to 0
  sim leases                                   until SIGTERM: renews the Lease of every node that is not labelled kwok.x-k8s.io/node=ignore,
                                               as its kubelet would (./dev cluster up starts it)
  sim fleet --profile t4=2,a100=1 --owner NAME until SIGTERM: all of these on a cluster that belongs to others, with KWOK next to it. Nodes
                                               have a taint, and belong to the ClusterRole NAME, with which they go. Refused where a
                                               node has real cards
Options:
  --kubeconfig FILE   the cluster ($KUBECONFIG when not given; fleet in a pod: its own)
  --count N           nodes: how many in all, for profiles without a number of their own
  --profile LIST      nodes, fleet: which profiles
  --force             fleet: also next to real cards
  --grace D           plugins: how long capacity outlives a plugin (default 0s; a kubelet takes 5m, allocatable goes at once)
  --broken MODULE     plugins: this module's runs and never finds a card (on one node: label sim.quartermaster.io/broken=MODULE)

A node that exists is left as it is, so the same command may be run again. Remove the fleet with
  kubectl delete nodes -l sim.quartermaster.io/profile
Profiles are files in profiles/, what a module advertises is in modules.yaml. Exit codes: 0 done, 1 failed, 2 wrong usage.
`

// usageError is answered with one line and exit code 2.
type usageError struct{ error }

func wrong(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	var usage usageError
	switch {
	case err == nil:
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return wrong("say what to do: list, nodes, plugins, leases or fleet (sim --help)")
	}
	verb, flags := args[0], flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(nowhere{})
	kubeconfig, count, wanted, grace, broken := os.Getenv("KUBECONFIG"), 0, "", time.Duration(0), ""
	owner, force := "", false
	switch verb {
	case "-h", "--help", "help":
		fmt.Print(help)
		return nil
	case "list":
	case "nodes":
		flags.StringVar(&kubeconfig, "kubeconfig", kubeconfig, "")
		flags.IntVar(&count, "count", 0, "")
		flags.StringVar(&wanted, "profile", "", "")
	case "leases":
		flags.StringVar(&kubeconfig, "kubeconfig", kubeconfig, "")
	case "fleet":
		flags.StringVar(&kubeconfig, "kubeconfig", kubeconfig, "")
		flags.StringVar(&wanted, "profile", "", "")
		flags.StringVar(&owner, "owner", "", "")
		flags.BoolVar(&force, "force", false, "")
	case "plugins":
		flags.StringVar(&kubeconfig, "kubeconfig", kubeconfig, "")
		flags.DurationVar(&grace, "grace", 0, "")
		flags.StringVar(&broken, "broken", "", "")
	default:
		return wrong("unknown verb %q: it is list, nodes, plugins, leases or fleet (sim --help)", verb)
	}
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		fmt.Print(help)
		return nil
	} else if err != nil {
		return wrong("%s: %w (sim --help)", verb, err)
	}
	if flags.NArg() > 0 {
		return wrong("%s does not take %q (sim --help)", verb, flags.Arg(0))
	}

	profiles, err := loadProfiles()
	if err != nil {
		return err
	}
	if verb == "list" {
		list(profiles)
		return nil
	}
	var wants []want
	if verb == "fleet" && owner == "" {
		return wrong("fleet: whose nodes? give --owner NAME of a ClusterRole")
	}
	if verb == "nodes" || verb == "fleet" {
		if wants, err = parseWants(wanted, count, profiles); err != nil {
			return usageError{err}
		}
	}
	if kubeconfig == "" && (verb != "fleet" || os.Getenv("KUBERNETES_SERVICE_HOST") == "") {
		return wrong("which cluster? give --kubeconfig FILE or set KUBECONFIG")
	}
	client, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	if verb == "nodes" {
		return makeNodes(ctx, client, wants)
	}
	if verb == "leases" {
		return (&leases{client: client, selector: lifelessLabel + "!=ignore"}).run(ctx, 16)
	}
	if verb == "fleet" {
		return (&fleet{client: client, wants: wants, owner: owner, force: force}).run(ctx)
	}
	modules, err := loadModules()
	if err != nil {
		return err
	}
	if broken != "" {
		if _, known := modules[broken]; !known {
			return wrong("--broken %q is no module of modules.yaml", broken)
		}
		modules[broken] = module{Resources: modules[broken].Resources}
	}
	p := &plugins{client: client, profiles: profiles, modules: modules, grace: grace}
	return p.run(ctx, 8)
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 1000
	config.UserAgent = "quartermaster-sim"
	return kubernetes.NewForConfig(config)
}

func makeNodes(ctx context.Context, client kubernetes.Interface, wants []want) error {
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	type job struct {
		profile profile
		index   int
	}
	jobs := make(chan job)
	var made, there atomic.Int64
	var once sync.Once
	var failure error
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for j := range jobs {
				_, err := client.CoreV1().Nodes().Create(ctx, makeNode(j.profile, j.index, server.GitVersion, time.Now()), metav1.CreateOptions{})
				switch {
				case err == nil:
					made.Add(1)
				case apierrors.IsAlreadyExists(err):
					there.Add(1)
				default:
					once.Do(func() { failure = err })
				}
			}
		})
	}
	for _, w := range wants {
		for i := range w.count {
			jobs <- job{w.profile, i}
		}
	}
	close(jobs)
	workers.Wait()
	slog.Info("nodes", "made", made.Load(), "there already", there.Load())
	return failure
}

func list(profiles map[string]profile) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tCARDS\tMODEL\tMEMORY (MiB)\tCOMPUTE\tDRIVER\tCUDA\tCPU\tNODE MEMORY\tWHAT")
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		p := profiles[name]
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, p.Cards, orDash(p.Model), orDash(nonZero(p.MemoryMiB)), orDash(p.Compute),
			orDash(p.Driver), orDash(p.Cuda), p.Node["cpu"], p.Node["memory"], p.Title)
	}
	w.Flush()
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
