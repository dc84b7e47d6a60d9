package image

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

const (
	worker  = "real-2" // the newcomer's node with cards; no other test asks for a mode there
	console = "quartermaster-console"
	history = "quartermaster-prometheus"
	card    = "GPU-74200000-0000-4000-8000-000000000000" // of the fixture
)

// newcomer is someone who installs the chart on a cluster without a Prometheus, and opens the console in a browser.
type newcomer struct {
	*product
	began       time.Time // of helm install
	environment []string  // of the tests of the page
	stop        []func()  // what still runs when the test ends
}

// What the documents promise: helm install with a Prometheus, console and agent, one port-forward, and charts within two minutes.
func TestANewcomerSeesCharts(t *testing.T) {
	visits(t, []visit{{"first look", (*newcomer).firstLook}, {"uninstall", (*newcomer).uninstall}})
}

// And all that the newcomer finds later: what Prometheus reads, the pods of two teams, every view, a proxy in front, series on a volume.
func TestANewcomerStays_long(t *testing.T) {
	visits(t, []visit{{"first look", (*newcomer).firstLook}, {"prometheus", (*newcomer).scrapeWithFewRights}, {"work", (*newcomer).work}, {"tour", (*newcomer).tour},
		{"own rights", (*newcomer).ownRights}, {"proxy", (*newcomer).proxy}, {"volume", (*newcomer).keepSeries}, {"uninstall", (*newcomer).uninstall}})
}

type visit struct {
	name string
	run  func(n *newcomer)
}

func visits(t *testing.T, steps []visit) {
	t.Helper()
	browser := kit.Env("QM_CHROMIUM", "/usr/bin/chromium")
	if _, err := os.Stat(browser); err != nil {
		t.Skipf("no browser %s: ./dev setup installs chromium", browser)
	}
	if _, _, err := kit.Standins(); err != nil {
		t.Skip(err)
	}
	n := &newcomer{product: &product{&kit.Scenario{Cluster: cluster}, t}}
	t.Cleanup(n.leave)
	n.haveCards()
	n.haveImages()
	n.browse("^no test$") // what npm has to bring is there before the clock starts
	for _, step := range steps {
		passed := t.Run(strings.ReplaceAll(step.name, " ", "_"), func(t *testing.T) { n.t = t; step.run(n) })
		if n.t = t; !passed {
			return
		}
	}
}

// haveCards: the worker has two T4 and NVIDIA's container runtime, all stand-ins.
func (n *newcomer) haveCards() {
	if _, err := n.Script("node-exec", "--node", worker, "test", "-e", "/run/nvidia-standin/node.json"); err == nil {
		return // an earlier run on this cluster
	}
	folder := filepath.Join(n.Dir, "cards") // it stays as long as the node
	must(n.t, os.MkdirAll(folder, 0o755))
	must(n.t, kit.CopyFixture(folder, "t4_pair"))
	file := filepath.Join(folder, "node.json")
	text, err := os.ReadFile(file)
	must(n.t, err)
	used := strings.ReplaceAll(string(text), `"model": "t4",`, `"model": "t4", "memory_used_mib": 1000, "utilisation_gpu": 24,`)
	must(n.t, os.WriteFile(file, []byte(used), 0o644))
	must(n.t, n.GiveDriver(worker, folder))
	must(n.t, n.GiveRuntime(ctx, worker))
	n.run("kubectl", "wait", "node/"+worker, "--for=condition=Ready", "--timeout=180s")
}

// haveImages: the registry's, at the places where the chart looks. That of Prometheus has its program and nothing else.
func (n *newcomer) haveImages() {
	n.script("node-image", registry+"/quartermaster:"+theImage(n.t).tag, "--archive", first.file)
	values, err := os.ReadFile(filepath.Join(kit.Root(), "charts/quartermaster/values.yaml"))
	must(n.t, err)
	words := regexp.MustCompile(`repository: (prom/prometheus) .*\n\s+tag: (\S+)`).FindSubmatch(values)
	if words == nil {
		n.t.Fatal("values.yaml names no image of Prometheus")
	}
	n.script("node-image", fmt.Sprintf("%s/%s:%s", registry, words[1], words[2]), n.Tool("prometheus")+":/bin/prometheus")
}

// browse runs the tests of the installed page that have such names, and returns what they print.
func (n *newcomer) browse(names string) string {
	n.t.Helper()
	command := exec.Command(filepath.Join(kit.Root(), "test/console/page/run.sh"), "--installed", names)
	command.Env = append(os.Environ(), append(n.environment, "QM_CONSOLE_NODE="+worker, "QM_CONSOLE_CARD="+card, "KUBECONFIG="+n.Kubeconfig,
		"PATH="+n.Tools+":"+os.Getenv("PATH"))...)
	if n.environment == nil {
		command.Env = append(command.Env, "QM_CONSOLE_URL=none")
	}
	said, err := command.CombinedOutput()
	if err != nil {
		n.t.Fatalf("the page, tests %s: %v\n%s", names, err, said)
	}
	return string(said)
}

// forward is `kubectl port-forward` to the console, until the test ends. It returns the address of the page.
func (n *newcomer) forward() string {
	n.t.Helper()
	said := &kit.Output{}
	command := exec.Command(n.Tool("kubectl"), "port-forward", "--namespace", kit.Namespace, "service/"+console, ":80")
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), "KUBECONFIG="+n.Kubeconfig), said, said
	must(n.t, command.Start())
	n.stop = append(n.stop, func() { command.Process.Kill(); command.Wait() })
	var port string
	n.await(20*time.Second, "the port is forwarded", func() (bool, error) {
		if words := regexp.MustCompile(`Forwarding from 127.0.0.1:(\d+)`).FindStringSubmatch(said.String()); words != nil {
			port = words[1]
		}
		return port != "", fmt.Errorf("%s", said)
	})
	return "http://127.0.0.1:" + port + "/console/"
}

// firstLook is what docs/console.md says, to the chart.
func (n *newcomer) firstLook() {
	n.began = time.Now()
	n.run("helm", "install", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--create-namespace", "--set",
		"monitoring.prometheus.install=true,console.enabled=true,agent.enabled=true,agent.runtimeClassName="+kit.NvidiaRuntime+",pgpu_enable=true",
		"--set", "image.registry="+registry+",policy.modules.pgpu.image="+pause+",console.hosts={console.example.test},crds.keep=false")
	n.run("kubectl", "label", "node", worker, kit.AskLabel+"=pgpu")
	n.run("kubectl", "create", "clusterrolebinding", "newcomer", "--clusterrole=quartermaster-user", "--serviceaccount=default:newcomer")
	n.run("kubectl", "create", "rolebinding", "newcomer", "--namespace=kube-public", "--role=quartermaster-user", "--serviceaccount=default:newcomer")
	n.run("kubectl", "create", "serviceaccount", "newcomer")
	n.run("kubectl", "rollout", "status", "deployment/"+console, "--namespace", kit.Namespace, "--timeout=180s")
	n.environment = []string{"QM_CONSOLE_URL=" + n.forward(), "QM_CONSOLE_TOKEN=" + n.token("default", "newcomer")}
	said := n.browse("^first look")
	words := regexp.MustCompile(`a chart with data at (\d+): (.*)`).FindStringSubmatch(said)
	if words == nil {
		n.t.Fatalf("the page shows no chart:\n%s", said)
	}
	milliseconds, err := strconv.ParseInt(words[1], 10, 64)
	must(n.t, err)
	took := time.UnixMilli(milliseconds).Sub(n.began)
	n.t.Logf("a chart with data %.1f s after helm install began: %s", took.Seconds(), words[2])
	if took > 2*time.Minute {
		n.t.Errorf("that is more than two minutes")
	}
}

func (n *newcomer) token(namespace, account string) string {
	n.t.Helper()
	return strings.TrimSpace(n.run("kubectl", "create", "token", account, "--namespace", namespace))
}

// ask the API of the installed Prometheus, through its Service.
func (n *newcomer) ask(path string, query map[string]string, answer any) error {
	text, err := n.Client.CoreV1().Services(kit.Namespace).ProxyGet("http", history, "9090", "api/v1/"+path, query).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &struct{ Data any }{answer})
}

// scrapeWithFewRights: Prometheus finds both operators and the agent, every rule works, and it complains of nothing.
func (n *newcomer) scrapeWithFewRights() {
	n.await(90*time.Second, "the operators and the agent are scraped", func() (bool, error) {
		var targets struct {
			ActiveTargets []struct {
				ScrapePool, Health, LastError string
			}
		}
		if err := n.ask("targets", map[string]string{"state": "active"}, &targets); err != nil {
			return false, err
		}
		healthy := map[string]int{}
		for _, target := range targets.ActiveTargets {
			healthy[target.ScrapePool+" "+target.Health+target.LastError]++
		}
		return len(healthy) == 2 && healthy["quartermaster up"] == 2 && healthy["quartermaster-agent up"] == 1, fmt.Errorf("%v", healthy)
	})
	n.await(3*time.Minute, "every rule is evaluated", func() (bool, error) {
		var rules struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		err := n.ask("rules", nil, &rules)
		count := 0
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				if count++; rule.Health != "ok" {
					return false, fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
				}
			}
		}
		return count > 0, err
	})
	log := n.run("kubectl", "logs", "--namespace", kit.Namespace, history+"-0")
	if trouble := regexp.MustCompile(`(?m)^.*level=(WARN|ERROR).*$`).FindAllString(log, -1); len(trouble) > 0 {
		n.t.Errorf("Prometheus complains:\n%s", strings.Join(trouble, "\n"))
	}
	if pods := n.run("kubectl", "get", "pods", "--namespace", kit.Namespace, "--no-headers"); regexp.MustCompile(`(?m)^quartermaster-(prometheus|console|agent)\S* +\S+ +\S+ +[1-9]`).MatchString(pods) {
		n.t.Errorf("a pod was restarted:\n%s", pods)
	}
}

// work: the pods of two teams have a card each, and others wait.
func (n *newcomer) work() {
	amounts := map[string]any{gpu: "2"} // in the place of a plugin
	n.patchNode(worker, map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}}, "status")
	n.run("kubectl", "wait", "anode/"+worker, "--for=jsonpath={.status.phase}=Ready", "--timeout=180s")
	n.dedicate()
	pod := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": %q}, "spec": {"terminationGracePeriodSeconds": 0,
		"containers": [{"name": "main", "image": %q, "resources": {"limits": {%q: "%d"}}}]}}`
	for _, team := range []string{"team-a", "team-b"} {
		n.run("kubectl", "create", "namespace", team)
		n.run("kubectl", "create", "serviceaccount", "person", "--namespace", team)
		n.run("kubectl", "create", "rolebinding", "person", "--namespace", team, "--clusterrole=view", "--serviceaccount="+team+":person")
	}
	for _, cards := range []int{1, 16} {
		for _, team := range []string{"team-a", "team-b"} {
			for _, name := range map[int][]string{1: {"holder"}, 16: {"asks", "asks-more"}}[cards] {
				_, err := n.Run(fmt.Sprintf(pod, name, team, pause, gpu, cards), "kubectl", "create", "-f", "-")
				must(n.t, err)
			}
			if cards == 1 {
				n.run("kubectl", "wait", "pod/holder", "--namespace", team, "--for=condition=Ready", "--timeout=180s")
			}
		}
	}
	n.environment = append(n.environment, "QM_CONSOLE_NARROW_TOKEN="+n.token("team-a", "person"))
	n.await(3*time.Minute, "both teams have series", func() (bool, error) {
		var found struct{ Result []any }
		err := n.ask("query", map[string]string{"query": "count by (namespace) (quartermaster_share_utilization_ratio)"}, &found)
		return len(found.Result) == 2, err
	})
}

// ownRights: with the role view in one namespace, the commands answer out of the aggregated API, which the pod of the console serves.
func (n *newcomer) ownRights() {
	n.run("helm", "upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--reuse-values",
		"--set", "console.views.enabled=true", "--wait", "--timeout=180s")
	const service = "apiservice/v1alpha1.view.quartermaster.io"
	n.run("kubectl", "wait", service, "--for=condition=Available", "--timeout=45s")
	file := filepath.Join(n.t.TempDir(), "person")
	text, err := os.ReadFile(n.Kubeconfig)
	must(n.t, err)
	must(n.t, os.WriteFile(file, text, 0o600))
	n.run("kubectl", "--kubeconfig", file, "config", "set-credentials", "person", "--token", n.token("team-a", "person"))
	n.run("kubectl", "--kubeconfig", file, "config", "set-context", "--current", "--user", "person", "--namespace", "team-a")
	for words, said := range map[string]string{"inspect nodes": worker, "inspect pods -n team-a": "holder", "top pods -n team-a": "holder", "explain pod asks": "team-a/asks waits",
		"report chargeback -n team-a": "", "inspect pods -n team-b": "403"} {
		command := exec.Command(filepath.Join(kit.Root(), "build/release/quartermaster"), append(strings.Fields(words), "--kubeconfig", file)...)
		out, err := command.CombinedOutput()
		isRefused := command.ProcessState.ExitCode() == 1
		if !strings.Contains(string(out), said) || isRefused != (said == "403") || strings.Contains(string(out), "team-b/") {
			n.t.Errorf("%s: %v\n%s", words, err, out)
		}
	}
	n.run("kubectl", "delete", "pod", "--namespace", kit.Namespace, "--selector=app.kubernetes.io/name="+console, "--wait=false")
	n.run("kubectl", "rollout", "status", "deployment/"+console, "--namespace", kit.Namespace, "--timeout=180s")
	n.run("kubectl", "wait", service, "--for=condition=Available", "--timeout=45s")
	n.environment[0] = "QM_CONSOLE_URL=" + n.forward() // the pod that was forwarded to has gone
}

func (n *newcomer) tour() {
	for line := range strings.Lines(n.browse("^tour")) {
		if strings.HasPrefix(line, "✔") || strings.Contains(line, "the page has lost") {
			n.t.Log(strings.TrimSpace(line))
		}
	}
}

// proxy ends TLS in front of the console, as an Ingress does. The console answers to its names and to no others.
func (n *newcomer) proxy() {
	address := strings.TrimPrefix(n.environment[0], "QM_CONSOLE_URL=")
	target, err := url.Parse(address)
	must(n.t, err)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(request *httputil.ProxyRequest) {
		request.Out.URL.Scheme, request.Out.URL.Host, request.Out.Host = target.Scheme, target.Host, request.In.Host
		request.SetXForwarded()
	}})
	server.StartTLS()
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(n.t, err)
	n.environment = append(n.environment, "QM_CONSOLE_PROXY_URL=https://console.example.test:"+port+"/console/")
	n.browse("^proxy")
	for host, status := range map[string]int{"console.example.test": 200, "other.example.test": 421} {
		request, err := http.NewRequest(http.MethodGet, address, nil)
		must(n.t, err)
		request.Host = host
		answer, err := http.DefaultClient.Do(request)
		must(n.t, err)
		answer.Body.Close()
		if answer.StatusCode != status {
			n.t.Errorf("Host %s: %s, not %d", host, answer.Status, status)
		}
	}
}

// keepSeries: with a volume, series outlive the pod of Prometheus.
func (n *newcomer) keepSeries() {
	_, err := n.Script("node-exec", "--node", worker, "install", "-d", "-o", "65534", "-g", "65534", "/var/lib/series")
	must(n.t, err)
	_, err = n.Run(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "series"}, "spec": {"capacity": {"storage": "1Gi"},
		"accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand", "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/var/lib/series", "type": "Directory"},
		"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["`+worker+`"]}]}]}}}}`,
		"kubectl", "create", "-f", "-")
	must(n.t, err)
	n.run("kubectl", "delete", "statefulset", history, "--namespace", kit.Namespace) // its volume cannot be changed
	n.run("helm", "upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--reset-then-reuse-values",
		"--set", "monitoring.prometheus.storage=1Gi,monitoring.prometheus.storageClass=by-hand")
	moment := int64(0)
	known := func(patience time.Duration) {
		n.t.Helper()
		n.await(patience, "series of the volume", func() (bool, error) {
			query := map[string]string{"query": "quartermaster_card_utilization_ratio"}
			if moment != 0 {
				query["time"] = strconv.FormatInt(moment, 10)
			}
			var found struct{ Result []any }
			err := n.ask("query", query, &found)
			return len(found.Result) == 2, err
		})
	}
	known(120 * time.Second)
	moment = time.Now().Unix() + 1 // Prometheus counts milliseconds
	n.run("kubectl", "delete", "pod", history+"-0", "--namespace", kit.Namespace)
	n.run("kubectl", "rollout", "status", "statefulset/"+history, "--namespace", kit.Namespace, "--timeout=180s")
	known(20 * time.Second)
}

// uninstall leaves no pod, and no claim of a volume.
func (n *newcomer) uninstall() {
	n.run("kubectl", "delete", "namespace", "team-a", "team-b", "--ignore-not-found")
	n.run("kubectl", "label", "node", worker, kit.AskLabel+"-")
	n.await(90*time.Second, "the plugin is gone", func() (bool, error) { pods, err := n.plugins(); return err == nil && len(pods) == 0, err })
	n.patchNode(worker, map[string]any{"status": map[string]any{"capacity": map[string]any{gpu: "0"}, "allocatable": map[string]any{gpu: "0"}}}, "status")
	n.run("helm", "uninstall", "quartermaster", "--namespace", kit.Namespace, "--wait", "--timeout", "180s")
	n.await(3*time.Minute, "nothing is left", func() (bool, error) {
		left := n.run("kubectl", "get", "pods,persistentvolumeclaims,configmaps", "--namespace", kit.Namespace, "-o", "name")
		return !strings.Contains(left, "quartermaster"), fmt.Errorf("%s", left)
	})
}

// leave the cluster as it was, also after a failure.
func (n *newcomer) leave() {
	for _, stop := range n.stop {
		stop()
	}
	if n.t.Failed() {
		for _, args := range [][]string{{"get", "pods,events", "-A"}, {"get", "anode", "-o", "yaml"}, {"logs", "-n", kit.Namespace, history + "-0", "--tail=20"},
			{"logs", "-n", kit.Namespace, "deployment/" + console, "--tail=20"}, {"logs", "-n", kit.Namespace, "daemonset/quartermaster-agent", "--tail=20"}} {
			said, err := n.Run("", "kubectl", args...)
			n.t.Log(said, err)
		}
		n.Run("", "helm", "uninstall", "quartermaster", "--namespace", kit.Namespace, "--no-hooks", "--ignore-not-found")
		n.Run("", "kubectl", "delete", "namespace", "team-a", "team-b", kit.Namespace, "--ignore-not-found", "--timeout=180s")
	}
	for _, args := range [][]string{{"delete", "clusterrolebinding/newcomer", "pv/series", "--ignore-not-found"},
		{"delete", "rolebinding/newcomer", "-n", "kube-public", "--ignore-not-found"}, {"delete", "serviceaccount/newcomer", "--ignore-not-found"},
		{"label", "node", worker, kit.AskLabel + "-"}} {
		if _, err := n.Run("", "kubectl", args...); err != nil {
			n.t.Error(err)
		}
	}
	n.patchNode(worker, map[string]any{"status": map[string]any{"capacity": map[string]any{gpu: nil}, "allocatable": map[string]any{gpu: nil}}}, "status")
}
