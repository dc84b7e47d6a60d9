package kit

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"time"
)

// AuditEvent is one finished request as the API server itself wrote it down. The cluster's policy logs every verb that changes.
type AuditEvent struct {
	Verb, UserAgent, RequestURI string
	User                        struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef      struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus struct{ Code int }
	Received       time.Time `json:"requestReceivedTimestamp"`
	Answered       time.Time `json:"stageTimestamp"`
	Stage          string
}

// Pod is the name of the pod whose token was shown; empty for other ways to say who one is.
func (e AuditEvent) Pod() string {
	if names := e.User.Extra["authentication.kubernetes.io/pod-name"]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// By says whether the operator behind the proxy of that name sent it.
func (e AuditEvent) By(proxy string) bool { return strings.HasSuffix(e.UserAgent, "proxy/"+proxy) }

// Mutating, Write: as for Request.
func (e AuditEvent) Mutating() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !strings.HasSuffix(e.ObjectRef.Resource, "reviews")
	}
	return false
}
func (e AuditEvent) Write() bool { return e.Mutating() && e.ObjectRef.Resource != "leases" }

func (e AuditEvent) String() string {
	return e.Received.Format("15:04:05.000") + " " + e.Verb + " " + e.RequestURI + " by " + e.UserAgent
}

// Audit reads the events answered since a moment. The server writes its log without a buffer, a line a request.
func (c *Cluster) Audit(since time.Time, keep func(AuditEvent) bool) ([]AuditEvent, error) {
	file, err := os.Open(c.AuditLog)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []AuditEvent
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e AuditEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" || e.Answered.Before(since) {
			continue // the last line may be half written
		}
		if keep == nil || keep(e) {
			out = append(out, e)
		}
	}
	return out, lines.Err()
}
