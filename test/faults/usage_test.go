package faults

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

const (
	checkpointFlag = "--usage-checkpoint"
	checkpoint     = 5 * time.Second
	orgLabel       = "usage.example.com/organization"
)

// sickNode has cards that are withdrawn at times; no pod may go there.
const sickNode = "vgpu-1"

var elsewhere = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
	NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{sickNode}}}}}}}}

// span is one random schedule: pods come and go, operators are hurt.
type span struct {
	*pairOf
	number   int
	ledger   *kit.AuditLedger
	spaces   []string
	chance   *rand.Rand
	blind    []kit.Blindness
	young    map[*kit.Operator]kit.Blindness // what its watches sent at first may be older
	wallFile string                          // empty: it cannot be moved here
	quiet    sync.RWMutex                    // writers have it for reading
	log      []string
	monthEnd time.Time // on the server's clock
}

// usageStock is what makeNodes has made.
func usageStock(nodes map[string]int) map[string]kit.CardStock {
	out := map[string]kit.CardStock{}
	for module, count := range nodes {
		for i := range count {
			stock := kit.CardStock{Module: module, Model: "Tesla-T4", Cards: eight, MemoryMiB: cardMiB}
			if pieces := offers[module][fpga]; pieces > 0 {
				stock.Counts = map[string]int64{fpga: pieces}
			}
			out[fmt.Sprintf("%s-%d", module, i)] = stock
		}
	}
	return out
}

// usageClusters are how many clusters run schedules side by side.
var usageClusters = number("QM_USAGE_CLUSTERS", 1)

func number(variable string, otherwise int) int {
	n, err := strconv.Atoi(kit.Env(variable, fmt.Sprint(otherwise)))
	if err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "faults: %s=%q is no number from 1 on\n", variable, os.Getenv(variable))
		os.Exit(2)
	}
	return n
}

func usageLane(cluster int) string {
	if cluster == 0 {
		return "usage"
	}
	return fmt.Sprintf("usage-%d", cluster)
}

func init() {
	for cluster := range usageClusters {
		lanes[usageLane(cluster)] = &lane{name: usageLane(cluster)}
	}
}

// Random schedules of pods that come, end and are deleted, while operators are killed, end, stand still, lose the API server, change the lead, and
// have their wall clock moved; in each of them a month ends. What they have written about it is compared with what the API server's audit log
// says, to the second.
func TestUsage_random(t *testing.T) {
	if out, _ := exec.Command(program, "controller", "--help").CombinedOutput(); !strings.Contains(string(out), checkpointFlag) {
		t.Skip("this program keeps no time of cards")
	}
	t.Parallel()
	schedules := number("QM_USAGE_SCHEDULES", form(1, 200))
	var passed atomic.Int64
	t.Cleanup(func() { t.Logf("%d of %d schedules of seed %d were right", passed.Load(), schedules, seed) })
	for cluster := range min(usageClusters, schedules) {
		t.Run(usageLane(cluster), func(t *testing.T) {
			// those of the second cluster are others, and stay the same however many clusters there are
			usageSchedules(t, usageLane(cluster), seed+int64(cluster)*1_000_000, (schedules+usageClusters-1-cluster)/usageClusters, &passed)
		})
	}
}

func usageSchedules(t *testing.T, lane string, seed int64, schedules int, passed *atomic.Int64) {
	nodes := map[string]int{"vgpu": 2, "pgpu": 1, "mps": 1}
	h := emptyHallIn(t, lane, 5*time.Minute+time.Duration(schedules)*6*time.Minute, nodes, "--audit-bodies", "--apiserver-arg=--audit-log-maxsize=10000")
	h.productLease = true
	h.must(h.patchPolicy(map[string]any{"chargeback": map[string]any{"organizationLabel": orgLabel}, "health": map[string]any{"maxWithdrawn": "100%"}}))
	ledger := kit.NewAuditLedger(h.AuditLog, usageStock(nodes))
	ledger.Organization, ledger.SickNode = orgLabel, sickNode
	p := &pairOf{hall: h, at: map[*kit.Operator]string{}, args: []string{checkpointFlag, fmt.Sprint(checkpoint.Seconds())}}
	wall := h.movableClock()
	decks := map[bool]*deck{false: newDeck(alone(), seed), true: newDeck(paired(), seed+1)}
	var failed []int
	for number := range schedules {
		s := &span{pairOf: p, number: number, ledger: ledger, young: map[*kit.Operator]kit.Blindness{}, chance: rand.New(rand.NewSource(seed + int64(number))), wallFile: wall}
		if s.whole(seed, number%2 == 1, decks[number%2 == 1]) {
			failed = append(failed, number)
		} else {
			passed.Add(1)
		}
	}
	t.Logf("%d schedules of seed %d, of which were wrong: %v", schedules, seed, failed)
}

// whole schedule, from new operators to the judge.
func (s *span) whole(seed int64, pair bool, deck *deck) (wrong bool) {
	s.t.Helper()
	s.beginAnew()
	watching, cancel := context.WithCancel(s.ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watchUsage(watching) })
	defer func() { cancel(); watcher.Wait() }()
	if pair {
		s.ready()
	}
	return s.run(seed, []hurt{deck.next(), deck.next(), deck.next()})
}

// beginAnew: no operator, no object, and then an operator whose month ends in the middle of the schedule.
func (s *span) beginAnew() {
	s.t.Helper()
	for _, o := range s.lives {
		s.terminate(o)
	}
	s.lives = nil
	s.must(s.Dynamic.Resource(kit.Usages).DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	s.must(s.ExpireLease(s.ctx))
	// Pods are older than the operators. Of a short and of a long month, of the year, and of February in a leap year.
	s.monthEnd = time.Now().Add(s.between(35*time.Second, 95*time.Second))
	month := kit.NextMonth(s.monthEnd)
	for range s.chance.Intn(30) {
		month = kit.NextMonth(month)
	}
	s.ahead = month.Sub(s.monthEnd).Truncate(time.Second)
	s.monthEnd = month.Add(-s.ahead)
	s.say("%s begins at %s: operators are %s ahead", month.Format("2006-01"), s.monthEnd.UTC().Format(time.TimeOnly), s.ahead)
	if s.wallFile != "" {
		s.must(setWallClock(s.wallFile, int64(s.ahead.Seconds())))
	}
	first := s.ready()
	s.awaitServing(s.address, 60*time.Second)
	s.enrolled(first)
	if s.sched == nil {
		s.openScheduler()
		s.ail(0) // and the agents of the others say nothing
	}
}

// ready starts one more operator and waits until it is. One that a busy machine has ended is started again, as a kubelet would.
func (s *span) ready() *kit.Operator {
	s.t.Helper()
	for tries := 1; ; tries++ {
		started := time.Now()
		o := s.start()
		err := o.WaitReady(60 * time.Second)
		s.young[o] = kit.Blindness{Kind: kit.Broken, Begin: started, End: time.Now().Add(backlog)}
		if _, gone := o.Exited(0); err == nil || !gone || tries == 3 {
			s.must(err)
			return o
		}
		s.clean(kit.AliveOrExplained(o))
		s.say("%s ended: %s", o.Name, o.LogTail(1))
		s.lives = slices.DeleteFunc(s.lives, func(one *kit.Operator) bool { return one == o })
	}
}

// terminate asks one to end. False: it had ended before, by itself and for a reason.
func (s *span) terminate(o *kit.Operator) bool {
	s.t.Helper()
	if _, gone := o.Exited(0); gone {
		s.clean(kit.AliveOrExplained(o))
		return false
	}
	code := o.Terminate(15 * time.Second)
	if code != 0 {
		s.t.Errorf("%s ended with code %d on SIGTERM:\n%s", o.Name, code, o.LogTail(5))
	}
	return code == 0
}

// movableClock is the file that moves the wall clock of the operators that start from now on; empty where no compiler is.
func (h *hall) movableClock() string {
	compiler := ""
	for _, name := range []string{"clang-19", "clang", "gcc", "cc"} {
		if _, err := exec.LookPath(name); err == nil && compiler == "" {
			compiler = name
		}
	}
	if compiler == "" {
		h.t.Log("no C compiler: the wall clock stays as it is")
		return ""
	}
	library, file := filepath.Join(h.dir, "wall_clock.so"), filepath.Join(h.dir, "wall-clock")
	out, err := exec.Command(compiler, "-O1", "-shared", "-fPIC", "-o", library, filepath.Join(kit.Root(), "test/faults/wallclock/wall_clock.c")).CombinedOutput()
	h.must(wrap(err, "%s", out))
	h.must(setWallClock(file, 0))
	h.env = []string{"LD_PRELOAD=" + library, "WALL_CLOCK_FILE=" + file}
	return file
}

// setWallClock writes in place, for the file is mapped.
func setWallClock(file string, ahead int64) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	return binary.Write(out, binary.LittleEndian, ahead)
}

// reachedBy waits until a checkpoint counts up to this moment, and returns it. Operators that end meanwhile are started again.
func (s *span) reachedBy(moment time.Time, what string) kit.UsageReading {
	s.t.Helper()
	var last string
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(250 * time.Millisecond) {
		if s.mend() {
			deadline = time.Now().Add(60 * time.Second)
		}
		reading, wrong, err := s.Usage(s.ctx, s.ahead)
		if err == nil && reading.Through > moment.Unix() {
			s.clean(wrong)
			return reading
		}
		last = fmt.Sprintf("the last one is of %s, error %v", time.Unix(reading.Through, 0).UTC().Format(time.TimeOnly), err)
		if time.Now().After(deadline) {
			s.must(fmt.Errorf("%s no checkpoint came after %s in 60 s: %s", what, moment.UTC().Format(time.TimeOnly), last))
		}
	}
}

// watchUsage looks all the time: at no moment may the sums not add up, or shrink.
func (h *hall) watchUsage(ctx context.Context) {
	var before kit.UsageReading
	for ctx.Err() == nil {
		if now, wrong, err := h.Usage(ctx, h.ahead); err == nil {
			if wrong = append(wrong, kit.Shrunk(before, now)...); len(wrong) > 0 {
				h.clean(wrong)
				return
			}
			before = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// hurt is one thing that happens to the operators.
type hurt struct {
	name string
	do   func(*span)
}

func alone() []hurt {
	return append(anyway(), hurt{"killed, which was alone", func(s *span) { s.alone(func(o *kit.Operator) { o.Kill() }) }},
		hurt{"killed in a checkpoint, which was alone", func(s *span) { s.alone(s.killInCheckpoint) }},
		hurt{"ended, which was alone", (*span).end})
}

func paired() []hurt {
	return append(anyway(), hurt{"the leader killed", func(s *span) { s.succeed(func(o *kit.Operator) { o.Kill() }) }},
		hurt{"the leader killed in a checkpoint", func(s *span) { s.succeed(s.killInCheckpoint) }},
		hurt{"the leader ended", func(s *span) { s.succeed(func(o *kit.Operator) { s.terminate(o) }) }},
		hurt{"the follower killed", (*span).loseFollower})
}

func anyway() []hurt {
	return []hurt{{"cut off", (*span).cut}, {"silence", (*span).silence}, {"the API server restarted", (*span).restartServer}, {"the API server stood", (*span).freezeServer},
		{"stood still", (*span).freeze}, {"wall clock moved", (*span).moveClock}}
}

// deck deals all of them before one comes again. The last ones, which are only of its kind, come first.
type deck struct {
	all    []hurt
	left   []hurt
	chance *rand.Rand
}

func newDeck(all []hurt, seed int64) *deck {
	d := &deck{all: all, chance: rand.New(rand.NewSource(seed))}
	d.left = d.shuffled()
	slices.SortStableFunc(d.left, func(a, b hurt) int {
		return strings.Count(b.name, "in a checkpoint") - strings.Count(a.name, "in a checkpoint")
	})
	return d
}

func (d *deck) shuffled() []hurt {
	out := slices.Clone(d.all)
	d.chance.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (d *deck) next() hurt {
	if len(d.left) == 0 {
		d.left = d.shuffled()
	}
	out := d.left[0]
	d.left = d.left[1:]
	return out
}

func (s *span) say(format string, args ...any) {
	s.log = append(s.log, time.Now().UTC().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// between two durations.
func (s *span) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.chance.Int63n(int64(most-least)))
}

// run one schedule and judge it.
func (s *span) run(seed int64, hurts []hurt) (wrong bool) {
	s.t.Helper()
	s.spaces = []string{podsIn, fmt.Sprintf("usage-%d-a", s.number), fmt.Sprintf("usage-%d-b", s.number)}
	for i, space := range s.spaces[1:] {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}
		if i == 0 {
			made.Labels = map[string]string{orgLabel: "red"}
		}
		s.must(kit.Until(s.ctx, 60*time.Second, "a new namespace "+space, func() (bool, error) { // a run before may have left one
			_, err := s.Client.CoreV1().Namespaces().Create(s.ctx, made, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				err = cmp.Or(s.deleteSpace(space), err)
			}
			return err == nil, err
		}))
	}
	before := s.reachedBy(time.Now(), "before a schedule")
	began := time.Now()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() { s.write(i, seed, stop) })
	}
	writers.Go(func() { s.sicken(seed, stop) })
	enough := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer enough() // no one may speak of a test that has ended
	for _, h := range hurts {
		time.Sleep(s.between(3*time.Second, 9*time.Second))
		s.say("%s", h.name)
		h.do(s)
		s.say("over")
		s.reachedBy(time.Now(), "after '"+h.name+"'")
	}
	time.Sleep(s.between(2*time.Second, 6*time.Second))
	enough()
	s.must(s.deleteSpace(s.spaces[2]))
	time.Sleep(time.Second)
	after := s.reachedBy(time.Now(), "after a schedule")
	if s.monthEnd.Unix() <= before.Through || s.monthEnd.Unix() >= after.Through {
		s.t.Logf("schedule %d: the month ended outside of it", s.number)
	}
	s.say("judged from %s to %s", time.Unix(before.Through, 0).UTC().Format(time.TimeOnly), time.Unix(after.Through, 0).UTC().Format(time.TimeOnly))
	wrong = s.judge(before, after)
	for _, space := range s.spaces {
		_ = s.Client.CoreV1().Pods(space).DeleteCollection(s.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
	}
	_ = s.deleteSpace(s.spaces[1])
	s.t.Logf("schedule %d took %s: %s", s.number, time.Since(began).Round(time.Second), strings.Join(names(hurts), ", "))
	if wrong {
		for _, line := range s.log {
			s.t.Log(line)
		}
	}
	return
}

func names(hurts []hurt) (out []string) {
	for _, h := range hurts {
		out = append(out, h.name)
	}
	return
}

func (s *span) deleteSpace(name string) error {
	err := s.Client.CoreV1().Namespaces().Delete(s.ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// usagePod draws one of a vocabulary of the nodes.
func usagePod(space, name string, r *rand.Rand, high string) *corev1.Pod {
	pick := func(of ...string) string { return of[r.Intn(len(of))] }
	var limits map[string]string
	switch r.Intn(8) {
	case 0, 1, 2:
		limits = map[string]string{"tencent.com/vcuda-core": pick("10", "20", "30", "50"), "tencent.com/vcuda-memory": pick("4", "8", "16", "20")}
	case 3:
		limits = map[string]string{"tencent.com/vcuda-core": pick("100", "200"), "tencent.com/vcuda-memory": "60"}
	case 4, 5:
		limits = map[string]string{"nvidia.com/gpu": pick("1", "2", "3")}
	case 6:
		limits = map[string]string{fpga: pick("1", "2")}
	case 7:
		limits = map[string]string{"nvidia.com/mps-core": pick("10", "25", "50"), "nvidia.com/mps-memory": pick("2", "4", "7")}
	}
	p := pod(name, limits)
	p.Namespace, p.Spec.Affinity = space, elsewhere
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	if r.Intn(3) > 0 {
		grace := int64(30) // KWOK confirms at once
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	if r.Intn(5) == 0 {
		p.Spec.PriorityClassName = high
	}
	if r.Intn(6) == 0 {
		p.Spec.Containers = append(p.Spec.Containers, *p.Spec.Containers[0].DeepCopy())
		p.Spec.Containers[1].Name = "second"
	}
	return p
}

// write makes pods, finishes and deletes them. Where the server does not answer, it goes on: what happened is in the audit log.
func (s *span) write(number int, seed int64, stop <-chan struct{}) {
	r := rand.New(rand.NewSource(seed + int64(1000*s.number+number)))
	high := s.highPriority()
	var mine []types.NamespacedName
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(300+r.Intn(1200)) * time.Millisecond):
		}
		s.quiet.RLock()
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
		switch {
		case len(mine) < 4 || (len(mine) < 9 && r.Intn(2) == 0):
			p := usagePod(s.spaces[r.Intn(len(s.spaces))], fmt.Sprintf("usage-%d-%d-%d", s.number, number, i), r, high)
			if _, err := s.Client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err == nil {
				mine = append(mine, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
			}
		case r.Intn(8) == 0:
			s.takeBack(ctx, mine[r.Intn(len(mine))])
		default:
			at := r.Intn(len(mine))
			if s.leave(ctx, mine[at], r) {
				mine = slices.Delete(mine, at, at+1)
			}
		}
		cancel()
		s.quiet.RUnlock()
	}
}

// sicken has cards withdrawn, and restored.
func (s *span) sicken(seed int64, stop <-chan struct{}) {
	r := rand.New(rand.NewSource(seed + int64(1000*s.number) + 999))
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(3000+r.Intn(15000)) * time.Millisecond):
		}
		s.ail(int64(r.Intn(eight + 1)))
	}
}

// ail: an agent reports that so many cards are sick. It tries until the server takes it.
func (s *span) ail(sick int64) {
	health := slices.Repeat([]string{"Healthy"}, eight)
	for i := range sick {
		health[i] = "XID 79"
	}
	asked := time.Now()
	for deadline := asked.Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		s.quiet.RLock()
		err := s.reported(sickNode, health...)
		s.quiet.RUnlock()
		if err == nil {
			break
		}
		if s.ctx.Err() != nil || time.Now().After(deadline) {
			s.t.Errorf("report %d sick cards: %v", sick, err)
			return
		}
	}
	s.ledger.Sick = append(s.ledger.Sick, kit.Sickness{Cards: sick, Asked: asked, Done: time.Now()})
}

// takeBack does what kube-scheduler does to a bound pod, where it heard no answer to the Binding.
func (s *span) takeBack(ctx context.Context, name types.NamespacedName) {
	pods := s.Client.CoreV1().Pods(name.Namespace)
	if p, err := pods.Get(ctx, name.Name, metav1.GetOptions{}); err == nil && p.Status.Phase == corev1.PodRunning {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulerError","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		_, _ = pods.Patch(ctx, name.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	}
}

// leave finishes a pod, or deletes it; true: it will not be touched again.
func (s *span) leave(ctx context.Context, name types.NamespacedName, r *rand.Rand) bool {
	pods := s.Client.CoreV1().Pods(name.Namespace)
	p, err := pods.Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	if p.Status.Phase == corev1.PodRunning && r.Intn(2) == 0 {
		ended := time.Now().Add(-time.Duration(r.Intn(1500)) * time.Millisecond).UTC().Format(time.RFC3339)
		var statuses []string
		for _, c := range p.Spec.Containers {
			statuses = append(statuses, fmt.Sprintf(`{"name":%q,"image":"x","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed","startedAt":%q,"finishedAt":%q}}}`,
				c.Name, p.CreationTimestamp.UTC().Format(time.RFC3339), ended))
		}
		patch := fmt.Sprintf(`{"status":{"phase":%q,"containerStatuses":[%s]}}`, []string{"Succeeded", "Failed"}[r.Intn(2)], strings.Join(statuses, ","))
		if _, err = pods.Patch(ctx, name.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			s.t.Logf("finish %s: %v", name, err)
		}
		return err == nil && r.Intn(2) == 0 // the others are deleted later
	}
	var grace *int64
	if r.Intn(3) == 0 {
		grace = new(int64)
	}
	return pods.Delete(ctx, name.Name, metav1.DeleteOptions{GracePeriodSeconds: grace}) == nil
}

// committed is how far the last checkpoint counts.
func (s *span) committed() time.Time {
	s.t.Helper()
	reading, _, err := s.Usage(s.ctx, s.ahead)
	s.must(err)
	return time.Unix(reading.Through, 0)
}

// alone: the only operator goes, and after a while another one comes.
func (s *span) alone(goes func(*kit.Operator)) {
	s.t.Helper()
	goes(s.lives[0])
	gone := time.Now()
	begin := s.committed()
	s.lives = nil
	time.Sleep(s.between(2*time.Second, 7*time.Second))
	if s.chance.Intn(2) == 0 {
		s.must(s.ExpireLease(s.ctx))
	}
	s.rise(begin, gone)
}

// rise starts an operator where none was for a while.
func (s *span) rise(begin, gone time.Time) {
	s.t.Helper()
	started := time.Now()
	s.ready()
	s.unwatched(begin, gone, started, time.Now())
}

// unwatched: what counts is what the operator knows that was ready in the end. What its watches sent in their first seconds may be older.
func (s *span) unwatched(begin, gone, followed, ready time.Time) {
	s.blind = append(s.blind, kit.Blindness{Kind: kit.Unwatched, Begin: begin, End: ready.Add(2 * time.Second), Died: gone, Followed: followed},
		kit.Blindness{Kind: kit.Broken, Begin: followed, End: ready.Add(backlog)})
}

func (s *span) end() {
	s.t.Helper()
	s.alone(func(o *kit.Operator) {
		asked := time.Now()
		if !s.terminate(o) {
			return
		}
		if through := s.committed(); strings.Contains(o.Log(), "step of the stop took too long") { // it has a second for that
			s.say("%s left a checkpoint of %s", o.Name, through.UTC().Format(time.TimeOnly))
		} else if through.Before(asked.Add(-2 * time.Second)) {
			s.t.Errorf("a clean stop at %s has left a checkpoint of %s", asked.UTC().Format(time.TimeOnly), through.UTC().Format(time.TimeOnly))
		}
	})
}

// killInCheckpoint waits for one, and kills the operator around one of its writes.
func (s *span) killInCheckpoint(o *kit.Operator) {
	s.t.Helper()
	moment := []string{"lost", "unanswered", "answered"}[s.chance.Intn(3)]
	k := 1 + s.chance.Intn(3)
	s.say("around write %d, which is %s", k, moment)
	victim := killedAt(o.Proxy, kit.All(kit.Writes, kit.Resource(kit.Usages.Resource)), k, moment)
	victim.Store(o)
	if _, gone := o.Exited(30 * time.Second); !gone {
		s.t.Errorf("%s has made no checkpoint of %d writes in 30 s", o.Name, k)
		o.Kill()
	}
}

// succeed: the leader goes, the other one takes over, and a new one follows. Where the lease has to run out first, the new one is there as early
// as the other and may get it; it knows nothing of the time before it came.
func (s *span) succeed(goes func(*kit.Operator)) {
	s.t.Helper()
	leader := max(s.leads(), 0)
	goes(s.lives[leader])
	gone, begin := time.Now(), s.committed()
	s.lives = slices.Delete(s.lives, leader, leader+1)
	heir := s.lives[0]
	if s.chance.Intn(2) == 0 {
		s.must(s.ExpireLease(s.ctx))
		s.awaitLeader(heir)
	}
	follower := s.ready()
	ready := time.Now()
	if s.awaitLeader(heir, follower) == follower {
		s.say("%s, which came later, leads", follower.Name)
		s.unwatched(begin, gone, gone, ready)
	} else {
		s.inherit(heir, begin)
	}
}

// inherit: it counts on from this checkpoint, and may have seen the time after it only just.
func (s *span) inherit(heir *kit.Operator, begin time.Time) {
	if young := s.young[heir]; begin.Before(young.End) {
		s.blind = append(s.blind, young)
	}
}

// awaitLeader waits until one of these leads, and says which.
func (s *span) awaitLeader(lives ...*kit.Operator) (leader *kit.Operator) {
	s.t.Helper()
	s.must(kit.Until(s.ctx, 30*time.Second, "a new leader", func() (bool, error) {
		if i := s.leads(); i >= 0 {
			leader = s.lives[i]
		}
		return slices.Contains(lives, leader), nil
	}))
	return
}

func (s *span) loseFollower() {
	s.t.Helper()
	follower := 1 - max(s.leads(), 0)
	s.lives[follower].Kill()
	s.lives = slices.Delete(s.lives, follower, follower+1)
	s.ready()
}

// mend starts operators again that have ended by themselves, as a kubelet would, and says whether there were some.
func (s *span) mend() bool {
	s.t.Helper()
	var ended []*kit.Operator
	for _, o := range s.lives {
		if _, gone := o.Exited(0); gone {
			s.clean(kit.AliveOrExplained(o))
			s.say("%s ended: %s", o.Name, o.LogTail(1))
			ended = append(ended, o)
		}
	}
	if len(ended) == 0 {
		return false
	}
	s.lives = slices.DeleteFunc(s.lives, func(o *kit.Operator) bool { return slices.Contains(ended, o) })
	if len(s.lives) == 0 {
		s.rise(s.committed(), time.Now()) // when it ended is not known
		ended = ended[1:]
	} else {
		s.inherit(s.lives[0], s.committed())
	}
	for range ended {
		s.ready()
	}
	return true
}

func (s *span) unseen(kind kit.BlindKind, begin time.Time, more time.Duration) {
	s.blind = append(s.blind, kit.Blindness{Kind: kind, Begin: begin, End: time.Now().Add(more)})
}

const (
	backlog = 6 * time.Second          // what a watch sends in the five seconds after it was opened may be older (controller/continuity.hpp)
	again   = 10*time.Second + backlog // how long after a break an end may still be unattributed: connections are there within 10 s (F4)
)

// cut: connections are reset, and none is accepted for a while. They are there again within 10 s (F4).
func (s *span) cut() {
	began := time.Now()
	for _, o := range s.lives {
		o.Proxy.Refuse(true)
	}
	time.Sleep(s.between(2*time.Second, 6*time.Second))
	for _, o := range s.lives {
		o.Proxy.Refuse(false)
	}
	s.unseen(kit.Broken, began, again)
}

// silence: not a byte moves, and then all of it comes late.
func (s *span) silence() {
	began := time.Now()
	for _, o := range s.lives {
		o.Proxy.Freeze(true)
	}
	time.Sleep(s.between(2*time.Second, 6*time.Second))
	for _, o := range s.lives {
		o.Proxy.Freeze(false)
	}
	s.unseen(kit.Late, began, 2*time.Second)
}

// restartServer kills it: asked to end it takes 15 s, which no lease survives. What it does in that moment it may do without a line in its log,
// so nobody writes then.
func (s *span) restartServer() {
	s.t.Helper()
	s.quiet.Lock()
	time.Sleep(time.Second)
	began := time.Now()
	s.must(s.Cluster.Stop("kube-apiserver", "KILL"))
	s.quiet.Unlock()
	for tries := 1; ; tries++ { // it has a minute, which is not enough next to whatever else a machine may do
		err := s.Cluster.Start("kube-apiserver")
		if err == nil {
			break
		}
		if s.say("%v", err); tries == 3 {
			s.must(err)
		}
	}
	for _, component := range []string{"kwok", "leases"} { // clients of its age may take a minute to see again
		s.must(s.Cluster.Stop(component, "KILL"))
		s.must(s.Cluster.Start(component))
	}
	s.unseen(kit.Broken, began, again)
}

func (s *span) freezeServer() {
	s.t.Helper()
	began := time.Now()
	s.must(s.Signal("kube-apiserver", syscall.SIGSTOP))
	time.Sleep(s.between(2*time.Second, 6*time.Second))
	s.must(s.Signal("kube-apiserver", syscall.SIGCONT))
	s.unseen(kit.Late, began, 2*time.Second)
	s.unseen(kit.Broken, began, again) // whoever has given up waiting
}

func (s *span) freeze() {
	leader := s.lives[max(s.leads(), 0)]
	began := time.Now()
	leader.Stop()
	time.Sleep(s.between(3*time.Second, 7*time.Second))
	leader.Cont()
	s.unseen(kit.Late, began, 2*time.Second)
	s.unseen(kit.Broken, began, again) // the server may have closed a connection that nobody read
}

// moveClock: the wall clock of all operators is another one from now on.
func (s *span) moveClock() {
	if s.wallFile == "" {
		return
	}
	by := []int64{-600, -61, -7, 0, 3, 45, 900}[s.chance.Intn(7)]
	s.say("the wall clock is %+d s beside the server's", by)
	s.must(setWallClock(s.wallFile, int64(s.ahead.Seconds())+by))
	time.Sleep(3 * time.Second)
}

// judge what was written between two checkpoints.
func (s *span) judge(before, after kit.UsageReading) bool {
	s.t.Helper()
	s.must(s.ledger.Follow())
	s.sameAsAPI()
	wrong, report := s.ledger.Judge(before, after, s.blind)
	s.clean(wrong)
	if s.t.Log(report); len(wrong) > 0 {
		s.stays(before.Through, after.Through)
	}
	total := 0
	for _, stay := range s.ledger.Stays() {
		if stay.Seconds(before.Through, after.Through) > 0 {
			total++
		}
	}
	if total < 15 {
		s.t.Errorf("only %d pods held cards: this proved nothing", total)
	}
	return len(wrong) > 0
}

// sameAsAPI: the log has told of every pod that is there, and of the end of every other.
func (s *span) sameAsAPI() {
	s.t.Helper()
	there := map[types.UID]bool{}
	list, err := s.Client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{})
	s.must(err)
	for _, p := range list.Items {
		there[p.UID] = true
	}
	s.must(s.ledger.Follow()) // what has ended meanwhile
	for _, name := range s.ledger.Resolve(there) {
		s.t.Errorf("the audit log does not tell of the end of pod %s", name)
	}
}

// stays that a person would look at, when sums differ.
func (s *span) stays(begin, end int64) {
	at := func(second int64) string {
		if second == 0 {
			return "still"
		}
		return time.Unix(second, 0).UTC().Format(time.TimeOnly)
	}
	for _, state := range s.ledger.Sick {
		s.say("%d cards of %s sick, asked %s, done %s", state.Cards, sickNode, state.Asked.UTC().Format("15:04:05.0"), state.Done.UTC().Format("15:04:05.0"))
	}
	for _, stay := range s.ledger.Stays() {
		if stay.Seconds(begin, end) == 0 {
			continue
		}
		end := "finished"
		if stay.Removed {
			end = "deleted"
		}
		s.say("%s on %s from %s to %s %s, gone %s: %v", stay.Name(), stay.Node, at(stay.Since), at(stay.Until), end, stay.Gone.UTC().Format(time.TimeOnly), s.ledger.Parts(stay))
	}
}
