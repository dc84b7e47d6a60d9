package faults

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// anyPod draws a pod of one of the vocabularies.
func anyPod(name string, r *rand.Rand) *corev1.Pod {
	pick := func(of ...string) string { return of[r.Intn(len(of))] }
	share := func() map[string]string {
		return map[string]string{"tencent.com/vcuda-core": pick("10", "20", "30", "50"), "tencent.com/vcuda-memory": pick("4", "8", "16", "20")}
	}
	switch r.Intn(10) {
	case 0, 1:
		return pod(name, share())
	case 2:
		return pod(name, map[string]string{"tencent.com/vcuda-core": pick("100", "400", "800"), "tencent.com/vcuda-memory": "60"})
	case 3:
		p := pod(name, share())
		p.Spec.Containers = append(p.Spec.Containers, container("beside", share()))
		return p
	case 4, 5:
		return pod(name, map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": pick("1000", "4000", "8000", "12000"), "nvidia.com/gpucores": pick("10", "30", "50")})
	case 6:
		return pod(name, map[string]string{"nvidia.com/gpualloc": pick("1", "2", "4"), "nvidia.com/gpumem-percentage": pick("30", "50", "100")})
	case 7:
		if r.Intn(4) == 0 {
			return pod(name, map[string]string{fpga: pick("1", "2")})
		}
		return pod(name, map[string]string{"nvidia.com/gpu": pick("1", "2", "4", "8")})
	case 8:
		if r.Intn(3) == 0 {
			return pod(name, map[string]string{"aliyun.com/gpu-mem": pick("8", "16")})
		}
		return pod(name, map[string]string{"aliyun.com/gpu-mem": pick("2", "4", "8")})
	}
	return pod(name, map[string]string{"nvidia.com/mps-core": pick("10", "25", "50"), "nvidia.com/mps-memory": pick("2", "4", "7")})
}

var anyName = regexp.MustCompile(`churn-\d+-\d+`)

// churn is eight writers who make and take away pods.
type churn struct {
	*hall
	mu    sync.Mutex
	ended map[types.UID]time.Time // by the writers' own hand
	made  int
}

func (c *churn) writer(number, pods, alive int, span time.Duration, seed int64) {
	r := rand.New(rand.NewSource(seed + int64(number)))
	var mine []*corev1.Pod
	took := func(err error, what string) {
		if err != nil && c.ctx.Err() == nil {
			c.t.Errorf("writer %d: %s: %v", number, what, err)
		}
	}
	began := time.Now()
	for i := range pods {
		time.Sleep(time.Until(began.Add(span * time.Duration(i) / time.Duration(pods))))
		p, err := c.Client.CoreV1().Pods(podsIn).Create(c.ctx, anyPod(fmt.Sprintf("churn-%d-%d", number, i), r), metav1.CreateOptions{})
		if err != nil {
			took(err, "create")
			continue
		}
		c.mu.Lock()
		c.made++
		c.mu.Unlock()
		mine = append(mine, p)
		for len(mine) > alive || (len(mine) > 0 && r.Intn(12) == 0) {
			at := r.Intn(len(mine))
			leaving := mine[at]
			mine = append(mine[:at], mine[at+1:]...)
			c.mu.Lock()
			c.ended[leaving.UID] = time.Now()
			c.mu.Unlock()
			if now, err := c.Client.CoreV1().Pods(podsIn).Get(c.ctx, leaving.Name, metav1.GetOptions{}); err == nil && now.Spec.NodeName != "" && r.Intn(6) == 0 {
				// It has done its work, and stays in the list as people's finished pods do. A kubelet's word, which ours must not contradict.
				_, err := c.Client.CoreV1().Pods(podsIn).Patch(c.ctx, leaving.Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
				took(err, "finish")
				continue
			}
			var grace *int64
			if r.Intn(2) == 0 {
				grace = new(int64)
			}
			took(c.Client.CoreV1().Pods(podsIn).Delete(c.ctx, leaving.Name, metav1.DeleteOptions{GracePeriodSeconds: grace}), "delete")
		}
	}
}

// pairOf operators, one of which leads.
type pairOf struct {
	*hall
	lives []*kit.Operator // the two that run
	at    map[*kit.Operator]string
	names []string
	args  []string
}

func (p *pairOf) start() *kit.Operator {
	p.t.Helper()
	name := fmt.Sprintf("life-%d", len(p.names))
	o := p.startExtender(p.proxy(name), p.args...)
	p.names, p.lives, p.at[o] = append(p.names, name), append(p.lives, o), p.address
	var all []string
	for _, one := range p.lives {
		all = append(all, p.at[one])
	}
	p.tap.To(all...)
	return o
}

// leads says which of the two answers; -1: none just now.
func (p *pairOf) leads() int {
	for i, o := range p.lives {
		to, err := kit.DialExtender(p.at[o], p.keys)
		p.must(err)
		ctx, cancel := context.WithTimeout(p.ctx, 2*time.Second)
		ask := pod("probe", map[string]string{"nvidia.com/gpu": "1"})
		ask.UID = "5a1f0d0e-0000-4000-8000-000000000009"
		_, err = to.Filter(ctx, ask, []string{"hami-0"})
		cancel()
		to.Client.CloseIdleConnections()
		if err == nil {
			return i
		}
	}
	return -1
}

// revive plays the kubelet: one that has ended by itself, because a loaded machine did not let it renew its lease, is started again.
func (p *pairOf) revive() {
	p.t.Helper()
	for i := len(p.lives) - 1; i >= 0; i-- {
		if _, gone := p.lives[i].Exited(0); gone {
			p.clean(kit.AliveOrExplained(p.lives[i]))
			p.t.Logf("%s ended: %s", p.lives[i].Name, p.lives[i].LogTail(1))
			p.lives = append(p.lives[:i:i], p.lives[i+1:]...)
			if !p.productLease && p.leads() < 0 {
				p.must(p.ExpireLease(p.ctx))
			}
			p.start()
		}
	}
}

// kill the one that leads, and start another. Expire: its lease is made free at once.
func (p *pairOf) kill(expire bool) {
	p.t.Helper()
	p.revive()
	at := max(p.leads(), 0)
	p.lives[at].Kill()
	p.lives = append(p.lives[:at:at], p.lives[at+1:]...)
	if expire {
		p.must(p.ExpireLease(p.ctx))
	}
	p.start()
}

// judge after a churn: everything that fits runs, and few binds failed because two pods were on their way at once.
func (c *churn) judge(p *pairOf, renew time.Duration) {
	c.t.Helper()
	c.drained(p, 2*time.Minute)
	names := p.names
	calls := c.tap.Calls(c.began)
	binds, crossed, late, filters, failed := 0, 0, 0, 0, map[string]int{}
	for _, call := range calls {
		if call.Verb == "filter" {
			filters++
		}
		if call.Verb != "bind" {
			continue
		}
		binds++
		c.mu.Lock()
		left, gone := c.ended[call.UID]
		c.mu.Unlock()
		switch gone = gone && left.Before(call.At.Add(call.Took)); {
		case call.Status == 200 && call.Error == "":
		case gone:
			failed["the pod had left"]++
		case call.Status != 200:
			failed[fmt.Sprintf("status %d", call.Status)]++
		case strings.Contains(call.Error, "card") || strings.Contains(call.Error, "left"): // decided for two, there is room for one
			crossed++
			failed[anyName.ReplaceAllString(call.Error, "POD")]++
		default:
			failed[anyName.ReplaceAllString(call.Error, "POD")]++
			if strings.Contains(call.Error, "no whole answer") || strings.Contains(call.Error, "requests before it") {
				late++ // the API server did not answer in time
			}
		}
	}
	c.t.Logf("%d pods made, %d filters, %d binds, of which failed: %v; %d changes looked at; %d operators", c.made, filters, binds, failed, c.book.Moments(), len(names))
	// Two hundred binds on nodes that are full say little of one in a hundred: the short form only sees that it is not many times that. Where
	// as many are expected, chance adds three standard deviations at most.
	expected := float64(binds*form(3, 1)) / 100
	// Where the server is so slow that many binds have no answer, pods are in flight for seconds, and this says nothing.
	if allowed := expected + 3*math.Sqrt(expected); late > binds/20 {
		c.t.Logf("%d of %d binds failed because two pods were in flight; not judged, for %d had no answer in time", crossed, binds, late)
	} else if float64(crossed) > allowed {
		c.t.Errorf("%d of %d binds failed because two pods were in flight, allowed %.0f", crossed, binds, allowed)
	}
	audit, err := c.Audit(c.opened, nil)
	c.must(err)
	c.clean(kit.OnlyLeaders(audit, names, renew+tolerance))
}

// drained waits until no waiting pod would fit anywhere, by the checker's own arithmetic.
func (c *churn) drained(p *pairOf, patience time.Duration) {
	c.t.Helper()
	began, last := time.Now(), ""
	for {
		p.revive()
		var left []string
		for _, waits := range c.book.Waiting() {
			if node := c.book.FitsOn(waits, 8); node != "" {
				left = append(left, fmt.Sprintf("pod %s waits and would fit on %s: %v: %s", waits.Name, node, waits.Spec.Containers[0].Resources.Limits, whyPending(waits)))
			}
		}
		if len(left) == 0 {
			c.t.Logf("everything that fitted ran %s after the last change; %d wait; the last: %s", time.Since(began).Round(100*time.Millisecond), len(c.book.Waiting()), last)
			return
		}
		if time.Since(began) > patience {
			c.clean(left)
			return
		}
		last = left[0]
		time.Sleep(200 * time.Millisecond)
	}
}

func (h *hall) churning(pods, alive int, span time.Duration) (*churn, *sync.WaitGroup) {
	c := &churn{hall: h, ended: map[types.UID]time.Time{}}
	h.t.Logf("seed %d (QM_SEED)", seed)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() { c.writer(w, pods/8, alive/8, span, seed) })
	}
	return c, &writers
}

func fleetOf(scale int) map[string]int {
	return map[string]int{"vgpu": 12 * scale, "hami": 10 * scale, "pgpu": 8 * scale, "gpushare": 6 * scale, "mps": 4 * scale}
}

// both start, after one that was alone until all nodes were enrolled; then the scheduler runs. That one has the usual leases, which it also
// keeps on a busy machine.
func (p *pairOf) both() {
	args := p.args
	p.args = nil
	first := p.start()
	p.must(first.WaitReady(60 * time.Second))
	p.awaitServing(p.address, 60*time.Second)
	p.enrolled(first)
	if p.args = args; args != nil {
		first.Terminate(15 * time.Second)
		p.lives = nil
		p.must(p.start().WaitReady(60 * time.Second))
		p.awaitServing(p.address, 60*time.Second)
	}
	p.start()
	p.openScheduler()
	p.began = time.Now()
}

// S8, S70: pods of all vocabularies come and go at the hands of eight writers, the operator that leads is killed again and again. No card is
// given out twice at any version of any pod, everything that fits runs, and only leaders write.
func TestS70_F1_churn_with_the_operator_killed(t *testing.T) {
	h := followedHall(t, "dedicated", fleetOf(form(1, 5)))
	h.productLease = nightly // then leases run out; otherwise they are freed
	p := &pairOf{hall: h, at: map[*kit.Operator]string{}}
	p.both()
	c, writers := h.churning(form(400, 5000), form(320, 2400), form(36*time.Second, 8*time.Minute))
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	kills := 0
	chance := rand.New(rand.NewSource(seed))
	next := func() time.Time {
		return time.Now().Add(form(12*time.Second, time.Duration(20+chance.Intn(20))*time.Second))
	}
	at := next()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(500 * time.Millisecond):
			if p.revive(); time.Now().After(at) && (nightly || kills < 2) {
				p.kill(!nightly)
				kills++
				at = next()
			}
		}
	}
	t.Logf("%d kills", kills)
	if kills < 2 {
		t.Error("the operator was to be killed twice: this proved nothing")
	}
	c.judge(p, h.renewDeadline())
}

// The same with leases of 5 s and a kill every 6 s: the time in which no one leads, or two think so, is most of it.
func TestS70_F27_churn_with_short_leases_long(t *testing.T) {
	h := emptyHall(t, fleetOf(form(1, 2)))
	p := &pairOf{hall: h, at: map[*kit.Operator]string{}, args: []string{"--lease-duration", "5", "--renew-deadline", "4", "--retry-period", "1"}}
	p.both()
	c, writers := h.churning(form(160, 1600), form(120, 600), form(25*time.Second, 4*time.Minute))
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(6 * time.Second):
			p.kill(false)
		}
	}
	c.judge(p, 4*time.Second)
}
