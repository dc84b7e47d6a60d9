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

// What a kubelet says of a pod that it looks at before the plugin has come back to it: devicesToAllocate in k8s.io/kubernetes
// pkg/kubelet/cm/devicemanager/manager.go. It waits for no plugin, so at a high load some pods that came before it was killed end so.
var hadNoPlugin = regexp.MustCompile(`cannot allocate unregistered device|no healthy devices present|previously allocated devices are no longer healthy`)

// A kubelet that is killed under a stream of pods comes back, and rejects none that came when it had the plugin again, and of the others only those
// that it looked at without the plugin. Each pod sees its share. The log says how many were rejected, and how long a container waited for its share.
func TestAKubeletKilledUnderAStreamOfPodsRejectsNoneThatFollows_long(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	is := &machine{t: t, again: startSharePlugin, mps: startMps(t)}
	is.plugin = is.again(t)
	is.plugin.awaitTaken(1)
	offers(t, ownCores, 200)
	const killed = 7 // the first pod after it
	var admitted, rejected int
	for round := range 4 {
		var pods []placedPod
		for i := range 14 {
			one := share{[]string{cardA, cardB}[i%2], int64(1 + i), 1}
			pods = append(pods, placedPod{pod: onShares(fmt.Sprintf("k%d-%d", round, i), false, one), seen: map[string][]string{"c0": one.seen()}})
			if i == killed {
				is.disturb("kubelet")
			}
			create(t, cluster, pods[i].pod)
			time.Sleep(100 * time.Millisecond)
		}
		for i, one := range pods {
			switch why := one.lives(t); {
			case why == "":
				admitted++
			case i < killed && hadNoPlugin.MatchString(why):
				rejected++
			default:
				t.Errorf("%s was rejected: %s", one.pod.Name, why)
			}
		}
	}
	var took []int
	for _, line := range startTook.FindAllStringSubmatch(is.plugin.said.text(), -1) {
		milliseconds, err := strconv.Atoi(line[1])
		must(t, err)
		took = append(took, milliseconds)
	}
	if len(took) < admitted {
		t.Fatalf("%d pods began, and the plugin tells of %d starts", admitted, len(took))
	}
	slices.Sort(took)
	t.Logf("%d pods, and %d rejected without the plugin; a container waited for its share: median %d ms, 99 of 100 within %d ms", admitted, rejected, took[len(took)/2], took[len(took)*99/100])
}
