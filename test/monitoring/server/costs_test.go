package server

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/monitoring/grafana"
)

// paid is a team with a quota and two pods, on a node that has no agent: what it costs, the operator knows alone. `share-0` has more of the
// memory of a card than of its cores.
const paid = `
{apiVersion: v1, kind: Namespace, metadata: {name: paid, labels: {example.com/cost-center: blue}}}
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorQuota
metadata: {name: limits, namespace: paid}
spec: {hard: [{units: cards, max: 4}, {units: cores, max: 200}, {units: memory, max: 65536}]}
---
apiVersion: v1
kind: Pod
metadata: {name: share-0, namespace: paid}
spec: {nodeName: t4-2, containers: [{name: main, image: "none.test/none:1", resources: {limits: {tencent.com/vcuda-core: "40", tencent.com/vcuda-memory: "40"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: whole-0, namespace: paid}
spec: {nodeName: t4-2, containers: [{name: main, image: "none.test/none:1", resources: {limits: {tencent.com/vcuda-core: "100", tencent.com/vcuda-memory: "1"}}}]}
`

const cardHour = 2.5 // the price of the policy of this lane

// expression of a panel's query, with what is chosen.
func expression(t *testing.T, place string, chosen map[string]string) string {
	t.Helper()
	dashboards, err := grafana.Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	for _, dashboard := range dashboards {
		for _, one := range dashboard.Queries() {
			if one.Place == place {
				return one.Filled(chosen)
			}
		}
	}
	t.Fatalf("no dashboard has %q", place)
	return ""
}

func shows(t *testing.T, address, place string, wanted series) {
	t.Helper()
	until(t, 20*time.Second, place+" is what the API says", func() error {
		is, err := query(address, expression(t, place, map[string]string{"namespace": "paid"}))
		if differences := wanted.differences(is); err == nil && len(differences) > 0 {
			err = fmt.Errorf("%s", strings.Join(differences, "\n"))
		}
		return err
	})
}

// quotasAreThoseOfTheAPI compares the panels of quotas with the status that the operator wrote on the object.
func quotasAreThoseOfTheAPI(t *testing.T, address string) {
	t.Helper()
	var quota struct {
		Status struct {
			Hard []struct {
				Units                     string
				Max, Used, Borrowed, Lent float64
			}
		}
	}
	until(t, 20*time.Second, "the quota has a status", func() error {
		quota.Status.Hard = nil
		if err := json.Unmarshal([]byte(kubectl(t, "", "get", "acceleratorquota", "limits", "-n", "paid", "-o", "json")), &quota); err != nil {
			return err
		}
		for _, row := range quota.Status.Hard {
			if row.Used == 0 {
				return fmt.Errorf("nothing counts as %s", row.Units)
			}
		}
		if len(quota.Status.Hard) != 3 {
			return fmt.Errorf("%d limits", len(quota.Status.Hard))
		}
		return nil
	})
	scales := map[string]float64{"cards": 1, "cores": 1.0 / 100, "memory": 1.0 / 1024}
	labels := key(map[string]string{"namespace": "paid"})
	for _, row := range quota.Status.Hard {
		place, scale := "namespaces / Quotas of "+row.Units+" / ", scales[row.Units]
		for letter, value := range map[string]float64{"A": row.Max, "B": row.Used, "C": row.Borrowed, "D": row.Lent} {
			shows(t, address, place+letter, series{labels: value * scale})
		}
	}
}

// costsAreThoseOfTheAPI compares the panels of costs with the limits of the pods, the size of a card as its node's label has it, and the price.
func costsAreThoseOfTheAPI(t *testing.T, address string) {
	t.Helper()
	size, err := strconv.ParseFloat(kubectl(t, "", "get", "node", "t4-2", "-o", `jsonpath={.metadata.labels.nvidia\.com/gpu\.memory}`), 64)
	if err != nil {
		t.Fatal(err)
	}
	part := 40 * 256 / size // of share-0; of the cores it has 0.4
	if part <= 0.4 {
		t.Fatalf("share-0 has %v of the memory of a card, which is not its larger part", part)
	}
	cost := (1 + part) * cardHour
	shows(t, address, "namespaces / Cost per hour / A", series{key(map[string]string{"namespace": "paid", "currency": "EUR"}): cost})
	shows(t, address, "namespaces / Cost per hour by organization / A", series{key(map[string]string{"organization": "blue", "currency": "EUR"}): cost})
	shows(t, address, "namespaces / Cost per hour by owner / A", series{key(map[string]string{"namespace": "paid", "owner": "Pod", "currency": "EUR"}): cost})
}

// monthCostsWhatTheReportSays runs a pod for a while, and asks for its cost twice: the ledger, which is exact, and the dashboard, which adds up
// samples. Here both scrapes and rules come once a second, so they differ by seconds.
func monthCostsWhatTheReportSays(t *testing.T, address string) {
	t.Helper()
	kubectl(t, "", "create", "namespace", "billed")
	kubectl(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "short", "namespace": "billed"}, "spec": {"nodeName": "t4-2", "containers": [
		{"name": "main", "image": "none.test/none:1", "resources": {"limits": {"tencent.com/vcuda-core": "50", "tencent.com/vcuda-memory": "4"}}}]}}`, "apply", "-f", "-")
	time.Sleep(30 * time.Second)
	kubectl(t, "", "delete", "pod", "short", "-n", "billed", "--grace-period=0", "--force")
	var report struct {
		Rows []struct{ CoreSeconds float64 }
		Cost string
	}
	seconds := 0.0
	until(t, 90*time.Second, "the report has all of the pod", func() error {
		before := seconds
		text := call(t, "", program, "report", "chargeback", "-n", "billed", "-o", "json", "--kubeconfig", kubeconfig)
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			return err
		}
		if len(report.Rows) != 1 {
			return fmt.Errorf("%d rows", len(report.Rows))
		}
		if seconds = report.Rows[0].CoreSeconds / 50; seconds < 28 || seconds != before {
			return fmt.Errorf("%v seconds, and %v before", seconds, before)
		}
		return nil
	})
	billed, err := strconv.ParseFloat(report.Cost, 64)
	if err != nil {
		t.Fatal(err)
	}
	second := 0.5 * cardHour / 3600
	if math.Abs(billed-seconds*second) > 1e-5 {
		t.Errorf("%v seconds cost %v, wanted %v", seconds, billed, seconds*second)
	}
	// The query takes a sample a minute and divides by 60; here it takes one a second.
	sampled, err := query(address, strings.ReplaceAll(expression(t, "namespaces / Cost of this month / A",
		map[string]string{"namespace": "billed", "__range": "10m"}), ":1m]", ":1s]"))
	if err != nil {
		t.Fatal(err)
	}
	cost := sampled[key(map[string]string{"namespace": "billed", "currency": "EUR"})] / 60
	t.Logf("a pod of %v s costs %.6f EUR by the ledger, and %.6f EUR by samples", seconds, billed, cost)
	if math.Abs(cost-billed) > 4*second {
		t.Errorf("by samples it costs %v, and the ledger says %v: %v seconds apart", cost, billed, (cost-billed)/second)
	}
}
