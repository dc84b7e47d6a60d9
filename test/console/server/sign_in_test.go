package server

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

const consoleAddress = "https://" + consoleName

// browser is someone at a proxy: it keeps cookies, and finds the console's name at that proxy.
type browser struct {
	jar       http.CookieJar
	transport *http.Transport
}

func newBrowser(t *testing.T, port string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, consoleName+":") {
			address = "127.0.0.1:" + port
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: provider.roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{jar, transport}
}

// page is an answer, and the address that it came from.
type page struct {
	answer
	address *url.URL
}

// send sends one request. It follows where the answer leads only if it should.
func (b *browser) send(t *testing.T, method, address string, header http.Header, follows bool) page {
	t.Helper()
	request, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	return b.receive(t, request, follows)
}

func (b *browser) receive(t *testing.T, request *http.Request, follows bool) page {
	t.Helper()
	client := http.Client{Transport: b.transport, Jar: b.jar, Timeout: 30 * time.Second}
	if !follows {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return page{address: request.URL}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return page{answer{response.StatusCode, string(body), response.Header}, response.Request.URL}
}

// api asks for a path of the console's API, again where that is too often.
func (b *browser) api(t *testing.T, path string, header http.Header) answer {
	t.Helper()
	return patiently(func() answer { return b.send(t, "GET", consoleAddress+api+path, header, false).answer })
}

var passwordForm = regexp.MustCompile(`<form method="post" action="([^"]+)"`)

// signIn opens the console, fills in dex's form where it leads there, and comes back to the console.
func (b *browser) signIn(t *testing.T, name string) {
	t.Helper()
	form := b.send(t, "GET", consoleAddress+"/console/", nil, true)
	action := passwordForm.FindStringSubmatch(form.body)
	if form.address.Host != "127.0.0.1:"+provider.port || action == nil {
		t.Fatalf("no form of dex: %d at %s: %s", form.status, form.address, form.body)
	}
	target, err := form.address.Parse(html.UnescapeString(action[1]))
	if err != nil {
		t.Fatal(err)
	}
	words := url.Values{"login": {name + "@example.com"}, "password": {"password"}}
	request, err := http.NewRequest("POST", target.String(), strings.NewReader(words.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got := b.receive(t, request, true)
	if got.status != 200 || got.address.String() != consoleAddress+"/console/" || !strings.Contains(got.body, "<title>Quartermaster") {
		t.Fatalf("%s is not at the console: %d at %s: %s", name, got.status, got.address, got.body)
	}
}

// userIn is the name in an answer of `me`.
func userIn(got answer) string {
	var me struct{ User string }
	json.Unmarshal([]byte(got.body), &me)
	return me.User
}

// endIn is when a token ends by its own word.
func endIn(t *testing.T, token string) time.Time {
	t.Helper()
	var claims struct{ Exp int64 }
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(claims.Exp, 0)
}

// desk is what the parts of the test share: the console, the gate before it, and proxies with the people at them.
type desk struct {
	port      string // of the console
	gate      *gate
	proxy     string // its port
	people    map[string]*browser
	admin     string // a token of a ServiceAccount with all rights, good for the API server
	sealed    *http.Cookie
	forgeries map[string]http.Header
}

// groups of people, by name. Those of greta are ids, as Entra ID sends them, and as many as it puts into a token.
func groups() map[string][]string {
	var many []string
	for i := range 199 {
		id := sha256.Sum256([]byte{byte(i)})
		many = append(many, fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]))
	}
	return map[string][]string{"ada": {"admins"}, "amy": {"admins"}, "ruth": {"team-red"}, "ben": {}, "nora": {"team-green"}, "greta": append(many, "team-red"),
		"dora": {"team-red"}, "carl": {"team-red"}}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	cluster(t)
	kubectl(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sign-in-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "oidc:admins"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sign-in-group, namespace: red}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "oidc:team-red"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sign-in-user, namespace: blue}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "oidc:ben@example.com"}]
`, "apply", "-f", "-")
	provider.start(t, groups())
	d := &desk{port: console(t, "--host", consoleName), people: map[string]*browser{}, admin: token(t, namespace, "admin")}
	d.gate = newGate(t, d.port)
	d.proxy = provider.startProxy(t, d.gate.url, nil)
	d.forge(t)
	return d
}

// forge makes what someone could send who has not signed in: a token and a cookie that are good at the console itself, and headers.
func (d *desk) forge(t *testing.T) {
	t.Helper()
	made := ask(t, d.port, "POST", api+"session", d.admin)
	cookies := (&http.Response{Header: made.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("no cookie of the console: %d %s", made.status, made.body)
	}
	d.sealed = cookies[0]
	cookie := d.sealed.Name + "=" + d.sealed.Value
	bearer := http.Header{"Authorization": {"Bearer " + d.admin}}
	const admin = "system:serviceaccount:quartermaster:admin"
	if got := ask(t, d.port, "GET", api+"me", d.admin); userIn(got) != admin {
		t.Fatalf("the token is not good at the console, so it shows nothing: %d %s", got.status, got.body)
	}
	d.forgeries = map[string]http.Header{
		"a token": bearer, "a cookie of the console": {"Cookie": {cookie}}, "a cookie of the proxy": {"Cookie": {"_oauth2_proxy=YWRtaW4=|1|x"}},
		"both": {"Authorization": bearer["Authorization"], "Cookie": {cookie}},
		"headers": {"X-Forwarded-User": {admin}, "X-Forwarded-Email": {admin}, "X-Forwarded-Groups": {"system:masters"}, "X-Remote-User": {admin},
			"X-Auth-Request-User": {admin}, "Impersonate-User": {admin}},
		"headers of a proxy": {"X-Forwarded-Access-Token": {d.admin}, "X-Forwarded-Uri": {"/ping"}, "X-Original-Url": {"/ping"}, "Forwarded": {"for=127.0.0.1"},
			"X-Forwarded-For": {"127.0.0.1"}, "X-Real-Ip": {"127.0.0.1"}},
		"another host":    {"X-Forwarded-Host": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}},
		"another method":  {"X-Http-Method-Override": {"OPTIONS"}},
		"underlined name": {"X_Forwarded_User": {admin}, "X-Authorization": bearer["Authorization"]},
	}
}

// at is the browser of someone who is signed in at the proxy.
func (d *desk) at(t *testing.T, name string) *browser {
	t.Helper()
	if d.people[name] == nil {
		d.people[name] = newBrowser(t, d.proxy)
		d.people[name].signIn(t, name)
	}
	return d.people[name]
}

// People sign in at the provider and see in the console what the API server lets them see. Nothing else comes through the proxy.
func TestSignInByAnIdentityProvider_long(t *testing.T) {
	if provider == nil {
		t.Skip("not run: QM_OIDC names no folder with dex and oauth2-proxy (test/console/README.md)")
	}
	d := newDesk(t)
	t.Run("without a sign-in nothing comes to the console", d.outsiders)
	ada := newBrowser(t, d.proxy)
	ada.signIn(t, "ada")
	d.people["ada"] = ada
	until(t, 60*time.Second, "the API server takes tokens of dex", func() error { // it looks for dex every 10 s
		if got := ada.api(t, "me", nil); userIn(got) != "oidc:ada@example.com" {
			return errors.New(got.body)
		}
		return nil
	})
	until(t, 20*time.Second, "the console knows both namespaces", func() error {
		if got := ada.api(t, "pods", nil); !strings.Contains(got.body, "red-runs") || !strings.Contains(got.body, "blue-runs") {
			return errors.New(got.body)
		}
		return nil
	})
	t.Run("everyone sees what their rights allow", d.rights)
	t.Run("who is signed in can be no one else", d.forgeriesOfTheSignedIn)
	t.Run("a token in 200 groups", d.manyGroups)
	t.Run("events pass as they come", d.events)
	t.Run("tokens end and are renewed", d.ends)
	t.Run("sign out", d.signOut)
	t.Run("the chart passes the name on", func(t *testing.T) {
		values, err := provider.block("sign-in-chart")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := chart.Template(values)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, object := range objects {
			found = found || object.Kind == "Deployment" && strings.Contains(object.Text, "- --host="+consoleName+"\n")
		}
		if !found {
			t.Errorf("no Deployment has --host=%s", consoleName)
		}
	})
}

func (d *desk) outsiders(t *testing.T) {
	before := len(d.gate.all())
	addresses := []string{"/", "/console", "/console/", "/console/index.html", "/console/?x=/ping", "//console/api/v1/me", "/console/%61pi/v1/me", "/ping/../console/api/v1/me",
		"/oauth2/../console/api/v1/me", "/console/api/v1/me?rd=/ping"}
	for _, path := range append(paths("red"), "session", "stream") {
		addresses = append(addresses, api+path)
	}
	d.forgeries["nothing"] = http.Header{}
	defer delete(d.forgeries, "nothing")
	for name, header := range d.forgeries {
		stranger := newBrowser(t, d.proxy)
		for _, address := range addresses {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
				got := stranger.send(t, method, consoleAddress+address, header, false)
				if got.status < 300 || strings.Contains(got.body, "gpu-1") {
					t.Errorf("%s: %s %s says %d %s", name, method, address, got.status, got.body)
				}
				if strings.HasPrefix(address, api) && got.status != 401 {
					t.Errorf("%s: %s %s says %d, not 401", name, method, address, got.status)
				}
			}
		}
	}
	// By itself, too, the console believes no header but the token.
	request, _ := http.NewRequest("GET", "http://127.0.0.1:"+d.port+api+"me", nil)
	request.Header = d.forgeries["headers"].Clone()
	if got := newBrowser(t, d.proxy).receive(t, request, false); got.status != 401 {
		t.Errorf("the console says to headers of a proxy %d %s", got.status, got.body)
	}
	for _, passing := range d.gate.all()[before:] {
		t.Errorf("%s %s came to the console with %v", passing.method, passing.path, passing.header)
	}
}

func (d *desk) rights(t *testing.T) {
	for _, row := range []struct{ name, own, other string }{{"ruth", "red", "blue"}, {"ben", "blue", "red"}} {
		b := d.at(t, row.name)
		if got := b.api(t, "session", nil); strings.TrimSpace(got.body) != `{"signedIn":true,"by":"proxy"}` {
			t.Errorf("%s gets a form: %d %s", row.name, got.status, got.body)
		}
		if got := b.api(t, "me", nil); userIn(got) != "oidc:"+row.name+"@example.com" || !strings.Contains(got.body, `"namespaces":["`+row.own+`"]`) {
			t.Errorf("%s is %d %s", row.name, got.status, got.body)
		}
		for _, path := range paths(row.other) {
			got := b.api(t, path, nil)
			if strings.Contains(got.body, row.other) {
				t.Errorf("%s says to %s: %s", path, row.name, got.body)
			}
			if strings.Contains(path, row.other) && got.status != 403 {
				t.Errorf("%s says to %s %d", path, row.name, got.status)
			}
		}
		for _, path := range []string{"namespaces", "waiting", "pods", "pods/" + row.own + "/" + row.own + "-runs"} {
			if got := b.api(t, path, nil); got.status != 200 || !strings.Contains(got.body, row.own) {
				t.Errorf("%s says to %s %d %s", path, row.name, got.status, got.body)
			}
		}
	}
	nora := d.at(t, "nora")
	if got := nora.api(t, "me", nil); userIn(got) != "oidc:nora@example.com" || !strings.Contains(got.body, `"namespaces":[]`) {
		t.Errorf("nora is %d %s", got.status, got.body)
	}
	for _, path := range []string{"overview", "fleet", "pods", "waiting", "namespaces", "nodes/gpu-1", "declarations", "capacity"} {
		if got := nora.api(t, path, nil); got.status != 403 || !strings.Contains(got.body, "right") || strings.Contains(got.body, "-runs") {
			t.Errorf("%s says to nora %d %s", path, got.status, got.body)
		}
	}
}

func (d *desk) forgeriesOfTheSignedIn(t *testing.T) {
	open := provider.startProxy(t, d.gate.url, map[string]string{"skip_jwt_bearer_tokens": "true"})
	ruth := d.at(t, "ruth")
	const name = "oidc:ruth@example.com"
	for forgery, header := range d.forgeries {
		header = header.Clone()
		header.Del("Cookie") // of the browser, below
		if got := ruth.api(t, "me", header); userIn(got) != name {
			t.Errorf("with %s ruth is %d %s", forgery, got.status, got.body)
		}
	}
	home, _ := url.Parse(consoleAddress + "/console/")
	ruth.jar.SetCookies(home, []*http.Cookie{{Name: d.sealed.Name, Value: d.sealed.Value, Path: "/console/"}})
	if got := ruth.api(t, "me", nil); userIn(got) != name {
		t.Errorf("with a cookie of someone else ruth is %d %s", got.status, got.body)
	}
	last := d.gate.all()[len(d.gate.all())-1]
	if !strings.Contains(last.header.Get("Cookie"), d.sealed.Name+"=") {
		t.Errorf("the cookie did not come to the console, so it shows nothing: %v", last.header)
	}
	for _, field := range []string{"X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Access-Token"} {
		if value := last.header.Get(field); value != "" {
			t.Errorf("the proxy sends %s: %s", field, value)
		}
	}
	// Her token opens the console's door, but not the proxy's. A proxy that skips its own sign-in for tokens lets it in.
	bearer := http.Header{"Authorization": {"Bearer " + last.token()}}
	if got := ask(t, d.port, "GET", api+"me", last.token()); userIn(got) != name {
		t.Errorf("the token of ruth is no token: %d %s", got.status, got.body)
	}
	before := len(d.gate.all())
	if got := newBrowser(t, d.proxy).api(t, "me", bearer); got.status != 401 || len(d.gate.all()) != before {
		t.Errorf("a token alone comes through: %d %s", got.status, got.body)
	}
	if got := newBrowser(t, open).api(t, "me", bearer); userIn(got) != name {
		t.Errorf("skip_jwt_bearer_tokens does not let a token in, and docs/console.md says so: %d %s", got.status, got.body)
	}
	before = len(d.gate.all())
	if got := newBrowser(t, open).api(t, "me", d.forgeries["a token"]); got.status < 400 || len(d.gate.all()) != before {
		t.Errorf("with it a token of another issuer comes through: %d %s", got.status, got.body)
	}
}

// Who is in many groups has a large token, and the proxy's cookies, which come to the console as well, have it once more.
func (d *desk) manyGroups(t *testing.T) {
	got := d.at(t, "greta").api(t, "me", nil)
	if userIn(got) != "oidc:greta@example.com" || !strings.Contains(got.body, `"namespaces":["red"]`) {
		t.Errorf("greta is %d %s", got.status, got.body)
	}
	last := d.gate.all()[len(d.gate.all())-1]
	size := len(last.header.Get("Cookie")) + len(last.header.Get("Authorization"))
	t.Logf("a token of %d bytes, cookies of %d", len(last.token()), len(last.header.Get("Cookie")))
	if size < 16<<10 {
		t.Errorf("both have %d bytes, which any server takes", size)
	}
}

// follow opens the stream of changes. The channel has the time of each event, and is closed when the stream ends.
func (b *browser) follow(t *testing.T, ctx context.Context) <-chan time.Time {
	t.Helper()
	out := make(chan time.Time, 1000)
	request, _ := http.NewRequestWithContext(ctx, "GET", consoleAddress+api+"stream", nil)
	request.Header.Set("Accept", "text/event-stream")
	response, err := (&http.Client{Transport: b.transport, Jar: b.jar}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		response.Body.Close()
		t.Fatalf("the stream says %d %v", response.StatusCode, response.Header)
	}
	go func() {
		defer close(out)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if lines.Text() == "event: changed" {
				out <- time.Now()
			}
		}
	}()
	return out
}

// An event comes while the stream is open, also by a proxy that would otherwise collect answers for an hour.
func (d *desk) events(t *testing.T) {
	slow := provider.startProxy(t, d.gate.url, map[string]string{"flush_interval": `"1h"`})
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	amy := newBrowser(t, slow)
	amy.signIn(t, "amy")
	for name, b := range map[string]*browser{"the proxy of the page": d.at(t, "ada"), "a proxy that collects": amy} {
		events := b.follow(t, ctx)
		first, isOpen := <-events
		if !isOpen {
			t.Errorf("%s: no first event", name)
			continue
		}
		pod := "red-event-" + fmt.Sprint(first.UnixNano())
		kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "red"}, "spec": {"schedulerName": "none", "containers": [
			{"name": "main", "image": "none.test/none:1", "resources": {"limits": {"tencent.com/vcuda-core": "10", "tencent.com/vcuda-memory": "4"}}}]}}`, pod), "apply", "-f", "-")
		began := time.Now()
		select {
		case _, isOpen = <-events:
			t.Logf("%s: an event after %s", name, time.Since(began).Round(10*time.Millisecond))
			if !isOpen {
				t.Errorf("%s: the stream has ended", name)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: no event in 10 s", name)
		}
		kubectl(t, "", "delete", "pod", "-n", "red", pod, "--grace-period=0", "--force")
	}
}

// ends looks at three proxies for longer than a token lives: one as on the page, one whose people get no refresh token, and one that
// never asks for another token.
func (d *desk) ends(t *testing.T) {
	ben := d.at(t, "ben")
	strict := provider.startProxy(t, d.gate.url, map[string]string{"scope": `"openid email profile groups"`})
	careless := provider.startProxy(t, d.gate.url, map[string]string{"cookie_refresh": `"0s"`})
	carl, dora := newBrowser(t, strict), newBrowser(t, careless)
	carl.signIn(t, "carl")
	dora.signIn(t, "dora")
	for name, b := range map[string]*browser{"carl": carl, "dora": dora} {
		if got := b.api(t, "me", nil); userIn(got) != "oidc:"+name+"@example.com" {
			t.Fatalf("%s is %d %s", name, got.status, got.body)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	before := len(d.gate.all())
	began := time.Now()
	events := ben.follow(t, ctx)
	d.keepAsking(t, ben, tokenLife+5*time.Second)
	tokens := map[string]bool{}
	for _, passing := range d.gate.all()[before:] {
		tokens[passing.token()] = true
		if end := endIn(t, passing.token()); passing.time.After(end) {
			t.Errorf("%s came with a token that had ended %s before", passing.path, passing.time.Sub(end))
		}
	}
	if len(tokens) < 3 {
		t.Errorf("%d tokens in %s", len(tokens), time.Since(began))
	}

	before = len(d.gate.all())
	if got := carl.api(t, "me", nil); got.status != 401 || len(d.gate.all()) != before {
		t.Errorf("without a refresh token carl is %d %s", got.status, got.body)
	}
	if got := carl.send(t, "GET", consoleAddress+"/console/", nil, true); !passwordForm.MatchString(got.body) {
		t.Errorf("the page leads carl to %d at %s", got.status, got.address)
	}
	got := dora.api(t, "me", nil)
	if got.status != 401 || !strings.Contains(got.body, "unauthenticated") || len(d.gate.all()) == before {
		t.Errorf("with an old token dora is %d %s", got.status, got.body)
	}

	// A stream ends with the token that it was opened with, half a minute later at the latest. The next one has another token.
	for isOpen := true; isOpen; {
		select {
		case _, isOpen = <-events:
		case <-time.After(time.Until(began.Add(tokenLife + 35*time.Second))):
			t.Fatal("a stream stays open without a token that is good")
		}
	}
	t.Logf("a stream has ended after %s", time.Since(began).Round(time.Second))
	if _, isOpen := <-ben.follow(t, ctx); !isOpen {
		t.Error("the next stream has no event")
	}
}

// keepAsking asks as an open page does, four questions at the same time. No answer may be a refusal.
func (d *desk) keepAsking(t *testing.T, b *browser, patience time.Duration) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(500 * time.Millisecond) {
		var group sync.WaitGroup
		for _, path := range []string{"me", "namespaces", "waiting", "pods"} {
			group.Go(func() {
				if got := b.api(t, path, nil); got.status != 200 {
					t.Errorf("after %s %s says %d %s", time.Since(began), path, got.status, got.body)
				}
			})
		}
		group.Wait()
	}
}

func (d *desk) signOut(t *testing.T) {
	ruth := d.at(t, "ruth")
	home, _ := url.Parse(consoleAddress + "/console/")
	// The console's own way out does not sign anyone out of the proxy, so the page has no button for it.
	if got := ruth.send(t, "DELETE", consoleAddress+api+"session", nil, false); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := ruth.api(t, "me", nil); userIn(got) != "oidc:ruth@example.com" {
		t.Errorf("ruth is %d %s", got.status, got.body)
	}
	copied := newBrowser(t, d.proxy)
	copied.jar.SetCookies(home, ruth.jar.Cookies(home))
	if got := ruth.send(t, "GET", consoleAddress+"/oauth2/sign_out", nil, false); got.status != 302 {
		t.Errorf("%d %s", got.status, got.body)
	}
	before := len(d.gate.all())
	if got := ruth.api(t, "me", nil); got.status != 401 {
		t.Errorf("after signing out ruth is %d %s", got.status, got.body)
	}
	if got := ruth.send(t, "GET", consoleAddress+"/console/", nil, true); !passwordForm.MatchString(got.body) {
		t.Errorf("after signing out the page leads ruth to %d at %s", got.status, got.address)
	}
	if len(d.gate.all()) != before {
		t.Error("after signing out a request comes to the console")
	}
	if got := copied.api(t, "me", nil); userIn(got) != "oidc:ruth@example.com" {
		t.Errorf("docs/console.md says that a copied cookie stays good: %d %s", got.status, got.body)
	}
	ruth.signIn(t, "ruth")
	if got := ruth.api(t, "me", nil); userIn(got) != "oidc:ruth@example.com" {
		t.Errorf("after signing in again ruth is %d %s", got.status, got.body)
	}
}
