package server

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// resource of the API server, with what stands before and behind a name in its path.
type resource struct {
	group, version, name, part string // part: of an object, as "status"; empty: the object
	namespaced                 bool
}

func (r resource) says() string {
	if r.part == "" {
		return r.name
	}
	return r.name + "/" + r.part
}

// path of all of a place, or of one.
func (r resource) path(place, name string) string {
	out := "/apis/" + r.group + "/" + r.version
	if r.group == "" {
		out = "/api/" + r.version
	}
	if place != "" {
		out += "/namespaces/" + place
	}
	out += "/" + r.name
	if name != "" {
		out += "/" + name
	}
	if r.part != "" {
		out += "/" + r.part
	}
	return out
}

// discovered is every type that the API server has, with every part of its objects.
func discovered(t *testing.T) (out []resource) {
	t.Helper()
	for _, root := range []string{"/api", "/apis"} {
		admin := person(t, "", "")
		request, err := http.NewRequest("GET", admin.url+root, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		answer, err := admin.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Versions []struct {
					Version   string
					Resources []struct {
						Resource, Scope string
						Subresources    []struct{ Subresource string }
					}
				}
			}
		}
		if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		for _, group := range list.Items {
			for _, version := range group.Versions[:1] { // rights know no versions
				for _, one := range version.Resources {
					is := resource{group.Metadata.Name, version.Version, one.Resource, "", one.Scope == "Namespaced"}
					out = append(out, is)
					for _, part := range one.Subresources {
						is.part = part.Subresource
						out = append(out, is)
					}
				}
			}
		}
	}
	return out
}

// person is a caller with a client certificate of the administrator who acts as a user, with a token, or with neither.
func person(t *testing.T, user, token string) client {
	t.Helper()
	out := as(t, "quartermaster")
	out.token = token
	if token == "" && user != stranger {
		one := func(field string) []byte {
			text, err := base64.StdEncoding.DecodeString(kubectl(t, "", "config", "view", "--raw", "-o", "jsonpath={.users[0].user."+field+"}"))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		certificate, err := tls.X509KeyPair(one("client-certificate-data"), one("client-key-data"))
		if err != nil {
			t.Fatal(err)
		}
		out.http.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{certificate}
	}
	out.http.Transport.(*http.Transport).MaxIdleConnsPerHost = 16
	return out
}

const stranger = "system:anonymous"

// try is one request that would do nothing: it names an object that is not there, is refused for its form, or is a dry run.
type try struct {
	verb, place, name string
	resource
}

func (one try) request(url string) (*http.Request, error) {
	methods := map[string]string{"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
	method, body := methods[one.verb], ""
	path := one.path(one.place, one.name)
	query := "?dryRun=All"
	switch one.verb {
	case "get":
		query = ""
	case "list", "watch":
		path, query = one.path(one.place, ""), "?limit=1"
		if one.verb == "watch" {
			query = "?watch=1&resourceVersion=none"
		}
		if one.name != nameless {
			query += "&fieldSelector=metadata.name%3D" + one.name
		}
	case "create":
		if body = "{}"; one.part == "" {
			path = one.path(one.place, "")
		}
	case "deletecollection":
		path = one.path(one.place, "")
	case "delete": // with a body, the API server would not look at the query
	default:
		body = "{}"
	}
	request, err := http.NewRequest(method, url+path+query, strings.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		if method == "PATCH" {
			request.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	return request, err
}

// nameless: a name that no rule says.
const nameless = "none-such"

// passes: the API server would let the caller do it, whatever becomes of this request.
func (c client) passes(one try, user string) (bool, error) {
	for {
		request, err := one.request(c.url)
		if err != nil {
			return false, err
		}
		if c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		} else if user != stranger {
			request.Header.Set("Impersonate-User", user)
			request.Header.Set("Impersonate-Group", "system:authenticated")
		}
		answer, err := c.http.Do(request)
		if err != nil {
			return false, err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return false, err
		}
		switch {
		case answer.StatusCode == http.StatusTooManyRequests:
			time.Sleep(100 * time.Millisecond)
			continue
		case answer.StatusCode == http.StatusUnauthorized:
			return false, fmt.Errorf("%v: %s", one, text)
		}
		return !(answer.StatusCode == http.StatusForbidden && strings.Contains(string(text), "cannot "+one.verb+" resource")), nil
	}
}

func has(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// allow: the rules say so.
func (r rules) allow(one try) bool {
	return slices.ContainsFunc(r.ResourceRules, func(is rule) bool {
		return has(is.Verbs, one.verb) && has(is.APIGroups, one.group) &&
			(has(is.Resources, one.says()) || one.part != "" && slices.Contains(is.Resources, "*/"+one.part)) &&
			(len(is.ResourceNames) == 0 || one.verb != "create" && one.verb != "deletecollection" && slices.Contains(is.ResourceNames, one.name))
	})
}

// Each account of the chart with a token of its own, a person with edit in one namespace, one without rights and a stranger try each verb
// on each type and each part of its objects, in every place, with every name that a rule says: what the API server lets through is what it
// says of them, which docs/rights.md holds, and nothing more.
func TestS5_every_verb_on_every_type_is_tried_by_each_account_long(t *testing.T) {
	everythingInstalled(t)
	editIn(t, others, "eve")
	for _, account := range accounts { // the operator makes those of its modules
		kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":%q,"namespace":%q}}`, account, namespace), "apply", "--server-side", "-f", "-")
	}
	types := discovered(t)
	if len(types) < 100 {
		t.Fatalf("only %d types", len(types))
	}
	places := []string{"", others, namespace, "kube-system", "kube-public", "default"}
	callers := append(slices.Clone(accounts), "eve", "nobody", stranger)
	said := map[string]map[string]rules{} // caller, place; "" is what counts in the whole cluster
	names := map[string]map[string]bool{}
	nowhere := "nowhere-at-all" // no RoleBinding is there
	for _, caller := range callers {
		user := []string{caller}
		if slices.Contains(accounts, caller) {
			user = userOf(caller)
		}
		said[caller] = map[string]rules{}
		if caller == stranger { // to whom nothing is let through
			continue
		}
		for _, place := range places {
			in := place
			if place == "" {
				in = nowhere
			}
			of := rulesOf(t, in, user[0], user[1:]...)
			said[caller][place] = of
			for _, rule := range of.ResourceRules {
				for _, what := range rule.Resources {
					for _, name := range rule.ResourceNames {
						if names[what] == nil {
							names[what] = map[string]bool{}
						}
						names[what][name] = true
					}
				}
			}
		}
	}
	var tries []try
	for _, is := range types {
		for _, place := range places {
			if place != "" && !is.namespaced {
				continue
			}
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				collective := verb == "list" || verb == "watch" || verb == "deletecollection"
				if is.part != "" && collective || place == "" && is.namespaced && (verb != "list" && verb != "watch") {
					continue
				}
				tries = append(tries, try{verb, place, nameless, is})
				for name := range names[is.says()] {
					if verb != "deletecollection" && (verb != "create" || is.part != "") {
						tries = append(tries, try{verb, place, name, is})
					}
				}
			}
		}
	}
	for _, caller := range callers {
		user, token := caller, ""
		if slices.Contains(accounts, caller) {
			user, token = "", kubectl(t, "", "create", "token", caller, "-n", namespace)
		}
		who := person(t, user, token)
		var passed atomic.Int64
		var lock sync.Mutex
		var wrong []string
		var group errgroup.Group
		group.SetLimit(8)
		for _, one := range tries {
			group.Go(func() error {
				let, err := who.passes(one, user)
				if let {
					passed.Add(1)
				}
				if err == nil && let != said[caller][one.place].allow(one) {
					lock.Lock()
					wrong = append(wrong, fmt.Sprintf("%s %s.%s %s in %q: let through %v", one.verb, one.says(), one.group, one.name, one.place, let))
					lock.Unlock()
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, one := range wrong {
			t.Errorf("%s: %s, which is not what the API server says", caller, one)
		}
		t.Logf("%s: %d tries, %d let through", caller, len(tries), passed.Load())
	}
}
