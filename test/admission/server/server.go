// Package server runs the cases of test/admission on real API servers.
package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/faults/kit"
)

// Server is a real control plane with the chart installed and no operator, and the client that asks it.
type Server struct {
	*kit.Cluster
	*kit.Lives
	http *http.Client
	// Fills: it has MutatingAdmissionPolicies, so that the chart's fill in what is absent.
	Fills bool
}

// Start one, or join the one of that name, and install the chart into it. More: of cluster.sh's arguments.
func Start(ctx context.Context, name, minor string, more ...string) (*Server, error) {
	cluster, err := kit.Up(ctx, name, minor, append([]string{"--no-kwok", "--no-scheduler"}, more...)...)
	if err != nil {
		return nil, err
	}
	lives, err := cluster.Survive()
	if err != nil {
		return nil, err
	}
	s := &Server{Cluster: cluster, Lives: lives, Fills: minor != "1.30"}
	cluster.Config.Timeout = 90 * time.Second // the largest pods cost a server seconds, and other lanes share the machine
	if s.http, err = rest.HTTPClientFor(cluster.Config); err != nil {
		return nil, err
	}
	if _, err = s.Run("", "helm", "upgrade", "--install", "quartermaster", filepath.Join(admission.Root(), "charts/quartermaster"), "--namespace", kit.Namespace,
		"--create-namespace", "--set", "replicaCount=0"); err != nil {
		return nil, err
	}
	if _, err = s.Run("", "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", "resourcerules.quartermaster.io"); err != nil {
		return nil, err
	}
	for _, class := range []string{"nvidia", "kata"} {
		_, err := s.Client.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Handler: class}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return s, until(ctx, 30*time.Second, "the default ServiceAccount", func() (bool, error) {
		_, err := s.Client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

func until(ctx context.Context, patience time.Duration, what string, done func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s: not within %s", what, patience)
		}
	}
}

// Reply to a request that creates nothing.
type Reply struct {
	Code     int
	Message  string      // of a refusal
	Warnings []string    // as they come
	Pod      *corev1.Pod // as it would be
}

// DryRun creates an object without creating it.
func (s *Server) DryRun(ctx context.Context, object runtime.Object, kind schema.GroupVersionKind, resource, namespace string) (Reply, error) {
	var out Reply
	object.GetObjectKind().SetGroupVersionKind(kind)
	body, err := json.Marshal(object)
	if err != nil {
		return out, err
	}
	root := "/apis/" + kind.Group + "/" + kind.Version
	if kind.Group == "" {
		root = "/api/" + kind.Version
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Config.Host+root+"/namespaces/"+namespace+"/"+resource+"?dryRun=All", bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	request.Header.Set("Content-Type", "application/json")
	code, warnings, text, err := kit.Exchange(s.http, request)
	if err != nil {
		return out, err
	}
	out.Code, out.Warnings = code, warnings
	if out.Code != http.StatusCreated {
		var status metav1.Status
		err = json.Unmarshal(text, &status)
		out.Message = status.Message
		return out, err
	}
	if kind.Kind == "Pod" {
		out.Pod = &corev1.Pod{}
		err = json.Unmarshal(text, out.Pod)
	}
	return out, err
}

// Pod in the namespace default.
func (s *Server) Pod(ctx context.Context, pod *corev1.Pod) (Reply, error) {
	return s.DryRun(ctx, pod.DeepCopy(), corev1.SchemeGroupVersion.WithKind("Pod"), "pods", "default")
}

// said of a policy: the rest of a text that tells which policy speaks; empty when it is another that speaks.
func said(text, policy string) string {
	_, after, found := strings.Cut(text, "ValidatingAdmissionPolicy '"+policy+".quartermaster.io' with binding '")
	if !found {
		return ""
	}
	for _, before := range []string{"' denied request: ", ".quartermaster.io': "} {
		if _, rest, found := strings.Cut(after, before); found {
			return rest
		}
	}
	return ""
}

// Refusal in the words of the rules; empty when someone else refused, or no one did.
func (r Reply) Refusal() string {
	if text := said(r.Message, "resource-rules"); text != "" {
		return text
	}
	_, text, _ := strings.Cut(r.Message, " denied the request: ") // of a webhook
	return text
}

// Warned is what a policy warned about; empty: nothing.
func (r Reply) Warned(policy string) string { return strings.Join(r.WarnedAll(policy), " | ") }

// WarnedAll is the same, each warning for itself.
func (r Reply) WarnedAll(policy string) []string {
	var out []string
	for _, warning := range r.Warnings {
		if text := said(warning, policy); text != "" {
			out = append(out, text)
		}
	}
	return out
}
