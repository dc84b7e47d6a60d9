package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"time"
)

// writes by whom, as the API server's own log has them, those of leases left out. It has no reads.
type writes struct{ played, real, operator, others int }

func (p *fleetPlane) writes(since, end time.Time) (out writes, err error) {
	file, err := os.Open(p.Facts["AUDIT_LOG"])
	if err != nil {
		return out, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e struct {
			Stage, UserAgent string
			User             struct{ Username string }
			ObjectRef        struct{ Resource string }
			Received         time.Time `json:"requestReceivedTimestamp"`
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" || e.Received.Before(since) || e.Received.After(end) || e.ObjectRef.Resource == "leases" {
			continue
		}
		switch {
		case e.UserAgent == userAgent:
			out.played++
		case e.User.Username == "system:serviceaccount:"+namespace+":"+account:
			out.real++
		case strings.HasPrefix(e.UserAgent, "quartermaster/"):
			out.operator++
		default:
			out.others++
		}
	}
	return out, lines.Err()
}
