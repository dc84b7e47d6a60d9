// Package staticpods does what a kubelet does with static pods, and nothing else: it watches a folder of manifests, runs each one's first
// container as a process, shows a mirror pod in the API, and starts again what has ended. Several may run on one machine, each with a folder
// that stands for the /etc/kubernetes of its control-plane node.
//
// Like a kubelet it skips names that begin with a dot, and takes every other regular file for a pod. Any change of a file replaces its pod, which
// is stopped first. A hostPath file is mounted, so that a running container keeps seeing the file it was started with; one of type File must exist.
// Unlike a kubelet it makes a mirror that someone deletes again only when the pod's status changes, and the delay after a crash is never reset.
package staticpods

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// Kubelet of one control-plane node.
type Kubelet struct {
	Node     string
	Root     string            // stands for /etc/kubernetes
	Work     string            // its own folder: logs, root folders of containers
	Programs map[string]string // in place of images: command[0] -> file, statically linked
	Client   kubernetes.Interface
	// Fails says whether a container with this command ends at once; nil: none does.
	Fails func(command []string) bool

	mu   sync.Mutex
	pods map[string]*pod // by file name
}

const (
	scan       = 100 * time.Millisecond
	grace      = 5 * time.Second // SIGKILL after it
	mostDelay  = 4 * time.Second // of a crash loop; a kubelet's is five minutes
	firstDelay = 500 * time.Millisecond
)

type pod struct {
	spec *corev1.Pod
	hash string

	container *container
	restarts  int32
	delay     time.Duration
	notBefore time.Time
	waits     string // why there is no container
	shown     *corev1.PodStatus
}

// Run until the context ends; then every container is ended. Mirrors stay, as those of a kubelet that is gone.
func (k *Kubelet) Run(ctx context.Context) {
	k.mu.Lock()
	k.pods = map[string]*pod{}
	k.mu.Unlock()
	for ctx.Err() == nil {
		k.sync(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(scan):
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		p.stop()
	}
}

// Restarts of the pod of a manifest since it was replaced, and whether its container runs.
func (k *Kubelet) Restarts(file string) (int32, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[file]
	if p == nil {
		return 0, false
	}
	return p.restarts, p.container != nil
}

// manifests that can be read, by file name.
func (k *Kubelet) manifests() map[string]*pod {
	out := map[string]*pod{}
	folder := filepath.Join(k.Root, "manifests")
	files, _ := os.ReadDir(folder)
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") || !file.Type().IsRegular() {
			continue
		}
		path := filepath.Join(folder, file.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		spec := &corev1.Pod{}
		if err := yaml.Unmarshal(text, spec); err != nil || spec.Name == "" || len(spec.Spec.Containers) == 0 {
			continue // said in a kubelet's log only
		}
		sum := sha256.Sum256(append([]byte(k.Node+"\x00"+path+"\x00"), text...))
		out[file.Name()] = &pod{spec: spec, hash: hex.EncodeToString(sum[:16])}
	}
	return out
}

func (k *Kubelet) sync(ctx context.Context) {
	wanted := k.manifests()
	k.mu.Lock()
	defer k.mu.Unlock()
	for file, p := range k.pods {
		if is := wanted[file]; is == nil || is.hash != p.hash {
			p.stop()
			delete(k.pods, file)
			if is == nil || is.spec.Name != p.spec.Name || is.spec.Namespace != p.spec.Namespace {
				k.unmirror(ctx, p.spec)
			}
		}
	}
	for file, p := range wanted {
		if k.pods[file] == nil {
			k.pods[file] = p
		}
	}
	for _, p := range k.pods {
		k.drive(p)
		k.mirror(ctx, p)
	}
}

func (p *pod) stop() {
	if p.container != nil {
		p.container.stop()
		p.container = nil
	}
}

// drive starts what does not run.
func (k *Kubelet) drive(p *pod) {
	if p.container != nil {
		if !p.container.ended() {
			return
		}
		p.container = nil
		p.restarts++
		p.delay = min(max(2*p.delay, firstDelay), mostDelay)
		p.notBefore = time.Now().Add(p.delay)
		p.waits = "CrashLoopBackOff"
	}
	if time.Now().Before(p.notBefore) {
		return
	}
	made, err := k.start(p.spec)
	if err != nil {
		p.waits = "ContainerCreating"
		p.notBefore = time.Now().Add(firstDelay)
		return
	}
	p.container, p.waits = made, ""
}

var probe = &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}

// ready as its readiness or liveness probe says.
func (p *pod) ready() bool {
	if p.container == nil {
		return false
	}
	c := p.spec.Spec.Containers[0]
	with := c.ReadinessProbe
	if with == nil {
		with = c.LivenessProbe
	}
	if with == nil || with.HTTPGet == nil {
		return true
	}
	port := with.HTTPGet.Port.String()
	for _, one := range c.Ports {
		if one.Name == port {
			port = fmt.Sprint(one.ContainerPort)
		}
	}
	scheme := cmp.Or(strings.ToLower(string(with.HTTPGet.Scheme)), "http")
	reply, err := probe.Get(fmt.Sprintf("%s://%s:%s%s", scheme, with.HTTPGet.Host, port, with.HTTPGet.Path))
	if err != nil {
		return false
	}
	reply.Body.Close()
	return reply.StatusCode < 400
}

func (k *Kubelet) name(spec *corev1.Pod) string { return spec.Name + "-" + k.Node }

func (k *Kubelet) unmirror(ctx context.Context, spec *corev1.Pod) {
	now := int64(0)
	k.Client.CoreV1().Pods(spec.Namespace).Delete(ctx, k.name(spec), metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// mirror shows the pod in the API; what fails is tried again with the next look.
func (k *Kubelet) mirror(ctx context.Context, p *pod) {
	api := k.Client.CoreV1().Pods(p.spec.Namespace)
	status := p.status()
	if p.shown != nil && reflect.DeepEqual(p.shown, &status) {
		return
	}
	is, err := api.Get(ctx, k.name(p.spec), metav1.GetOptions{})
	if err == nil && is.Annotations["kubernetes.io/config.hash"] != p.hash {
		k.unmirror(ctx, p.spec)
		err = apierrors.NewNotFound(corev1.Resource("pods"), is.Name)
	}
	if apierrors.IsNotFound(err) {
		made := p.spec.DeepCopy()
		made.Name, made.Spec.NodeName, made.Status = k.name(p.spec), k.Node, corev1.PodStatus{}
		if made.Annotations == nil {
			made.Annotations = map[string]string{}
		}
		for key, value := range map[string]string{"hash": p.hash, "mirror": p.hash, "source": "file", "seen": time.Now().Format(time.RFC3339Nano)} {
			made.Annotations["kubernetes.io/config."+key] = value
		}
		made.Spec.Tolerations = append(made.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
		_, err = api.Create(ctx, made, metav1.CreateOptions{})
	}
	if err != nil {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return
	}
	if _, err = api.Patch(ctx, k.name(p.spec), "application/strategic-merge-patch+json", patch, metav1.PatchOptions{}, "status"); err == nil {
		p.shown = &status
	}
}

func (p *pod) status() corev1.PodStatus {
	c := corev1.ContainerStatus{Name: p.spec.Spec.Containers[0].Name, Image: p.spec.Spec.Containers[0].Image, RestartCount: p.restarts, Ready: p.ready()}
	out := corev1.PodStatus{Phase: corev1.PodRunning}
	if p.container != nil {
		c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.container.started)}
	} else {
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: p.waits}
		if p.restarts == 0 {
			out.Phase = corev1.PodPending
		}
	}
	ready := corev1.ConditionFalse
	if c.Ready {
		ready = corev1.ConditionTrue
	}
	out.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	out.ContainerStatuses = []corev1.ContainerStatus{c}
	return out
}

// Log of a pod's container: all its lives.
func (k *Kubelet) Log(name string) string {
	text, _ := os.ReadFile(filepath.Join(k.Work, name+".log"))
	return string(text)
}

// container is a process with a root folder of its own.
type container struct {
	cmd     *exec.Cmd
	done    chan struct{}
	started time.Time
}

func (c *container) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
