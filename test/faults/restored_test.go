package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/test/faults/kit"
)

const olderData = "the API server's data is older than what was seen; starting afresh"

// restoration is a hall whose etcd goes back to an older state. On one node with four cards, pods hold 60 cores of each in the state that is
// kept. They are deleted after that; so whoever remembers the time between takes the cards for free.
type restoration struct {
	*pairOf
	kept string // etcd's data

	mu    sync.Mutex
	wrong map[string]bool
}

var sixtyCores = map[string]string{"tencent.com/vcuda-core": "60", "tencent.com/vcuda-memory": "8"}
var seventyCores = map[string]string{"tencent.com/vcuda-core": "70", "tencent.com/vcuda-memory": "8"}
var fiveCores = map[string]string{"tencent.com/vcuda-core": "5", "tencent.com/vcuda-memory": "1"}

// churn makes pods that fit and takes them away again, whether or not there is a server.
func (r *restoration) churn(ctx context.Context) {
	now := int64(0)
	pods := r.Client.CoreV1().Pods(podsIn)
	for i := 0; ctx.Err() == nil; i++ {
		_, _ = pods.Create(ctx, pod(fmt.Sprintf("churn-%d", i), fiveCores), metav1.CreateOptions{})
		if i >= 5 {
			_ = pods.Delete(ctx, fmt.Sprintf("churn-%d", i-5), metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// watchCards asks the API alone, again and again, whether a card was given out twice.
func (r *restoration) watchCards(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		wrong, err := kit.WrongNow(ctx, r.Cluster, fpga)
		if err != nil {
			continue
		}
		r.mu.Lock()
		for _, line := range wrong {
			r.wrong[line] = true
		}
		r.mu.Unlock()
	}
}

// goOn is what happens between the backup and the restore.
func (r *restoration) goOn() {
	r.t.Helper()
	for i := range 4 {
		r.remove(fmt.Sprintf("held-%d", i))
	}
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := range 50 {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("between-%d-%d", writer, i)}}
				if _, err := r.Client.CoreV1().ConfigMaps(podsIn).Create(r.ctx, object, metav1.CreateOptions{}); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	for i := range 2 {
		r.create(pod(fmt.Sprintf("ghost-%d", i), sixtyCores))
		r.awaitBound(fmt.Sprintf("ghost-%d", i), 20*time.Second)
	}
}

// press asks the leader to bind pods to cards that only look free, from the server's first answer until the leader has ended. No scheduler is as
// quick as this. The pods are the same in both states. Several, because one whose Binding failed is looked after first.
func (r *restoration) press(leader *kit.Extender, waiting []*corev1.Pod, patience time.Duration, ended func() bool) (calls int) {
	for end := time.Now().Add(patience); time.Now().Before(end) && !ended(); time.Sleep(10 * time.Millisecond) {
		asks := waiting[calls%len(waiting)]
		calls++
		if refused, err := leader.Bind(r.ctx, podsIn, asks.Name, asks.UID, "vgpu-0"); err == nil && refused == "" {
			r.t.Error("a pod of 70 cores was bound to a node whose cards have 40 left")
			return
		}
	}
	return
}

// firstAnswer is when the API server gives something out of etcd. It calls itself ready seconds later.
func (r *restoration) firstAnswer(ctx context.Context) time.Time {
	for ctx.Err() == nil {
		if _, err := r.Client.CoordinationV1().Leases(kit.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Now()
}

// endOf says when an operator has ended by itself; nothing comes where it goes on.
func endOf(o *kit.Operator, patience time.Duration) <-chan time.Time {
	ended := make(chan time.Time, 1)
	go func() {
		if _, gone := o.Exited(patience); gone {
			ended <- time.Now()
		}
		close(ended)
	}()
	return ended
}

// F7: etcd is restored from a backup under two operators. Both notice it, the one that leads and the one that waits, and start afresh.
func TestF7_etcd_put_back(t *testing.T) {
	h := emptyHallIn(t, "extender", form(15*time.Minute, time.Hour), map[string]int{"vgpu/4": 1})
	r := &restoration{pairOf: &pairOf{hall: h, at: map[*kit.Operator]string{}}, kept: filepath.Join(h.dir, "etcd"), wrong: map[string]bool{}}
	r.both()
	for i := range 4 {
		r.create(pod(fmt.Sprintf("held-%d", i), sixtyCores))
	}
	for i := range 4 {
		r.awaitBound(fmt.Sprintf("held-%d", i), 20*time.Second)
	}
	var waiting []*corev1.Pod
	for i := range 16 {
		waiting = append(waiting, r.create(unclaimed(fmt.Sprintf("waits-%d", i), seventyCores)))
	}
	ctx, cancel := context.WithCancel(r.ctx)
	var others sync.WaitGroup
	defer func() {
		cancel()
		others.Wait()
		for line := range r.wrong {
			t.Error(line)
		}
	}()
	others.Go(func() { r.churn(ctx) })
	others.Go(func() { r.watchCards(ctx) })
	time.Sleep(time.Second)
	r.must(r.KeepData(r.kept))
	r.goOn()
	time.Sleep(3 * time.Second) // the one that waits has read the lease

	leads := r.leads()
	if leads < 0 {
		t.Fatal("no one leads")
	}
	leader, follower := r.lives[leads], r.lives[1-leads]
	direct, err := kit.DialExtender(r.at[leader], r.keys)
	r.must(err)
	defer direct.Client.CloseIdleConnections()
	const patience = 90 * time.Second
	ends := map[*kit.Operator]<-chan time.Time{leader: endOf(leader, patience), follower: endOf(follower, patience)}
	calls := make(chan int, 1)
	r.must(r.StopServing())
	answers := make(chan time.Time, 1)
	others.Go(func() {
		answers <- r.firstAnswer(ctx)
		calls <- r.press(direct, waiting, patience, func() bool { _, gone := leader.Exited(0); return gone })
	})
	r.must(r.Restore(r.kept))
	back := <-answers
	r.must(r.RestartClients())
	r.openScheduler()
	for i := range 4 {
		r.create(pod(fmt.Sprintf("late-%d", i), seventyCores))
	}
	for o, end := range ends {
		at, gone := <-end
		if !gone {
			t.Errorf("F7 operator %s goes on %s after the restore:\n%s", o.Name, time.Since(back).Round(time.Second), o.LogTail(5))
			continue
		}
		code, _ := o.Exited(0)
		if said := o.LogTail(1); code != 1 || !strings.Contains(said, olderData) || strings.Count(o.Log(), olderData) != 1 {
			t.Errorf("F7 operator %s ended with code %d: %s", o.Name, code, said)
		}
		after := at.Sub(back)
		t.Logf("%s ended %s after the API server was back: %s", o.Name, after.Round(10*time.Millisecond), o.LogTail(1))
		if limit := kit.Patient(5 * time.Second); after > limit {
			t.Errorf("F7 operator %s noticed it %s after the API server was back, allowed %s", o.Name, after, limit)
		}
	}
	t.Logf("meanwhile the leader was asked to bind %d times", <-calls)
	if t.Failed() {
		return
	}
	r.serveAgain(back)
	time.Sleep(3 * time.Second)
}

// serveAgain starts the two as a kubelet does, and waits until a pod that fits is bound and the caches have what the API has.
func (r *restoration) serveAgain(back time.Time) {
	r.t.Helper()
	r.revive()
	r.create(pod("fits", fiveCores))
	r.awaitBound("fits", 60*time.Second)
	r.t.Logf("a pod was bound %s after the API server was back", time.Since(back).Round(100*time.Millisecond))
	for i := range 4 {
		name := fmt.Sprintf("late-%d", i)
		r.awaitReason(name, "core", 30*time.Second)
	}
	for _, o := range r.lives {
		r.eventuallySo(30*time.Second, func() string {
			list, err := r.Client.CoreV1().Pods("").List(r.ctx, metav1.ListOptions{})
			r.must(err)
			if cached, _ := o.Metric("quartermaster_cache_objects", `resource="pods"`); int(cached) != len(list.Items) {
				return fmt.Sprintf("%s has %d pods, the API has %d", o.Name, int(cached), len(list.Items))
			}
			return ""
		})
	}
}
