package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// Options say what to load. Size is the wished protobuf size of a pod in bytes; pods below the least (about 7 KB) are not made.
type Options struct {
	Nodes, Pods, Size int
	Seed              int64
}

// Sizes of what was loaded, in bytes.
type Sizes struct{ NodeProtobuf, NodeJSON, PodProtobuf, PodJSON int }

// Variables is how many environment variables bring a pod to about `size` protobuf bytes.
func Variables(o Options) int {
	least, more := Pod(o.Seed, 0, o.Nodes, 5).Size(), Pod(o.Seed, 0, o.Nodes, 105).Size()
	return 5 + max(0, (o.Size-least)*100/(more-least))
}

// Etcd writes objects past the API server, as it would have stored them: "k8s\0" and the protobuf envelope. Goes through etcd's JSON
// gateway, so no client of etcd is needed. Single writes are safe from several goroutines, the bulk ones are not.
type Etcd struct {
	endpoint string
	encode   runtime.Encoder
	puts     []any
	bytes    int
}

// NewEtcd is for an endpoint such as http://127.0.0.1:2379.
func NewEtcd(endpoint string) *Etcd {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err) // names of types that collide: a bug
	}
	return &Etcd{endpoint: endpoint, encode: protobuf.NewSerializer(scheme, scheme)}
}

// Load writes everything. The API server must be up: its watch cache learns of the objects from etcd.
func (e *Etcd) Load(ctx context.Context, o Options) (Sizes, error) {
	for i := range Namespaces {
		ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: NamespaceName(i), UID: Node(o.Seed, i).UID, CreationTimestamp: at(0)},
			Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
		if err := e.put(ctx, "/registry/namespaces/"+ns.Name, ns); err != nil {
			return Sizes{}, err
		}
	}
	for i := range o.Nodes {
		if err := e.put(ctx, "/registry/minions/"+NodeName(i), Node(o.Seed, i)); err != nil {
			return Sizes{}, err
		}
	}
	envs := Variables(o)
	for i := range o.Pods {
		pod := Pod(o.Seed, i, o.Nodes, envs)
		if err := e.put(ctx, podKey(pod), pod); err != nil {
			return Sizes{}, err
		}
	}
	node, pod := Node(o.Seed, 0), Pod(o.Seed, 0, o.Nodes, envs)
	nodeJSON, _ := json.Marshal(node)
	podJSON, _ := json.Marshal(pod)
	return Sizes{node.Size(), len(nodeJSON), pod.Size(), len(podJSON)}, e.flush(ctx)
}

// Add collects nodes and pods; Flush writes the last of them.
func (e *Etcd) Add(ctx context.Context, object runtime.Object) error {
	switch o := object.(type) {
	case *corev1.Node:
		return e.put(ctx, "/registry/minions/"+o.Name, o)
	case *corev1.Pod:
		return e.put(ctx, podKey(o), o)
	}
	return fmt.Errorf("not a node or a pod: %T", object)
}

// Flush writes what Add has collected.
func (e *Etcd) Flush(ctx context.Context) error { return e.flush(ctx) }

// Put writes one pod and returns when etcd has it. For what is watched already: the objects of a transaction have one version, and a watch
// that goes on from there misses some of them.
func (e *Etcd) Put(ctx context.Context, pod *corev1.Pod) error {
	put, _, err := e.request(podKey(pod), pod)
	if err != nil {
		return err
	}
	return e.send(ctx, []any{put})
}

// Remove a pod without a grace period, as a watch sees it when a kubelet has let go of it.
func (e *Etcd) Remove(ctx context.Context, pod *corev1.Pod) error {
	return e.send(ctx, []any{map[string]any{"requestDeleteRange": map[string]any{"key": []byte(podKey(pod))}}})
}

func podKey(pod *corev1.Pod) string { return "/registry/pods/" + pod.Namespace + "/" + pod.Name }

func (e *Etcd) request(key string, object runtime.Object) (put any, size int, err error) {
	var value bytes.Buffer
	err = e.encode.Encode(object, &value)
	return map[string]any{"requestPut": map[string]any{"key": []byte(key), "value": value.Bytes()}}, value.Len(), err
}

// put collects transactions of about 1 MB.
func (e *Etcd) put(ctx context.Context, key string, object runtime.Object) error {
	put, size, err := e.request(key, object)
	if err != nil {
		return err
	}
	e.puts = append(e.puts, put)
	if e.bytes += size; e.bytes > 900_000 || len(e.puts) == 100 {
		return e.flush(ctx)
	}
	return nil
}

func (e *Etcd) flush(ctx context.Context) error {
	puts := e.puts
	e.puts, e.bytes = nil, 0
	if len(puts) == 0 {
		return nil
	}
	return e.send(ctx, puts)
}

func (e *Etcd) send(ctx context.Context, puts []any) error {
	body, err := json.Marshal(map[string]any{"success": puts})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !bytes.Contains(said, []byte(`"succeeded":true`))) {
		return fmt.Errorf("etcd: %s: %.200s", answer.Status, said)
	}
	return err
}
