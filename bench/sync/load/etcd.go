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

// envsFor is how many environment variables bring a pod to about `size` protobuf bytes.
func envsFor(o Options) int {
	least, more := Pod(o.Seed, 0, o.Nodes, 5).Size(), Pod(o.Seed, 0, o.Nodes, 105).Size()
	return 5 + max(0, (o.Size-least)*100/(more-least))
}

type etcd struct {
	endpoint string
	encode   runtime.Encoder
	puts     []any
	bytes    int
}

// Into writes the objects past the API server, as it would have stored them: "k8s\0" and the protobuf envelope. The server must be
// up: its watch cache learns of them from etcd. Goes through etcd's JSON gateway, in transactions of about 1 MB.
func Into(ctx context.Context, endpoint string, o Options) (Sizes, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return Sizes{}, err
	}
	e := &etcd{endpoint: endpoint, encode: protobuf.NewSerializer(scheme, scheme)}
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
	envs := envsFor(o)
	for i := range o.Pods {
		pod := Pod(o.Seed, i, o.Nodes, envs)
		if err := e.put(ctx, "/registry/pods/"+pod.Namespace+"/"+pod.Name, pod); err != nil {
			return Sizes{}, err
		}
	}
	node, pod := Node(o.Seed, 0), Pod(o.Seed, 0, o.Nodes, envs)
	nodeJSON, _ := json.Marshal(node)
	podJSON, _ := json.Marshal(pod)
	return Sizes{node.Size(), len(nodeJSON), pod.Size(), len(podJSON)}, e.flush(ctx)
}

func (e *etcd) put(ctx context.Context, key string, object runtime.Object) error {
	var value bytes.Buffer
	if err := e.encode.Encode(object, &value); err != nil {
		return err
	}
	e.puts = append(e.puts, map[string]any{"requestPut": map[string]any{"key": []byte(key), "value": value.Bytes()}})
	if e.bytes += value.Len(); e.bytes > 900_000 || len(e.puts) == 100 {
		return e.flush(ctx)
	}
	return nil
}

func (e *etcd) flush(ctx context.Context) error {
	if len(e.puts) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"success": e.puts})
	if err != nil {
		return err
	}
	e.puts, e.bytes = nil, 0
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || !bytes.Contains(said, []byte(`"succeeded":true`)) {
		return fmt.Errorf("etcd: %s: %.200s", answer.Status, said)
	}
	return nil
}
