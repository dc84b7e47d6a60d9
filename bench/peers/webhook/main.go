// An admission webhook as Go operators have it, on controller-runtime: it fills in what declared rules say is missing from a pod, the
// same as ours, from the same rules. bench/webhook_server is the counterpart. Prints `serving <port>`.
//
//	-patch raw   as controller-runtime's own examples do: the pod is decoded, changed, encoded, and the library finds the difference
//	-patch own   the better form: the handler writes the patch itself
//
// Go's collector runs as it comes. Pinned to one core, GOMAXPROCS is 1 by itself.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type rule struct {
	Group            string `json:"group"`
	Fill             string `json:"fill"`
	RuntimeClassName string `json:"runtimeClassName"`
	WaivedBy         string `json:"waivedBy"`
	WaivedFrom       int64  `json:"waivedFrom"`

	amount resource.Quantity // of Fill
}

type rules struct {
	Rules  map[corev1.ResourceName]*rule    `json:"rules"`
	Groups map[string][]corev1.ResourceName `json:"groups"` // sorted
}

func read(file string) (*rules, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := &rules{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, err
	}
	for _, r := range out.Rules {
		if r.Fill != "" {
			if r.amount, err = resource.ParseQuantity(r.Fill); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// fills of one container: reconcilers/declarations/evaluate.cpp in Go.
func (r *rules) fills(c *corev1.Container) (out []corev1.ResourceName) {
	seen := map[string]bool{}
	for key, amount := range c.Resources.Limits {
		of := r.Rules[key]
		if of == nil || of.Group == "" || amount.Sign() <= 0 || seen[of.Group] {
			continue
		}
		seen[of.Group] = true
		for _, member := range r.Groups[of.Group] {
			m := r.Rules[member]
			if m == nil || m.Fill == "" {
				continue
			}
			if _, asked := c.Resources.Limits[member]; asked {
				continue
			}
			if m.WaivedBy != "" {
				if whole := c.Resources.Limits[corev1.ResourceName(m.WaivedBy)]; whole.Value() >= m.WaivedFrom {
					continue
				}
			}
			out = append(out, member)
		}
	}
	return out
}

func (r *rules) class(pod *corev1.Pod) string {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for key, amount := range containers[i].Resources.Limits {
				if of := r.Rules[key]; of != nil && of.RuntimeClassName != "" && amount.Sign() > 0 {
					return of.RuntimeClassName
				}
			}
		}
	}
	return ""
}

type handler struct {
	rules   *rules
	decoder admission.Decoder
	own     bool
}

func (h *handler) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := h.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var patch []jsonpatch.JsonPatchOperation
	add := func(path string, value any) {
		if h.own {
			patch = append(patch, jsonpatch.NewOperation("add", path, value))
		}
	}
	class := ""
	if pod.Spec.RuntimeClassName == nil {
		class = h.rules.class(pod)
	}
	for part, containers := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		for i := range containers {
			for _, key := range h.rules.fills(&containers[i]) {
				amount := h.rules.Rules[key].amount
				containers[i].Resources.Limits[key], containers[i].Resources.Requests[key] = amount, amount
				if h.own {
					name := strings.ReplaceAll(strings.ReplaceAll(string(key), "~", "~0"), "/", "~1")
					at := "/spec/" + part + "/" + strconv.Itoa(i) + "/resources/"
					add(at+"limits/"+name, amount.String())
					add(at+"requests/"+name, amount.String())
				}
			}
		}
	}
	if class != "" {
		pod.Spec.RuntimeClassName = &class
		add("/spec/runtimeClassName", class)
	}
	if h.own {
		return admission.Patched("", patch...)
	}
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func main() {
	folder := flag.String("cert-dir", "", "where tls.crt and tls.key are")
	file := flag.String("rules", "", "the spec of a ResourceRules object")
	patch := flag.String("patch", "raw", "raw or own")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
	known, err := read(*file)
	if err != nil {
		fail(err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		fail(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: *folder, TLSOpts: []func(*tls.Config){}})
	server.Register("/mutate/pods", &webhook.Admission{Handler: &handler{rules: known, decoder: admission.NewDecoder(scheme), own: *patch == "own"}})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		for at := fmt.Sprintf("127.0.0.1:%d", port); ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			if c, err := net.Dial("tcp", at); err == nil {
				c.Close()
				fmt.Printf("serving %d\n", port)
				return
			}
		}
	}()
	if err := server.Start(ctx); err != nil {
		fail(err)
	}
}
