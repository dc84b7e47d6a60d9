// Package placements tries the scheduler extender as a cluster has it: installed by the chart, asked by a kube-scheduler.
package placements

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"quartermaster.io/test/faults/kit"
)

// The document tells people to install here; the name of the extender's certificate says so too.
const release = "quartermaster"

// work is where pods of people are.
const work = "work"

// stage is a control plane without a scheduler, with the chart as docs/scheduling.md installs it.
type stage struct {
	*kit.Cluster
	ctx   context.Context
	admin *http.Client
}

func document() (string, error) {
	text, err := os.ReadFile(filepath.Join(kit.Root(), "docs/scheduling.md"))
	return string(text), err
}

// fenced are the code blocks of a language in the document.
func fenced(text, language string) (out []string) {
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}
	return
}

// upgradeCommand is the document's.
func upgradeCommand() ([]string, error) {
	text, err := document()
	if err != nil {
		return nil, err
	}
	for _, block := range fenced(text, "sh") {
		if line := strings.TrimSpace(block); strings.HasPrefix(line, "helm upgrade ") && !strings.Contains(line, "\n") {
			return strings.Fields(line)[1:], nil
		}
	}
	return nil, fmt.Errorf("docs/scheduling.md has no `helm upgrade` of one line")
}

func open(ctx context.Context, name, minor string) (*stage, error) {
	cluster, err := kit.Up(ctx, name, minor, "--no-scheduler")
	if err != nil {
		return nil, err
	}
	s := &stage{Cluster: cluster, ctx: ctx}
	if s.admin, err = rest.HTTPClientFor(cluster.Config); err != nil {
		return nil, err
	}
	if err := os.Chdir(kit.Root()); err != nil { // where the document's commands work
		return nil, err
	}
	if _, err := s.Run("", "helm", "upgrade", "--install", "quartermaster", "charts/quartermaster", "-n", release, "--create-namespace", "--set", "rbac.pluginServiceAccounts={fpga-plugin},replicaCount=0,modules.gpushare.rbac=true"); err != nil {
		return nil, err
	}
	command, err := upgradeCommand()
	if err != nil {
		return nil, err
	}
	if _, err := s.Run("", "helm", append([]string{"upgrade"}, command[1:]...)...); err != nil {
		return nil, err
	}
	_, err = s.Run(`
apiVersion: v1
kind: Namespace
metadata: {name: work}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
---
# What these may do is bounded by the policies alone.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: placements-test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
  - {kind: ServiceAccount, name: gpu-manager, namespace: elsewhere}
  - {kind: ServiceAccount, name: quartermaster, namespace: elsewhere}
  - {kind: ServiceAccount, name: nvidia-device-plugin, namespace: quartermaster}
`, "kubectl", "apply", "-f", "-")
	return s, err
}

// node that is Ready as soon as KWOK has seen it. Mode empty: one without cards.
func (s *stage) node(name, mode, product string, cards, memoryMiB int64, offers map[string]int64) error {
	amounts := corev1.ResourceList{"cpu": resource.MustParse("512"), "memory": resource.MustParse("4Ti"), "pods": resource.MustParse("2000")}
	for key, amount := range offers {
		amounts[corev1.ResourceName(key)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	labels := map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	if mode != "" {
		for key, value := range map[string]string{kit.ModuleLabel: mode, kit.AskLabel: mode, "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product,
			"nvidia.com/gpu.count": fmt.Sprint(cards), "nvidia.com/gpu.memory": fmt.Sprint(memoryMiB), "nvidia.com/gpu.family": "turing",
			"nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "5", "nvidia.com/mig.strategy": "none"} {
			labels[key] = value
		}
	}
	annotations := map[string]string{}
	if mode == "hami" {
		annotations[kit.HamiRegisterKey] = kit.HamiRegister(name, product, cards, memoryMiB)
	}
	_, err := s.Client.CoreV1().Nodes().Create(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}, Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", Architecture: "amd64", OperatingSystem: "linux", KernelVersion: "6.8.0", ContainerRuntimeVersion: "cri-o://1.33.2"}}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *stage) account(namespace, name string) error {
	if err := kit.Until(s.ctx, 10*time.Second, "the namespace "+namespace, func() (bool, error) {
		_, err := s.Client.CoreV1().ServiceAccounts(namespace).Get(s.ctx, "default", metav1.GetOptions{})
		return err == nil, err
	}); err != nil {
		return err
	}
	_, err := s.Client.CoreV1().ServiceAccounts(namespace).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// who asks the server.
type who struct{ http *http.Client }

// user is one the server believes us to be, for we are its administrator.
func (s *stage) user(name string, groups ...string) who {
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	return who{http: client}
}

// token of a ServiceAccount as a pod of it on that node has; node empty: as `kubectl create token` makes it.
func (s *stage) token(namespace, account, node string) (who, error) {
	request := &authenticationv1.TokenRequest{}
	if node != "" {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: account + "-" + node, Namespace: namespace}, Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: account,
			Containers: []corev1.Container{{Name: "plugin", Image: "x"}}}}
		is, err := s.Client.CoreV1().Pods(namespace).Create(s.ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			is, err = s.Client.CoreV1().Pods(namespace).Get(s.ctx, pod.Name, metav1.GetOptions{})
		}
		if err != nil {
			return who{}, err
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: is.Name, UID: is.UID}
	}
	made, err := s.Client.CoreV1().ServiceAccounts(namespace).CreateToken(s.ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return who{}, err
	}
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = made.Status.Token
	client, err := rest.HTTPClientFor(config)
	return who{http: client}, err
}

// reply of the server.
type reply struct {
	code     int
	message  string
	warnings []string
	object   map[string]any
}

const (
	merge     = "application/merge-patch+json"
	strategic = "application/strategic-merge-patch+json"
	plain     = "application/json"
)

// ask the server. Body: a text, or what becomes one.
func (s *stage) ask(as who, method, path, kind string, body any) (out reply, err error) {
	text, ok := body.(string)
	if !ok {
		bytes, err := json.Marshal(body)
		if err != nil {
			return out, err
		}
		text = string(bytes)
	}
	request, err := http.NewRequestWithContext(s.ctx, method, s.Config.Host+path, bytes.NewBufferString(text))
	if err != nil {
		return out, err
	}
	request.Header.Set("Content-Type", kind)
	code, warnings, said, err := kit.Exchange(as.http, request)
	if err != nil {
		return out, err
	}
	out.code, out.warnings = code, warnings
	if err := json.Unmarshal(said, &out.object); err != nil {
		return out, fmt.Errorf("%s %s: %d %s", method, path, out.code, said)
	}
	out.message, _ = out.object["message"].(string)
	return out, nil
}

func amount(text string) *resource.Quantity {
	out := resource.MustParse(text)
	return &out
}
