package kit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The second reader of the ledger of time. It is written from docs/decisions/014 and docs/engine.md, and knows the API server's audit log
// (a cluster that is `up --audit-bodies`) and the cards that the test has made. It shares nothing with the operator.

// CardTime is compute and memory times seconds. A card has 100 cores.
type CardTime struct{ CoreSeconds, MemoryMiBSeconds int64 }

func (a CardTime) Plus(b CardTime) CardTime {
	return CardTime{a.CoreSeconds + b.CoreSeconds, a.MemoryMiBSeconds + b.MemoryMiBSeconds}
}
func (a CardTime) Minus(b CardTime) CardTime {
	return CardTime{a.CoreSeconds - b.CoreSeconds, a.MemoryMiBSeconds - b.MemoryMiBSeconds}
}
func (a CardTime) Times(n int64) CardTime { return CardTime{a.CoreSeconds * n, a.MemoryMiBSeconds * n} }

// Within says whether neither amount is larger.
func (a CardTime) Within(b CardTime) bool {
	return a.CoreSeconds <= b.CoreSeconds && a.MemoryMiBSeconds <= b.MemoryMiBSeconds
}

// UsageKey is what the time of a namespace is grouped by.
type UsageKey struct {
	Namespace, Model, Mode, Organization string
	Priority                             int32
}

// CardStock is what a node of the test has: cards that are alike, and resources that are only counted.
type CardStock struct {
	Module    string // as in the label quartermaster.io/module
	Model     string
	Cards     int64
	MemoryMiB int64 // of one card
	Counts    map[string]int64
}

// modeOf a part: whole cards are pGPU on whichever node they are.
func modeOf(module string, whole bool) string {
	switch {
	case whole:
		return "pGPU"
	case module == "mps":
		return "MPS"
	}
	return "vGPU"
}

// Capacity of all nodes per second, by model.
func Capacity(stock map[string]CardStock) map[string]CardTime {
	out := map[string]CardTime{}
	for _, node := range stock {
		if node.Cards > 0 {
			out[node.Model] = out[node.Model].Plus(CardTime{100, node.MemoryMiB}.Times(node.Cards))
		}
		for key, pieces := range node.Counts {
			out[key] = out[key].Plus(CardTime{CoreSeconds: 100 * pieces})
		}
	}
	return out
}

// Stay is how long a pod held its part of a node. Times are whole seconds since 1970, as the ledger has them.
type Stay struct {
	Pod      *corev1.Pod // its spec, as the server answered last
	Node     string
	Since    int64
	Until    int64     // 0: it holds it still
	Reported time.Time // when the API had its end
	Removed  bool      // it ended because it was deleted: nothing is left that would say when
	Gone     time.Time // when it was deleted, also after it had finished
	retold   int64     // the scheduler has taken back that it is bound: a later moment, and the only one that the pod tells from then on
	doubtful time.Time // a deletion began, and the server gave up waiting for its own store: it may have happened
	tried    tryout    // a binding of which the same is true
}

// tryout of a node.
type tryout struct {
	node string
	when time.Time
}

// Name with its namespace.
func (s *Stay) Name() string { return s.Pod.Namespace + "/" + s.Pod.Name }

// Seconds it held its part between two moments.
func (s *Stay) Seconds(begin, end int64) int64 {
	if s.Until != 0 {
		end = min(end, s.Until)
	}
	return max(0, end-max(begin, s.Since))
}

// AuditLedger reads who held what from the audit log.
type AuditLedger struct {
	Organization string     // label of Namespaces that names it; empty: there are none
	SickNode     string     // whose cards are withdrawn at times, and on which nothing runs
	Sick         []Sickness // in the order in which it happened
	absences     []absence  // in the order in which they began
	stock        map[string]CardStock
	declared     map[string]bool
	pods         map[types.UID]*Stay
	names        map[string]types.UID // namespace/name of the pod that has it now
	labels       map[string]map[string]string
	file         string
	read         int64
}

// absence of a node: the time in which it was not Ready. A server that is away for too long takes all nodes for lost when it comes back.
type absence struct {
	node        string
	since, till time.Time // till zero: it still is
}

// NewAuditLedger of a log that may grow; nothing is read yet.
func NewAuditLedger(file string, stock map[string]CardStock) *AuditLedger {
	l := &AuditLedger{stock: stock, file: file, declared: map[string]bool{}, pods: map[types.UID]*Stay{}, names: map[string]types.UID{},
		labels: map[string]map[string]string{}}
	for _, node := range stock {
		for key := range node.Counts {
			l.declared[key] = true
		}
	}
	return l
}

// Follow reads what was added to the log. A line that is half written is left for the next time.
func (l *AuditLedger) Follow() error {
	file, err := os.Open(l.file)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(l.read, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		l.read += int64(len(line))
		if err := l.see(line); err != nil {
			return err
		}
	}
}

type bodyEvent struct {
	Verb, RequestURI, Stage string
	ObjectRef               struct {
		Resource, Subresource, Namespace, Name, APIGroup string
		UID                                              types.UID
	}
	ResponseStatus struct{ Code int }
	RequestObject  json.RawMessage
	ResponseObject json.RawMessage
	StageTimestamp time.Time
	Received       time.Time `json:"requestReceivedTimestamp"`
}

// object of an answer, where it is of that kind.
func (e *bodyEvent) object(kind string, into any) bool {
	var head metav1.TypeMeta
	return json.Unmarshal(e.ResponseObject, &head) == nil && head.Kind == kind && json.Unmarshal(e.ResponseObject, into) == nil
}

func (e *bodyEvent) dry() bool {
	uri, err := url.Parse(e.RequestURI)
	return err == nil && uri.Query().Get("dryRun") != ""
}

func (l *AuditLedger) see(line []byte) error {
	isOurs := func(resource string) bool { return bytes.Contains(line, []byte(`"resource":"`+resource+`"`)) }
	if !slices.ContainsFunc([]string{"pods", "namespaces", "nodes"}, isOurs) {
		return nil
	}
	var e bodyEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("the audit log has a line that is no event: %w: %.200s", err, line)
	}
	if s := l.named(&e); s != nil && e.ObjectRef.Resource == "pods" && e.ResponseStatus.Code/100 == 5 {
		l.doubt(s, &e)
	}
	if e.Stage != "ResponseComplete" || e.ResponseStatus.Code/100 != 2 || e.ObjectRef.APIGroup != "" || e.dry() {
		return nil
	}
	if e.ObjectRef.Resource == "namespaces" {
		var space corev1.Namespace
		if e.object("Namespace", &space) {
			l.labels[space.Name] = space.Labels
		}
		return nil
	}
	if e.ObjectRef.Resource == "nodes" {
		var node corev1.Node
		if e.object("Node", &node) {
			l.node(&node, e.StageTimestamp)
		}
		return nil
	}
	if e.ObjectRef.Resource != "pods" {
		return nil
	}
	if len(e.ResponseObject) == 0 {
		return fmt.Errorf("the audit log has no bodies, so nobody can read from it who held what: cluster.sh up --audit-bodies")
	}
	l.pod(&e)
	return nil
}

func (l *AuditLedger) node(node *corev1.Node, when time.Time) {
	isReady := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	open := slices.IndexFunc(l.absences, func(a absence) bool { return a.node == node.Name && a.till.IsZero() })
	switch {
	case isReady && open >= 0:
		l.absences[open].till = when
	case !isReady && open < 0:
		l.absences = append(l.absences, absence{node: node.Name, since: when})
	}
}

// named is the pod that has that name now.
func (l *AuditLedger) named(e *bodyEvent) *Stay {
	return l.pods[l.names[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name]]
}

// doubt what the server gave up on: it may have happened.
func (l *AuditLedger) doubt(s *Stay, e *bodyEvent) {
	var binding corev1.Binding
	switch {
	case e.Verb == "delete" && s.doubtful.IsZero():
		s.doubtful = e.Received
	case e.ObjectRef.Subresource == "binding" && s.tried.node == "" && json.Unmarshal(e.RequestObject, &binding) == nil:
		s.tried = tryout{binding.Target.Name, e.Received}
	}
}

// Tried are pods that may have held what their node lends, from a binding in doubt until they went: no later answer says whether they did.
func (l *AuditLedger) Tried() (out []*Stay) {
	for _, s := range l.pods {
		if s.Since != 0 || s.tried.node == "" || s.Gone.IsZero() {
			continue
		}
		perhaps := *s
		perhaps.Node, perhaps.Since, perhaps.Until, perhaps.Reported, perhaps.Removed = s.tried.node, s.tried.when.Unix(), s.Gone.Unix(), s.Gone, true
		out = append(out, &perhaps)
	}
	return
}

// Resolve deletions of which the log does not say whether they happened, from the pods that are there. Returns the names of those whose end
// the log does not tell at all.
func (l *AuditLedger) Resolve(there map[types.UID]bool) (untold []string) {
	for uid, s := range l.pods {
		switch {
		case !s.Gone.IsZero() || there[uid]:
		case s.doubtful.IsZero():
			untold = append(untold, s.Name())
		default:
			s.remove(s.doubtful)
		}
	}
	slices.Sort(untold)
	return
}

func (l *AuditLedger) pod(e *bodyEvent) {
	named := l.named(e)
	var pod corev1.Pod
	if e.object("Pod", &pod) {
		named = l.absorb(&pod, e.StageTimestamp)
	}
	switch {
	case e.ObjectRef.Subresource == "binding" && named != nil:
		var binding corev1.Binding
		if json.Unmarshal(e.RequestObject, &binding) == nil && named.Since == 0 { // the condition has the very second; it comes later
			named.Node, named.Since = binding.Target.Name, e.StageTimestamp.Unix()
		}
	case e.ObjectRef.Subresource == "eviction" && named != nil:
		l.ask(named, nil, e.StageTimestamp)
	case e.Verb == "delete" && pod.UID != "":
		if grace := pod.DeletionGracePeriodSeconds; (grace == nil || *grace == 0) && len(pod.Finalizers) == 0 {
			named.remove(e.StageTimestamp)
		}
	case e.Verb == "delete" && named != nil:
		named.remove(e.StageTimestamp)
	case e.Verb == "deletecollection":
		var list corev1.PodList
		var options metav1.DeleteOptions
		_ = json.Unmarshal(e.RequestObject, &options)
		if e.object("PodList", &list) {
			for i := range list.Items { // as they were before
				l.ask(l.absorb(&list.Items[i], e.StageTimestamp), options.GracePeriodSeconds, e.StageTimestamp)
			}
		}
	}
}

// ask is a deletion whose answer does not say whether the pod is gone: it is at once where it has no grace, and else someone confirms it later.
func (l *AuditLedger) ask(s *Stay, grace *int64, when time.Time) {
	if grace == nil {
		grace = s.Pod.Spec.TerminationGracePeriodSeconds
	}
	finished := s.Pod.Status.Phase == corev1.PodSucceeded || s.Pod.Status.Phase == corev1.PodFailed
	if (s.Node == "" || finished || (grace != nil && *grace == 0)) && len(s.Pod.Finalizers) == 0 {
		s.remove(when)
	}
}

func (s *Stay) remove(when time.Time) {
	if !s.Gone.IsZero() {
		return
	}
	s.Gone = when
	if s.Until == 0 && s.Since != 0 {
		s.Until, s.Reported, s.Removed = max(s.Since, when.Unix()), when, true
	}
}

// absorb what an answer says of a pod.
func (l *AuditLedger) absorb(pod *corev1.Pod, when time.Time) *Stay {
	s := l.pods[pod.UID]
	if s == nil {
		s = &Stay{}
		l.pods[pod.UID] = s
		l.names[pod.Namespace+"/"+pod.Name] = pod.UID
	}
	if !s.Gone.IsZero() {
		return s // the log has the order of ends of requests, not of what they did
	}
	s.Pod = pod.DeepCopy()
	if pod.Spec.NodeName != "" {
		s.Node = pod.Spec.NodeName
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && pod.Spec.NodeName != "" {
			s.Since = c.LastTransitionTime.Unix()
		}
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && s.Since != 0 {
			if s.retold = c.LastTransitionTime.Unix(); pod.Status.StartTime != nil {
				s.retold = min(s.retold, pod.Status.StartTime.Unix())
			}
		}
	}
	if (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) && s.Until == 0 && s.Since != 0 {
		s.Until, s.Reported = max(s.Since, finished(pod, when)), when
	}
	return s
}

// finished is when the last container ended; a kubelet that says nothing of it gives no better time than that of its report.
func finished(pod *corev1.Pod, reported time.Time) (last int64) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, c := range list {
			if c.State.Terminated != nil && !c.State.Terminated.FinishedAt.IsZero() {
				last = max(last, c.State.Terminated.FinishedAt.Unix())
			}
		}
	}
	if last == 0 {
		return reported.Unix()
	}
	return last
}

// Parts of cards that a pod held, by what they are grouped by, per second.
func (l *AuditLedger) Parts(s *Stay) map[UsageKey]CardTime {
	stock, known := l.stock[s.Node]
	if !known {
		return nil
	}
	key := UsageKey{Namespace: s.Pod.Namespace, Model: stock.Model}
	if s.Pod.Spec.Priority != nil {
		key.Priority = *s.Pod.Spec.Priority
	}
	if l.Organization != "" {
		key.Organization = l.labels[s.Pod.Namespace][l.Organization]
	}
	out := map[UsageKey]CardTime{}
	for _, container := range running(s.Pod) {
		want := wantedOf(container, stock.Module, l.declared)
		part := CardTime{want.cores, want.mib}
		if want.percent > 0 {
			part.MemoryMiBSeconds = stock.MemoryMiB * want.percent / 100
		}
		if want.whole {
			part = CardTime{100, stock.MemoryMiB}
		}
		if key.Mode = modeOf(stock.Module, want.whole); want.cards > 0 {
			out[key] = out[key].Plus(part.Times(want.cards))
		}
		for name, pieces := range want.counts {
			counted := key
			counted.Model, counted.Mode = name, "device"
			out[counted] = out[counted].Plus(CardTime{CoreSeconds: 100 * pieces})
		}
	}
	return out
}

// Stays of pods that held cards, in the order in which they began.
func (l *AuditLedger) Stays() (out []*Stay) {
	for _, s := range l.pods {
		if s.Since != 0 && len(l.Parts(s)) > 0 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *Stay) int {
		if a.Since != b.Since {
			return int(a.Since - b.Since)
		}
		return bytes.Compare([]byte(a.Pod.UID), []byte(b.Pod.UID))
	})
	return
}

// Held between two moments.
func (l *AuditLedger) Held(begin, end int64) map[UsageKey]CardTime {
	out := map[UsageKey]CardTime{}
	for _, s := range l.Stays() {
		for key, part := range l.Parts(s) {
			out[key] = out[key].Plus(part.Times(s.Seconds(begin, end)))
		}
	}
	maps.DeleteFunc(out, func(_ UsageKey, time CardTime) bool { return time == CardTime{} })
	return out
}
