// Package kit is what the fault tests are made of: a real cluster, the operator as a process, a proxy between the two that
// misbehaves on demand, and oracles that judge from the audit log, the proxy's log and the API alone. It knows nothing of the
// operator's code, only of its contracts: flags, exit codes, objects in the API.
package kit

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Request is one request as the API server will understand it.
type Request struct {
	Number int // in order of arrival, from 1
	At     time.Time
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte

	Verb                                  string // get list watch create update patch delete deletecollection; empty outside the API
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
}

// Mutating is true for requests that change something. Reviews ask a question with POST; they change nothing.
func (r *Request) Mutating() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !strings.HasSuffix(r.Resource, "reviews")
	}
	return false
}

// Write is a mutating request that is not the upkeep of a lease: what a settled operator must not send.
func (r *Request) Write() bool { return r.Mutating() && r.Resource != "leases" }

func parseRequest(method string, u *url.URL) *Request {
	r := &Request{Method: method, Path: u.Path, Query: u.Query(), At: time.Now()}
	part := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case len(part) >= 3 && part[0] == "api":
		r.Version, part = part[1], part[2:]
	case len(part) >= 4 && part[0] == "apis":
		r.Group, r.Version, part = part[1], part[2], part[3:]
	default:
		return r // discovery, /version, /healthz: not about objects
	}
	if part[0] == "namespaces" && len(part) >= 3 && part[2] != "status" && part[2] != "finalize" {
		r.Namespace, part = part[1], part[2:]
	}
	r.Resource = part[0]
	if len(part) > 1 {
		r.Name = part[1]
	}
	if len(part) > 2 {
		r.Subresource = strings.Join(part[2:], "/")
	}
	r.Verb = verb(method, r)
	return r
}

func verb(method string, r *Request) string {
	switch method {
	case http.MethodGet:
		switch w := r.Query.Get("watch"); {
		case w == "1" || w == "true":
			return "watch"
		case r.Name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if r.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}

// Match picks requests.
type Match func(*Request) bool

// All matches every request that all of the given ones match.
func All(of ...Match) Match {
	return func(r *Request) bool {
		for _, m := range of {
			if !m(r) {
				return false
			}
		}
		return true
	}
}

// Verb matches any of the verbs.
func Verb(verbs ...string) Match {
	return func(r *Request) bool { return slices.Contains(verbs, r.Verb) }
}

// Resource matches any of the plurals.
func Resource(plurals ...string) Match {
	return func(r *Request) bool { return slices.Contains(plurals, r.Resource) }
}

// Writes matches what Request.Write says.
func Writes(r *Request) bool { return r.Write() }

// CountsUp says whether this is the count of an Event brought up to date, and none of what it counts came after `since`. Such a write comes ten
// seconds and more after the last of it.
func (r *Request) CountsUp(since time.Time) bool {
	var event struct {
		Series struct{ LastObservedTime time.Time }
	}
	return r.Verb == "patch" && r.Resource == "events" && json.Unmarshal(r.Body, &event) == nil &&
		!event.Series.LastObservedTime.IsZero() && event.Series.LastObservedTime.Before(since)
}
