package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

func (r *round) end(o *kit.Operator) {
	o.Kill()
	r.must(r.ExpireLease(r.ctx))
}

// lives starts the operator and kills it after n writes to each cell, again and again, until all cells are where they are to be.
func (r *round) lives(what string, n int, patience time.Duration, wrong func(*view) []string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r.mu.Lock()
		r.allow, r.last = n, time.Now()
		r.life++
		life := r.life
		for _, c := range r.cells {
			c.used, c.more = 0, false
		}
		r.mu.Unlock()
		born := time.Now()
		o := r.startBehind(r.proxy)
		r.must(o.WaitReady(20 * time.Second))
		ready := time.Now()
		var left []string
		for seen := (time.Time{}); ; time.Sleep(20 * time.Millisecond) {
			r.mu.Lock()
			quiet := time.Since(r.last) > 250*time.Millisecond
			cut := slices.ContainsFunc(r.cells, func(c *cell) bool { return c.more })
			r.mu.Unlock()
			if cut && quiet {
				break
			}
			if time.Since(seen) < 300*time.Millisecond {
				continue
			}
			v := r.look()
			waiting := r.finish(v, life)
			if left = wrong(v); len(left) == 0 || (waiting && quiet) {
				break
			}
			if seen = time.Now(); seen.After(deadline) {
				r.must(fmt.Errorf("%s, %d writes a life, %d lives: after %s still\n  %s", what, n, life, patience, strings.Join(left[:min(len(left), 12)], "\n  ")))
			}
		}
		r.deaths++
		if testing.Verbose() && os.Getenv("QM_LIVES") != "" {
			r.t.Logf("life %d, ready after %s, %s in all, %d left %v", life, ready.Sub(born).Round(10*time.Millisecond), time.Since(born).Round(10*time.Millisecond), len(left), left[:min(len(left), 2)])
		}
		r.end(o)
		if len(left) == 0 && !slices.ContainsFunc(r.cells, func(c *cell) bool { return c.more }) && r.strikeDue(true) == 0 {
			return
		}
		r.strikeDue(false)
	}
}

// strikeDue strikes, while the operator is dead, where its time has come, or everywhere it has not yet been.
func (r *round) strikeDue(all bool) (count int) {
	var due []*cell
	r.mu.Lock()
	for _, c := range r.cells {
		if (c.fault == deleted || c.fault == remade || c.fault == back) && !c.struck && (all || (!c.inWrite && c.total >= c.strikeAt)) {
			due = append(due, c)
		}
	}
	r.mu.Unlock()
	side(due, func(c *cell) { r.strike(c, all) })
	return len(due)
}

// finish ends the pods that the operator has named in two of its lives, where the cell is not about pods that stay. True: it has named
// some in this life only.
func (r *round) finish(v *view, life int) (waiting bool) {
	now := int64(0)
	for _, c := range r.cells {
		status, phase := v.of(c)
		r.mu.Lock()
		asked := c.pod != "" && c.fault != kept && phase == "Draining" && strings.Contains(fmt.Sprint(status["blockers"]), "default/"+c.pod)
		if asked && c.seenDraining < 0 {
			c.seenDraining = life
		}
		due := asked && c.seenDraining < life
		c.ended = c.ended || due
		r.mu.Unlock()
		waiting = waiting || (asked && !due)
		if due {
			if err := r.Client.CoreV1().Pods("default").Delete(r.ctx, c.pod, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
				r.say("%s: %v", c.pod, err)
			}
		}
	}
	return
}

// clear takes everything of the round away.
func (r *round) clear() {
	now := int64(0)
	at := metav1.DeleteOptions{GracePeriodSeconds: &now}
	ctx := context.Background()
	_ = r.Client.CoreV1().Nodes().DeleteCollection(ctx, at, metav1.ListOptions{LabelSelector: cellLabel})
	pods, err := r.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	for _, p := range pods.Items {
		if r.byNode[p.Spec.NodeName] != nil {
			_ = r.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, at)
		}
	}
}

// through is one round: every cell is relabelled while the operator is dead, and then lives n writes at a time.
func (r *round) through(n int, patience time.Duration) {
	r.t.Helper()
	began := time.Now()
	side(r.cells, func(c *cell) {
		labels := map[string]any{kit.AskLabel: orNil(c.to)}
		if c.fault == stuck {
			labels[brokenInSim] = c.to + "." + c.from
		}
		if c.from != c.to {
			r.must(r.PatchNode(r.ctx, c.node, map[string]any{"metadata": map[string]any{"labels": labels}}))
		}
	})
	r.mu.Lock()
	for _, c := range r.cells {
		c.total = 0
	}
	r.mu.Unlock()
	r.lives("on the way", n, patience, func(v *view) (wrong []string) {
		for _, c := range r.cells {
			r.mu.Lock()
			due := (c.fault == deleted || c.fault == remade || c.fault == back) && !c.struck
			r.mu.Unlock()
			there := c
			if due { // whatever it does, it must not wait for the strike
				copied := *c
				copied.fault = smooth
				there = &copied
			}
			if left := v.check(there); len(left) > 0 && !v.waits(c) {
				wrong = append(wrong, left...)
			}
		}
		return
	})
	way := time.Since(began)
	// What did not come until now does not come: the operator may lose its patience.
	r.enrol(map[string]any{"verifyTimeout": "3s", "drain": map[string]any{"timeout": "3s"}})
	all := func(v *view) (wrong []string) {
		for _, c := range r.cells {
			wrong = append(wrong, v.check(c)...)
		}
		return
	}
	r.lives("at the end", n, patience, all)
	// And there it stays, and nothing more is written.
	r.mu.Lock()
	r.allow = 0
	r.mu.Unlock()
	o := r.startBehind(r.proxy)
	r.must(o.WaitReady(20 * time.Second))
	r.rest(o, time.Second)
	r.clean(all(r.look()))
	r.enrol(map[string]any{"verifyTimeout": "5m", "drain": map[string]any{"timeout": "30m"}})
	r.end(o)
	r.mu.Lock()
	for _, c := range r.cells {
		if c.from == c.to && c.total > 0 {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %d writes although it was asked for what it is", c.node, c.total))
		}
	}
	wrong, writes := slices.Clone(r.wrong), 0
	for _, c := range r.cells {
		writes += c.total
	}
	r.mu.Unlock()
	moments := r.history.Moments()
	r.clean(wrong)
	r.clean(kit.ModeFaults(moments, kit.ModeRules{
		MayLeaveQuietly: func(node string) bool { c := r.byNode[node]; return c != nil && (c.from == "" || c.fault == remade) },
		MayEnd: func(pod string) bool {
			name := strings.TrimPrefix(pod, "default/")
			c := r.byNode[strings.TrimSuffix(name, ".user")]
			r.mu.Lock()
			defer r.mu.Unlock()
			return c == nil || c.ended
		}}))
	if r.strikes > 2 && r.onTheWay == 0 {
		r.t.Errorf("all %d nodes that were to be deleted or called back on their way had arrived: this proved nothing", r.strikes)
	}
	r.t.Logf("%d cells, %d writes a life: %d deaths, %d writes, %d of %d struck on their way, %s on the way and %s in all, %d changes of nodes and pods looked at", len(r.cells), n,
		r.deaths, writes, r.onTheWay, r.strikes, way.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond), len(moments))
}

// A pod that must never become ready, and one that must never go: what KWOK says of them is refused. The node's name says which.
const stubborn = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: stubborn.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods/status], operations: [UPDATE]}
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [DELETE]}
  matchConditions:
  - {name: kubelet, expression: "request.userInfo.username == 'kwok'"}
  - {name: plugin, expression: "has(oldObject.spec.nodeName) && has(oldObject.metadata.labels) && 'quartermaster.io/module' in oldObject.metadata.labels"}
  validations:
  - expression: >-
      request.operation != 'UPDATE' || object.status.phase != 'Running' ||
      !oldObject.spec.nodeName.startsWith('unready.' + oldObject.metadata.labels['quartermaster.io/module'] + '.')
    message: this pod never becomes ready
  - expression: >-
      request.operation != 'DELETE' ||
      !oldObject.spec.nodeName.matches('^lingering[.][a-z]+[.]' + oldObject.metadata.labels['quartermaster.io/module'] + '[.]')
    message: this pod never ends
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: stubborn.example.com}
spec: {policyName: stubborn.example.com, validationActions: [Deny]}
`

// stubborn makes them, and waits until they hold: the server takes a new policy in after a moment.
func (b *bench) stubborn() {
	b.t.Helper()
	kubectl := func(args ...string) error {
		_, err := b.Run(stubborn, "kubectl", append(args, "--kubeconfig", b.Kubeconfig, "-f", "-")...)
		return err
	}
	b.must(kubectl("apply"))
	b.t.Cleanup(func() { _ = kubectl("delete", "--ignore-not-found") })
	time.Sleep(2 * time.Second)
}

// C61: all ordered pairs of modes x a crash after every write x pods in use or none x what can go wrong. Ends in one of four, always. The
// long form has 16 parts, which can be run apart: -run 'TestC61_F1_every_pair/n=2$/cells=160$'.
func TestC61_F1_every_pair_of_modes_in_every_trouble_long(t *testing.T) {
	b := take(t, "pair")
	chance := rand.New(rand.NewSource(seed))
	b.stubborn()
	on := map[string]any{}
	for _, module := range []string{"hami", "share", "gpushare"} {
		on[module] = map[string]any{"enabled": true}
	}
	b.must(b.patchPolicy(map[string]any{"modules": on}))
	b.enrol(map[string]any{"maxUnavailable": 1000})
	every := allCells()
	t.Logf("seed %d (QM_SEED), %d cells in all", seed, len(every))
	if nightly {
		for _, n := range []int{1, 2, 3, 5} {
			for at := 0; at < len(every); at += 160 {
				cells := every[at:min(at+160, len(every))]
				t.Run(fmt.Sprintf("n=%d/cells=%d", n, at), func(t *testing.T) { b.of(t).round(fmt.Sprint(n), cells, chance).through(n, 10*time.Minute) })
			}
		}
		return
	}
	for _, n := range []int{1, 2 + chance.Intn(5)} {
		cells := sample(every, 36, chance)
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { b.of(t).round(fmt.Sprint(n), cells, chance).through(n, 2*time.Minute) })
	}
}

// of is the same bench for a subtest, with a time limit of its own.
func (b *bench) of(t *testing.T) *bench {
	copied := *b
	copied.t, copied.ops = t, nil
	ctx, cancel := context.WithTimeout(context.Background(), form(4*time.Minute, 30*time.Minute))
	copied.ctx = ctx
	t.Cleanup(cancel)
	t.Cleanup(func() {
		for _, o := range copied.ops {
			o.Kill()
			copied.clean(kit.NoSecrets(o.Log(), b.token, kit.DeclarationContent))
		}
	})
	return &copied
}

func (b *bench) patchPolicy(spec map[string]any) error {
	body, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = b.Dynamic.Resource(kit.Policies).Patch(b.ctx, "default", types.MergePatchType, body, metav1.PatchOptions{})
	return err
}
