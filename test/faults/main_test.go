// Package faults: the operator under fault, on a real control plane. Their numbers are those of docs/claims.md;
// run.sh runs them, README.md says what each does and how it was seen to fail.
package faults

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

var (
	program = kit.Env("QM_OPERATOR", "")
	minor   = kit.Env("QM_K8S", "1.37")
	prefix  = kit.Env("QM_FAULTS_PREFIX", fmt.Sprintf("faults-%d", os.Getpid())) // clusters of this prefix are used when they run
	keep    = os.Getenv("QM_FAULTS_KEEP") != ""                                  // whoever started us takes them down
	nightly = os.Getenv("QM_NIGHTLY") != ""
	seed    = chosenSeed()
)

// chosenSeed: QM_SEED, or another one each time; it is printed.
func chosenSeed() int64 {
	if n, err := strconv.ParseInt(os.Getenv("QM_SEED"), 10, 64); err == nil {
		return n
	}
	return time.Now().UnixNano()
}

// short or nightly, whichever form runs.
func form[T any](short, long T) T {
	if nightly {
		return long
	}
	return short
}

// A lane is one cluster; its tests take turns, the lanes run side by side, and those that the chosen tests need are started. In `storm`, of long tests alone,
// the control plane itself is hurt; `pair` has the tests that mostly wait for a lease or for nothing, and a few more, so that all take about the
// same time. `extender` has a kube-scheduler that
// asks us, `dedicated` that or the scheduler of our own, and `usage` an audit log with bodies.
type lane struct {
	name     string
	mu       sync.Mutex
	scenario *kit.Scenario
	hurt     bool // a test has restarted its API server
}

var lanes = map[string]*lane{"calm": {name: "calm"}, "storm": {name: "storm"}, "pair": {name: "pair"}, "extender": {name: "extender"},
	"dedicated": {name: "dedicated"}, "usage": {name: "usage"}}

func TestMain(m *testing.M) {
	flag.Parse()
	if program == "" {
		for _, p := range []string{"release", "dev"} {
			if file := filepath.Join(kit.Root(), "build", p, "quartermaster"); program == "" {
				if _, err := os.Stat(file); err == nil {
					program = file
				}
			}
		}
	}
	if program == "" {
		fmt.Fprintln(os.Stderr, "faults: no operator: ./dev build release, or say QM_OPERATOR=FILE")
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "faults: %s on Kubernetes %s, seed %d\n", program, minor, seed)
	code := m.Run()
	for _, l := range lanes {
		if l.scenario != nil {
			l.scenario.Close()
			if !keep {
				l.scenario.Down()
			}
		}
	}
	os.Exit(code)
}

// bench is what a test holds while it runs: the lane's scenario in its first state, and a folder for logs.
type bench struct {
	*kit.Scenario
	t     *testing.T
	lane  *lane
	ctx   context.Context
	dir   string
	began time.Time
	ops   []*kit.Operator
	token string
	env   []string // of operators that start from now on

	program string // of operators that start from now on; empty: the one under test

	productLease bool // operators that start from now on have the product's own lease, not the long one

	revived int // how often an operator that had ended was started again
}

// take waits for the lane, and prepares it: no operator, no trace of one, the inputs in place.
func take(t *testing.T, name string) *bench {
	t.Helper()
	t.Parallel()
	l := lanes[name]
	l.mu.Lock()
	t.Cleanup(l.mu.Unlock)
	ctx, cancel := context.WithTimeout(context.Background(), form(15*time.Minute, time.Hour))
	t.Cleanup(cancel)
	b := &bench{t: t, lane: l, ctx: ctx, dir: folder(t), began: time.Now()}
	if l.scenario == nil {
		cluster, err := kit.Up(ctx, prefix+"-"+l.name, minor)
		if err != nil {
			t.Fatal(err)
		}
		if l.scenario, err = kit.Install(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		t.Logf("cluster %s and scenario in %s", cluster.Name, time.Since(b.began).Round(100*time.Millisecond))
	}
	b.Scenario = l.scenario
	if l.hurt {
		b.must(b.Heal())
	}
	l.hurt = name == "storm"
	b.must(b.Prepare(ctx))
	var err error
	b.token, err = b.Token(ctx, nil)
	b.must(err)
	b.began = time.Now()
	t.Cleanup(b.end)
	return b
}

// folder keeps the logs of a test that failed; those of the others go.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("", "quartermaster-"+strings.ReplaceAll(t.Name(), "/", "-")+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs are in %s", dir)
		} else {
			os.RemoveAll(dir)
		}
	})
	return dir
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		for _, o := range b.ops {
			if o.Proxy != nil {
				o.Proxy.Dump(filepath.Join(b.dir, "proxy-"+o.Name+".log"))
			}
			b.t.Logf("operator %s says:\n%s", o.Name, o.LogTail(12))
		}
		b.t.Fatal(err)
	}
}

// clean fails the test for each violation.
func (b *bench) clean(wrong []string) {
	b.t.Helper()
	for i, w := range wrong {
		if i == 5 {
			b.t.Errorf("... and %d more", len(wrong)-5)
			return
		}
		b.t.Error(w)
	}
}

// longLease is what operators have here. The product's own is 15 s with 10 s to renew it, which a busy machine can miss; then the leader ends, and
// a test that counts something counts a hand-over too many. A test that is about the product's settings sets productLease. One that kills
// a leader frees its lease (ExpireLease).
var longLease = []string{"--lease-duration", "60", "--renew-deadline", "40"}

// leaseArgs are those arguments, with the long lease where the test and its arguments set no other.
func (b *bench) leaseArgs(args []string) []string {
	if b.productLease || slices.Contains(args, longLease[0]) {
		return args
	}
	return slices.Concat(args, longLease)
}

// renewDeadline is how long after its last renewal an operator may write.
func (b *bench) renewDeadline() time.Duration {
	if b.productLease {
		return 10 * time.Second
	}
	return 40 * time.Second
}

// start an operator of that name behind a proxy of its own.
func (b *bench) start(name string, args ...string) *kit.Operator {
	b.t.Helper()
	p, err := kit.NewProxy(name, b.Config, b.dir)
	b.must(err)
	b.t.Cleanup(p.Close)
	return b.startBehind(p, args...)
}

func (b *bench) startBehind(p *kit.Proxy, args ...string) *kit.Operator {
	b.t.Helper()
	token, kubeconfig := filepath.Join(b.dir, "token"), filepath.Join(b.dir, "kubeconfig-"+p.Name)
	b.must(kit.WriteAtomically(token, b.token))
	b.must(kit.WriteKubeconfig(kubeconfig, p.URL, p.CAFile(), token))
	o, err := kit.StartOperator(kit.OperatorOptions{Name: p.Name, Program: cmp.Or(b.program, program), Kubeconfig: kubeconfig, Namespace: kit.Namespace,
		Proxy: p, Dir: b.dir, Args: b.leaseArgs(args), Env: b.env})
	b.must(err)
	b.ops = append(b.ops, o)
	return o
}

// converged starts one operator and waits until all is as expected and it has come to rest.
func (b *bench) converged(name string, args ...string) *kit.Operator {
	b.t.Helper()
	o := b.start(name, args...)
	b.must(o.WaitReady(20 * time.Second))
	b.must(b.Await(b.ctx, 40*time.Second))
	b.rest(o, time.Second)
	return o
}

// awaitAlive is Await with a kubelet that restarts it: an operator that has ended, with a reason, is started again. Returns the one that runs.
func (b *bench) awaitAlive(o *kit.Operator, patience time.Duration) *kit.Operator {
	b.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		b.clean(kit.AliveOrExplained(o))
		o = b.revive(o)
		wrong := b.Differences(b.ctx)
		if len(wrong) == 0 {
			return o
		}
		if time.Now().After(deadline) {
			b.must(fmt.Errorf("after %s still:\n  %s", patience, strings.Join(wrong, "\n  ")))
		}
	}
}

// rest waits until the operator has written nothing for a while.
func (b *bench) rest(o *kit.Operator, quiet time.Duration) {
	b.t.Helper()
	for deadline := time.Now().Add(kit.Patient(20*time.Second) + quiet); ; time.Sleep(50 * time.Millisecond) {
		if len(o.Proxy.Since(time.Now().Add(-quiet), kit.Writes)) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.must(fmt.Errorf("the operator does not come to rest:\n%s", strings.Join(kit.Silent(o.Proxy.Since(time.Now().Add(-quiet), nil)), "\n")))
		}
	}
}

// stable is O1: all is as expected, then the operator writes nothing for so long, and all is still as expected.
func (b *bench) stable(o *kit.Operator, patience, quiet time.Duration) {
	b.t.Helper()
	b.must(b.Await(b.ctx, patience))
	time.Sleep(2 * time.Second) // one that has just started finds out first what is left to do, where all looks as expected already
	b.rest(o, time.Second)
	since := time.Now()
	time.Sleep(quiet)
	b.clean(kit.Silent(o.Proxy.Since(since, func(r *kit.Request) bool {
		// A DaemonSet with minReadySeconds is rolled out that much later than its pods are ready, and then the status may say so.
		// TestT17 waits for it, and allows nothing.
		return (r.Resource != "acceleratorpolicies" || r.Subresource != "status") && !r.CountsUp(since)
	})))
	b.clean(b.Differences(b.ctx))
}

// end is what every test checks last: processes that live or said why, logs without secrets or crashes.
func (b *bench) end() {
	b.t.Helper()
	for _, o := range b.ops {
		if _, gone := o.Exited(0); !gone {
			o.Cont()
			if code := o.Terminate(10 * time.Second); code != 0 {
				b.t.Errorf("F58 operator %s ended with code %d on SIGTERM:\n%s", o.Name, code, o.LogTail(5))
			}
		}
		b.clean(kit.NoSecrets(o.Log(), b.token, kit.DeclarationContent))
		if b.t.Failed() && o.Proxy != nil {
			o.Proxy.Dump(filepath.Join(b.dir, "proxy-"+o.Name+".log"))
		}
	}
	b.t.Logf("took %s", time.Since(b.began).Round(100*time.Millisecond))
}
