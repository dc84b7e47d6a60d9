package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/randfill"
)

func serializerFor(mediaType string) runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		panic(mediaType)
	}
	return info
}

func smallPod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: uid(len(name)), ResourceVersion: version}}
}

// A watch as the API server writes it: framer and embedded encoder of the negotiated serializer.
func stream(info runtime.SerializerInfo, events []watch.Event) []byte {
	var out bytes.Buffer
	framer := info.StreamSerializer.Framer.NewFrameWriter(&out)
	encoder := codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion)
	embedded := codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	for _, event := range events {
		raw := must(runtime.Encode(embedded, event.Object))
		wrapped := &metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Raw: bytes.TrimSpace(raw)}}
		if info.MediaType == runtime.ContentTypeProtobuf {
			wrapped.Object.Raw = raw
		}
		if err := encoder.Encode(wrapped, framer); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

func bookmark(version string, ends bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if ends {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return pod
}

func writeStreams() {
	expired := apierrors.NewResourceExpired("too old resource version: 5 (9)").Status()
	events := []watch.Event{
		{Type: watch.Added, Object: smallPod("b", "3")},
		{Type: watch.Added, Object: smallPod("a", "2")},
		{Type: watch.Bookmark, Object: bookmark("5", true)},
		{Type: watch.Modified, Object: gpuPod()},
		{Type: watch.Deleted, Object: smallPod("b", "987660")},
		{Type: watch.Bookmark, Object: bookmark("987700", false)},
		{Type: watch.Added, Object: smallPod("c", "987701")},
		{Type: watch.Error, Object: &expired},
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "next-token", RemainingItemCount: pointer(int64(1))},
		Items: []corev1.Pod{*smallPod("a", "1"), *plainPod(), *gpuPod()}}
	for suffix, mediaType := range map[string]string{"pb": runtime.ContentTypeProtobuf, "json": runtime.ContentTypeJSON} {
		info := serializerFor(mediaType)
		write("pods.watch."+suffix, stream(info, events))
		write("pods.list."+suffix, must(runtime.Encode(codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), list)))
	}
}

func writeStatuses() {
	pods := schema.GroupResource{Resource: "pods"}
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9999, current: 12", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	for name, err := range map[string]*apierrors.StatusError{
		"status_expired":   apierrors.NewResourceExpired("too old resource version: 1 (2)"),
		"status_too_large": tooLarge,
		"status_exists":    apierrors.NewAlreadyExists(pods, "a"),
		"status_conflict":  apierrors.NewConflict(pods, "a", fmt.Errorf("the object has been modified")),
		"status_too_many":  apierrors.NewTooManyRequests("too many requests", 7),
		"status_forbidden": apierrors.NewForbidden(pods, "a", fmt.Errorf("no")),
		"status_invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil),
		"status_internal":  apierrors.NewInternalError(fmt.Errorf("etcdserver: no leader")),
	} {
		status := err.Status()
		for suffix, mediaType := range map[string]string{"pb": runtime.ContentTypeProtobuf, "json": runtime.ContentTypeJSON} {
			write(name+"."+suffix, must(runtime.Encode(codecs.EncoderForVersion(serializerFor(mediaType).Serializer, corev1.SchemeGroupVersion), &status)))
		}
	}
}

// Objects with every field of the real types filled at random, length-prefixed like a stream.
func writeRandom() {
	quantities := []string{"1", "0", "100m", "4Gi", "2k", "1e3", "1500m", "9223372036854775807"}
	filler := randfill.New().RandSource(rand.NewSource(42)).NilChance(0.6).NumElements(0, 2).MaxDepth(12).Funcs(
		func(quantity *resource.Quantity, c randfill.Continue) {
			*quantity = resource.MustParse(quantities[c.Intn(len(quantities))])
		},
		func(list *corev1.ResourceList, c randfill.Continue) {
			*list = corev1.ResourceList{}
			for _, name := range []string{"cpu", "nvidia.com/gpu", "tencent.com/vcuda-core", "memory", "x.kubernetes.io/y"} {
				if c.Bool() {
					(*list)[corev1.ResourceName(name)] = resource.MustParse(quantities[c.Intn(len(quantities))])
				}
			}
		},
		func(time *metav1.Time, c randfill.Continue) { *time = at(c.Intn(100000)) },
		func(raw *metav1.FieldsV1, c randfill.Continue) { raw.Raw = []byte(`{"f:x":{}}`) },
		func(text *string, c randfill.Continue) {
			*text = strings.Repeat("aé\"<", c.Intn(4)) + fmt.Sprint(c.Intn(1000))
		},
		func(status *corev1.ContainerStatus, c randfill.Continue) {
			c.FillNoCustom(status)
			status.RestartCount = int32(c.Intn(50))
		},
	)
	var nodes, pods bytes.Buffer
	expectedNodes, expectedPods := []values{}, []values{}
	put := func(out *bytes.Buffer, object message) {
		raw := must(object.Marshal())
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(raw))))
		out.Write(raw)
	}
	for i := range 40 {
		pod, node := &corev1.Pod{}, &corev1.Node{}
		filler.Fill(pod)
		filler.Fill(node)
		for _, meta := range []*metav1.ObjectMeta{&pod.ObjectMeta, &node.ObjectMeta} {
			meta.Name, meta.UID, meta.ResourceVersion = fmt.Sprintf("random-%d", i), uid(i), fmt.Sprint(1000+i)
		}
		if i%2 == 0 {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: "Ready", Status: "False", LastTransitionTime: at(i)})
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "Ready", Status: "True"})
			pod.Annotations = map[string]string{"tencent.com/x": "y", "kubernetes.io/config.mirror": "z", "other": "w"}
		}
		if i%3 == 0 {
			pod.Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}[i%2]
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "PodScheduled", Status: "True", LastTransitionTime: at(i)})
		}
		put(&pods, pod)
		put(&nodes, node)
		expectedPods, expectedNodes = append(expectedPods, expectPod(pod)), append(expectedNodes, expectNode(node))
	}
	write("random_pods.pb", pods.Bytes())
	write("random_nodes.pb", nodes.Bytes())
	writeJSON("random_pods.expected.json", expectedPods)
	writeJSON("random_nodes.expected.json", expectedNodes)
}

// Pods that bring a folder of their node, next to what pods usually have.
func writeHostPaths() {
	var pods bytes.Buffer
	expected := []values{}
	for i, folder := range []string{"/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins/", "//var/./lib//kubelet/device-plugins", "/var/lib/kubelet", "/var/lib/", "/var",
		"/", "/.", "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/k0s/kubelet/device-plugins", "/var/lib/kubelet/pods", "/var/lib/kubelet2", "/var/lib/kube", "/dev", "/var/run",
		"/etc/kubernetes", "/var/lib/kubelet/device-plugins-old", "/device-plugins/x", "/opt/var/lib/kubelet"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("volume-%d", i), Namespace: "team-a", UID: uid(i), ResourceVersion: fmt.Sprint(50 + i)}}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: pointer(corev1.HostPathDirectory)}}},
			{Name: "/var/lib/kubelet", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "/var/lib/kubelet"}}}}}
		raw := must(pod.Marshal())
		pods.Write(binary.BigEndian.AppendUint32(nil, uint32(len(raw))))
		pods.Write(raw)
		expected = append(expected, values{"path": folder, "registers": expectRegisters(&pod.Spec)})
	}
	write("host_paths.pb", pods.Bytes())
	writeJSON("host_paths.expected.json", expected)
}

func writeQuantities() {
	texts := []string{"", "0", "1", "00", "+1", "-1", "8", "1.", "1.5", ".5", ".", "+", "-", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti",
		"1Pi", "1Ei", "7Ei", "8Ei", "100Ei", "1n", "1u", "1m", "999m", "1000m", "1001m", "1500m", "-1500m", "-1m", "1e3", "1E3", "1e-3", "1e+3", "2.5e1", "1e0",
		"1.5Gi", "0.1Ki", "1.0001Ki", "-1.5Gi", "1e", "1e+", "1 ", " 1", "1x", "x", "k", "Ki", "1K", "1ki", "1Kii", "1kM", "1mi", "0x10", "1_000", "1,5", "١", "1e3k",
		"9223372036854775807", "12345678901234567", "0.000000001", "0.0000000001", "1000000000000000000n", "123456789.987654321", "1e18",
		"0e100", "0Gi", "0.0", "1e-100", "1e-10", "4Gi", "128974848", "129e6", "129M", "123Mi", "1.5.5", "--1", "+-1", "1e--3", "1ee3", "1Ei5", "1m5", "e3", "E"}
	var out strings.Builder
	for _, text := range texts {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Fprintf(&out, "%s\terror\n", text)
		} else {
			fmt.Fprintf(&out, "%s\t%d\n", text, quantity.Value())
		}
	}
	write("quantities.tsv", []byte(out.String()))
}
