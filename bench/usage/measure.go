package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// operator is the program as a person would run it outside a cluster.
type operator struct {
	*kit.Process
	address string
}

func (p *plane) start(o options) (*operator, error) {
	addresses, err := kit.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	command := kit.Command(kit.AnyCore, o.operator, "controller", "--kubeconfig", p.Kubeconfig, "--metrics-address", addresses[0],
		"--lease-duration", "600", "--renew-deadline", "500")
	command.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
	started, err := kit.Start(command)
	return &operator{started, addresses[0]}, err
}

// page is one scrape. The operator does not compress it, though Prometheus would take that.
type page struct {
	took time.Duration // to the last byte
	text string
}

func (op *operator) scrape(ctx context.Context) (page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+op.address+"/metrics", nil)
	if err != nil {
		return page{}, err
	}
	began := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return page{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("/metrics: %s", answer.Status)
	}
	return page{took, string(body)}, err
}

// count of series whose name begins so.
func (p page) count(prefix string) int { return p.countIn(prefix, "") }

// countIn those that have the label.
func (p page) countIn(prefix, label string) (count int) {
	for line := range strings.Lines(p.text) {
		if !strings.HasPrefix(line, "#") && strings.HasPrefix(line, prefix) && strings.Contains(line, label) {
			count++
		}
	}
	return count
}

// value of the series; -1: there is none.
func (p page) value(name string) float64 {
	for line := range strings.Lines(p.text) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), name+" "); is {
			if number, err := strconv.ParseFloat(text, 64); err == nil {
				return number
			}
		}
	}
	return -1
}

// until the page says so; patience is for the API server, which shares the machine.
func (op *operator) until(ctx context.Context, name string, wanted int) error {
	for deadline := time.Now().Add(5 * time.Minute); ; {
		found, err := op.scrape(ctx)
		if err == nil && int(found.value(name)) == wanted {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is %.0f after five minutes, not %d", name, found.value(name), wanted)
		}
		if ended := op.Alive(); ended != nil {
			return ended
		}
		if err := kit.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// rest waits until the operator has used less than 3 % of a core for three seconds in a row, and answers its memory.
func (op *operator) rest(ctx context.Context, least time.Duration) (map[string]float64, error) {
	if err := kit.Pause(ctx, least); err != nil {
		return nil, err
	}
	last, err := op.CPU()
	for calm, deadline := 0, time.Now().Add(10*time.Minute); calm < 3; {
		if err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the operator does not come to rest in ten minutes: %s", op.Tail)
		}
		if err = kit.Pause(ctx, time.Second); err != nil {
			return nil, err
		}
		var now time.Duration
		now, err = op.CPU()
		if calm++; now-last > 30*time.Millisecond {
			calm = 0
		}
		last = now
	}
	return op.Memory()
}

// untilReady waits until the operator reports so many nodes Ready, as long as more of them become so.
func (op *operator) untilReady(ctx context.Context, nodes int) error {
	const patience = 3 * time.Minute
	for ready, grew := 0, time.Now(); ; {
		if found, err := op.scrape(ctx); err == nil {
			count := found.countIn("quartermaster_node_phase_since_timestamp_seconds", `phase="Ready"`)
			if count == nodes {
				return nil
			}
			if count > ready {
				ready, grew = count, time.Now()
			}
		}
		if time.Since(grew) > patience {
			return fmt.Errorf("%d of %d nodes are Ready, and in %s no other became so", ready, nodes, patience)
		}
		if ended := op.Alive(); ended != nil {
			return ended
		}
		if err := kit.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// scrapes makes so many, one after the other with a pause, and adds their milliseconds.
func (op *operator) scrapes(ctx context.Context, count int) (millis []float64, last page, err error) {
	for range count {
		if last, err = op.scrape(ctx); err != nil {
			return nil, last, err
		}
		millis = append(millis, kit.Milliseconds(last.took))
		if err = kit.Pause(ctx, 100*time.Millisecond); err != nil {
			return nil, last, err
		}
	}
	slices.Sort(millis)
	return millis, last, nil
}

func quantile(sorted []float64, part float64) float64 {
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// measure: nodes alone, then with pods, then the scrapes, then pods that come and go.
func (p *plane) measure(ctx context.Context, o options) ([]figures.Row, error) {
	if err := p.addNodes(ctx, o.nodes); err != nil {
		return nil, err
	}
	op, err := p.start(o)
	if err != nil {
		return nil, err
	}
	defer op.Kill()
	kit.Say("%d nodes are in etcd", o.nodes)
	if err := p.addPlugins(ctx, o.nodes); err != nil {
		return nil, err
	}
	kit.Say("each has its plugin's pod")
	if err := op.untilReady(ctx, o.nodes); err != nil {
		return nil, err
	}
	nodesAlone, err := op.rest(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	atRest, err := op.scrape(ctx)
	if err != nil {
		return nil, err
	}
	kit.Say("%d nodes are Ready; RSS %.1f MiB; %d series", o.nodes, nodesAlone["VmRSS"], atRest.count(""))
	if err := kit.Each(o.pods, writers, func(i int) error {
		return p.etcd.Put(ctx, placed(i, i%o.nodes, i/o.nodes, fmt.Sprintf("web-%d", i%owners)))
	}); err != nil {
		return nil, err
	}
	kit.Say("%d pods are in etcd", o.pods)
	if err := op.until(ctx, "quartermaster_ledger_confirmed_entries", o.pods); err != nil {
		return nil, err
	}
	withPods, err := op.rest(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	if err := forgetPeak(op.PID()); err != nil {
		return nil, err
	}
	spent, err := op.CPU()
	if err != nil {
		return nil, err
	}
	millis, before, err := op.scrapes(ctx, o.scrapes)
	if err != nil {
		return nil, err
	}
	spentAfter, err := op.CPU()
	if err != nil {
		return nil, err
	}
	scraped, err := op.Memory()
	if err != nil {
		return nil, err
	}
	kit.Say("%d pods hold cards; RSS %.1f MiB, after %d scrapes %.1f, at most %.1f; the page has %d series, %.2f MiB; a scrape took %.0f ms (median), at most %.0f, and %.0f ms of CPU",
		o.pods, withPods["VmRSS"], o.scrapes, scraped["VmRSS"], scraped["VmHWM"], before.count(""), float64(len(before.text))/(1<<20), quantile(millis, 0.5), millis[len(millis)-1],
		kit.Milliseconds(spentAfter-spent)/float64(o.scrapes))
	most, err := p.churn(ctx, o, op)
	if err != nil {
		return nil, err
	}
	after, err := op.scrape(ctx)
	if err != nil {
		return nil, err
	}
	churned, err := op.rest(ctx, o.settle)
	if err != nil {
		return nil, err
	}
	one := func(value float64) []float64 { return []float64{value} }
	const allocated = "quartermaster_allocated_"
	return []figures.Row{
		figures.Absolute("scrape to the last byte: median", "ms", 150, one(quantile(millis, 0.5))),
		figures.Absolute("the same: p99", "ms", 150, one(quantile(millis, 0.99))),
		figures.Absolute("the same: slowest", "ms", 0, one(millis[len(millis)-1])),
		figures.Absolute("CPU of the operator per scrape", "ms", 0, one(kit.Milliseconds(spentAfter-spent)/float64(o.scrapes))),
		figures.Absolute("the page", "MiB", 0, one(float64(len(before.text))/(1<<20))),
		figures.Absolute("RSS at rest, nodes alone", "MiB", 0, one(nodesAlone["VmRSS"])),
		figures.Absolute("RSS at rest, with pods", "MiB", 0, one(withPods["VmRSS"])),
		figures.OrZero(figures.Absolute("peak while scraped, more than at rest with pods", "MiB", 20, one(scraped["VmHWM"]-withPods["VmRSS"]))),
		figures.OrZero(figures.Absolute("RSS after the churn, more than before it", "MiB", 0, one(churned["VmRSS"]-scraped["VmRSS"]))),
		figures.Absolute("series of what pods hold, before the churn", "", 0, one(float64(before.count(allocated)))),
		figures.Absolute("the same: most during the churn", "", 0, one(float64(most))),
		figures.Absolute("the same: after the churn", "", float64(before.count(allocated)), one(float64(after.count(allocated)))),
		figures.Absolute("all series, before the churn", "", 0, one(float64(before.count("")))),
		figures.Absolute("the same: after the churn", "", float64(before.count("")), one(float64(after.count("")))),
	}, nil
}

// churn makes and deletes pods, each with an owner of its own, so that a dead pod that is kept would be a series. It answers the most series
// seen meanwhile.
func (p *plane) churn(ctx context.Context, o options, op *operator) (most int, err error) {
	together := min(500, o.nodes)
	for done := 0; done < o.churn; done += together {
		var pods []*corev1.Pod
		for i := done; i < min(done+together, o.churn); i++ {
			pods = append(pods, placed(o.pods+i, i%o.nodes, o.pods/o.nodes+(i-done)/o.nodes, fmt.Sprintf("job-%d", i)))
		}
		if err := kit.Each(len(pods), writers, func(i int) error { return p.etcd.Put(ctx, pods[i]) }); err != nil {
			return 0, err
		}
		if err := op.until(ctx, "quartermaster_ledger_confirmed_entries", o.pods+len(pods)); err != nil {
			return 0, err
		}
		seen, err := op.scrape(ctx)
		if err != nil {
			return 0, err
		}
		most = max(most, seen.count("quartermaster_allocated_"))
		kit.Say("%d pods came, of which %d are gone; %d series", done+len(pods), done, seen.count(""))
		if err := kit.Each(len(pods), writers, func(i int) error { return p.etcd.Remove(ctx, pods[i]) }); err != nil {
			return 0, err
		}
		if err := op.until(ctx, "quartermaster_ledger_confirmed_entries", o.pods); err != nil {
			return 0, err
		}
	}
	return most, nil
}
