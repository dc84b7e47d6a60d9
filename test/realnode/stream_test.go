package realnode

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"
)

var startTook = regexp.MustCompile(`a container may start.*milliseconds"?[=:]"?(\d+)`)

// A kubelet that is killed under a stream of pods comes back, has the plugin again before it admits a pod, and rejects none. Each pod sees its share. The
// log says how long a container waited for its share, with as many pods on the node.
func TestAKubeletKilledUnderAStreamOfPodsRejectsNone_long(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	is := &machine{t: t, again: startSharePlugin, mps: startMps(t)}
	is.plugin = is.again(t)
	is.plugin.awaitTaken(1)
	offers(t, ownCores, 200)
	var all []placedPod
	for round := range 4 {
		var pods []placedPod
		for i := range 14 {
			one := share{[]string{cardA, cardB}[i%2], int64(1 + i), 1}
			pods = append(pods, placedPod{pod: onShares(fmt.Sprintf("k%d-%d", round, i), false, one), seen: map[string][]string{"c0": one.seen()}})
			if i == 7 {
				is.disturb("kubelet")
			}
			create(t, cluster, pods[i].pod)
			time.Sleep(100 * time.Millisecond)
		}
		for _, one := range pods {
			if why := one.lives(t); why != "" {
				t.Errorf("%s was rejected: %s", one.pod.Name, why)
			}
		}
		all = append(all, pods...)
	}
	var took []int
	for _, line := range startTook.FindAllStringSubmatch(is.plugin.said.text(), -1) {
		milliseconds, err := strconv.Atoi(line[1])
		must(t, err)
		took = append(took, milliseconds)
	}
	if len(took) < len(all) {
		t.Fatalf("%d pods began, and the plugin tells of %d starts", len(all), len(took))
	}
	slices.Sort(took)
	t.Logf("%d pods; a container waited for its share: median %d ms, 99 of 100 within %d ms", len(all), took[len(took)/2], took[len(took)*99/100])
}
