package admission

import (
	"math/rand"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The name says what it proves: rules (S24), fills (S25) and the texts people read are the same in C++ and in CEL.
func TestS24_S25_S72_CPlusPlusAndCELAgreeOnRandomRulesAndPods(t *testing.T) {
	engine := celForm(t)
	seed, count := int64(20250611), form(500, 10_000)
	if os.Getenv("QM_NIGHTLY") != "" {
		seed, count = time.Now().UnixNano()%1_000_000, 100_000
	}
	began := time.Now()
	var refused, filled, advised, templates, classes atomic.Int64
	var workers sync.WaitGroup
	const side = 2 // each with a C++ form of its own
	for worker := range side {
		judge := cppForm(t)
		workers.Go(func() {
			for n := worker; n < count && !t.Failed(); n += side {
				trial, err := RandomTrial(judge, seed, n)
				if err != nil {
					t.Error(err)
					return
				}
				said, err := Disagreement(judge, engine, trial)
				if err != nil {
					t.Errorf("seed %d, trial %d: %v\n%s", seed, n, err, trial)
					return
				}
				if said != "" {
					smallest := Smallest(trial, func(c Trial) bool { said, err := Disagreement(judge, engine, c); return err == nil && said != "" })
					said, _ = Disagreement(judge, engine, smallest)
					t.Errorf("seed %d, trial %d: they disagree about the %s\nin\n%s", seed, n, said, smallest)
					return
				}
				answer, err := judge.Evaluate(trial.Rules, trial.Pod, trial.Enforcement)
				if err != nil {
					t.Error(err)
					return
				}
				count := func(what bool, in *atomic.Int64) {
					if what {
						in.Add(1)
					}
				}
				count(!answer.Allowed, &refused)
				count(len(answer.Fills) > 0, &filled)
				count(answer.Advice != "", &advised)
				count(answer.RuntimeClassName != "", &classes)
				count(trial.Template != "", &templates)
			}
		})
	}
	workers.Wait()
	t.Logf("%d trials of seed %d in %s: %d refused, %d with fills, %d with advice, %d with a runtime class to write, %d templates", count, seed,
		time.Since(began).Round(time.Second), refused.Load(), filled.Load(), advised.Load(), classes.Load(), templates.Load())
	for what, n := range map[string]int64{"refused": refused.Load(), "allowed": int64(count) - refused.Load(), "filled": filled.Load(),
		"advised": advised.Load(), "templates": templates.Load(), "given a runtime class": classes.Load()} {
		if n < int64(count)/10 && !t.Failed() {
			t.Errorf("only %d of %d trials are %s: they show too little", n, count, what)
		}
	}
}

func TestADisagreementIsMadeSmall(t *testing.T) {
	keys := poolKeys
	trial := Trial{Rules: RandomRules(rand.New(rand.NewSource(3)), keys), Pod: RandomPod(rand.New(rand.NewSource(3)), keys), Enforcement: "Deny"}
	for n := int64(4); !strings.Contains(demand(trial.Pod), Core); n++ {
		trial.Pod = RandomPod(rand.New(rand.NewSource(n)), keys)
	}
	smallest := Smallest(trial, func(c Trial) bool { return strings.Contains(demand(c.Pod), Core) })
	if got := demand(smallest.Pod); len(smallest.Rules.Rules) != 0 || strings.Count(got, "/") != 1 {
		t.Fatalf("this is not the smallest pod that names %s:\n%s", Core, smallest)
	}
}

// form is the size of a test in the short set, and in --all.
func form(short, long int) int {
	if os.Getenv("QM_LONG") != "" {
		return long
	}
	return short
}

func cppForm(t *testing.T) *Judge {
	t.Helper()
	judge, err := StartJudge()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := judge.Close(); err != nil {
			t.Errorf("admission_judge: %v", err)
		}
	})
	return judge
}

// celForm as a server of 1.36 has it, which takes what 1.35 knows too.
func celForm(t *testing.T) *Engine {
	t.Helper()
	policies, err := Render(true)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := NewEngine(policies, 35)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestS24_TheValidatingPoliciesCompileWithWhatKubernetes130Knows(t *testing.T) {
	policies, err := Render(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, minor := range []uint{29, 30} { // a server of 1.30 takes what 1.29 knows too
		if _, err := NewEngine(policies, minor); err != nil {
			t.Errorf("1.%d: %v", minor, err)
		}
	}
	// The check can fail: 1.30 does not know the expressions that fill.
	policies, err = Render(true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewEngine(policies, 30); err == nil {
		t.Error("what needs Kubernetes 1.32 compiles with 1.30")
	}
}
