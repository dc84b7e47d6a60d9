package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"time"
)

// writes are the requests of one program that change something, leases left out, as the API server's own log has them.
type writes struct {
	kinds  map[string]int // "patch nodes" -> how many
	onNode map[string]int // node -> those on Node and AcceleratorNode that were taken, events left out
	failed int            // answered with an error; they are counted in kinds
}

// written reads the log from a moment on; `agent` is the beginning of the program's User-Agent.
func (c *plane) written(agent string, since time.Time) (writes, error) {
	out := writes{kinds: map[string]int{}, onNode: map[string]int{}}
	file, err := os.Open(c.Facts["AUDIT_LOG"])
	if err != nil {
		return out, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent, Stage string
			ObjectRef              struct{ Resource, Subresource, Name string }
			ResponseStatus         struct{ Code int }
			Received               time.Time `json:"requestReceivedTimestamp"`
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" || e.Received.Before(since) || !strings.HasPrefix(e.UserAgent, agent) ||
			e.ObjectRef.Resource == "leases" || strings.HasSuffix(e.ObjectRef.Resource, "reviews") {
			continue
		}
		what := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		out.kinds[what]++
		switch {
		case e.ResponseStatus.Code >= 400:
			out.failed++
		case e.ObjectRef.Resource == "nodes" || e.ObjectRef.Resource == "acceleratornodes":
			out.onNode[e.ObjectRef.Name]++
		}
	}
	return out, lines.Err()
}

// perNode is the mean and the most.
func (w writes) perNode(nodes int) (mean, most float64) {
	sum := 0
	for _, n := range w.onNode {
		sum += n
		most = max(most, float64(n))
	}
	return float64(sum) / float64(nodes), most
}

// others a node: events, the status of the policy, which counts nodes, and what was refused.
func (w writes) others(nodes int) float64 {
	sum := 0
	for _, n := range w.kinds {
		sum += n
	}
	for _, n := range w.onNode {
		sum -= n
	}
	return float64(sum) / float64(nodes)
}
