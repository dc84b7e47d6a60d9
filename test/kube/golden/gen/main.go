// Writes the fixtures of the projection tests with the real Kubernetes types and serializers: run it in its folder with
// `go run . ..` after a change. Expected values are computed here, from the typed objects, not by our decoder.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	folder string
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func write(name string, bytes []byte) {
	if err := os.WriteFile(filepath.Join(folder, name), bytes, 0o644); err != nil {
		log.Fatal(err)
	}
}

func writeJSON(name string, value any) {
	write(name, append(must(json.MarshalIndent(value, "", " ")), '\n'))
}

type message interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// One object in both encodings, with what a projection of it must hold.
func writeObject(name string, object message, expected any) {
	write(name+".pb", must(object.Marshal()))
	write(name+".json", must(json.Marshal(object)))
	writeJSON(name+".expected.json", expected)
}

func main() {
	folder = os.Args[1]
	gfd := gfdNode()
	writeObject("node_gfd", gfd, expectNode(gfd))
	for name, pod := range map[string]*corev1.Pod{
		"pod_gpu": gpuPod(), "pod_plain": plainPod(), "pod_mirror": mirrorPod(), "pod_evicted": evictedPod(),
		"pod_described": describedPod(),
	} {
		writeObject(name, pod, expectPod(pod))
	}
	for name, pod := range boundPods() {
		writeObject(name, pod, expectPod(pod))
	}
	space := nameSpace()
	writeObject("name_space", space, expectNamespace(space))
	set := daemonSet()
	writeObject("daemon_set", set, expectDaemonSet(set))
	rolling := deployment()
	writeObject("deployment", rolling, expectDeployment(rolling))
	config := configMap()
	writeObject("config_map", config, expectConfigMap(config))
	lease := newLease()
	writeObject("lease", lease, expectLease(lease))

	writeRandom()
	writeHostPaths()
	writeStreams()
	writeStatuses()
	writeQuantities()
}
