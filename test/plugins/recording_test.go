package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"quartermaster.io/test/faults/kit"
)

// pluginOf a resource: whose program it is, and which version.
func pluginOf(resource string) string {
	switch resource {
	case share:
		return "Project-HAMi/HAMi v2.10.0"
	case memoryUnits:
		return "AliyunContainerService/gpushare-device-plugin 45fb8b8"
	}
	return "NVIDIA/k8s-device-plugin v0.20.0"
}

// kubelet takes registrations in the place of the real one.
type kubelet struct {
	api.UnimplementedRegistrationServer
	asked chan *api.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.asked <- request
	return &api.Empty{}, nil
}

// record takes the place of the kubelet, which is stopped meanwhile, and talks to the plugin that serves the node. `change` alters the
// fixture, and the plugin has to say so; afterwards the fixture is as before. The conversation must be the recorded one.
func (m *machine) record(name, resource string, change func(node object)) {
	m.t.Helper()
	file := kit.ConversationFile(name)
	module, _, _ := strings.Cut(name, "-")
	before := m.registrations(module)
	spoken := m.talk(resource, change)
	// With us and with the real one again. A plugin that finds no kubelet waits 30 s and starts anew, in the middle of the next conversation.
	await(m.t, 60*time.Second, "the plugin registers with the kubelet again", func() (bool, error) {
		count := m.registrations(module)
		return count >= before+2*len(spoken.Register), fmt.Errorf("%d times, and %d before", count, before)
	})
	text, err := json.MarshalIndent(spoken, "", "  ")
	must(m.t, err)
	text = append(text, '\n')
	recorded, err := os.ReadFile(file)
	if bytes.Equal(recorded, text) {
		return
	}
	if os.Getenv("QM_RECORD") != "" {
		must(m.t, os.WriteFile(file, text, 0o644))
		m.t.Logf("recorded %s", file)
		return
	}
	m.t.Errorf("%v: the plugin does not talk as recorded (run.sh --record writes what it says):\n%s", err, text)
}

func (m *machine) talk(resource string, change func(node object)) (spoken kit.Conversation) {
	m.t.Helper()
	spoken = kit.Conversation{Plugin: pluginOf(resource), Annotations: m.annotations, Fixture: m.fixture, Resource: resource, Allocated: map[string]kit.PluginAllocation{}}
	_, err := m.Script("stop", "kubelet")
	must(m.t, err)
	// By a descriptor, because the path of a socket may be too long.
	folder, err := os.Open(filepath.Join(m.Cluster.Dir, "node/var/lib/kubelet/device-plugins"))
	must(m.t, err)
	defer folder.Close()
	socket := func(name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name) }
	os.Remove(socket("kubelet.sock"))
	listener, err := net.Listen("unix", socket("kubelet.sock"))
	must(m.t, err)
	server, stand := grpc.NewServer(), &kubelet{asked: make(chan *api.RegisterRequest, 16)}
	api.RegisterRegistrationServer(server, stand)
	go server.Serve(listener)
	defer func() {
		server.Stop()
		os.Remove(socket("kubelet.sock"))
		_, err := m.Script("start", "kubelet")
		must(m.t, err)
		await(m.t, 60*time.Second, "the kubelet is back", func() (bool, error) { return m.NodeReady(ctx, real1) })
	}()

	endpoint := ""
	for patience := 30 * time.Second; ; patience = 2 * time.Second {
		select {
		case request := <-stand.asked:
			spoken.Register = append(spoken.Register, kit.PluginRegistration{Version: request.Version, Endpoint: request.Endpoint, Resource: request.ResourceName})
			if request.ResourceName == resource {
				endpoint = request.Endpoint
			}
			continue
		case <-time.After(patience):
		}
		break
	}
	if endpoint == "" {
		m.t.Fatalf("no plugin of %s has registered within 30 s; %v", resource, spoken.Register)
	}
	slices.SortFunc(spoken.Register, func(a, b kit.PluginRegistration) int { return strings.Compare(a.Resource, b.Resource) })
	connection, err := grpc.NewClient("unix:"+socket(endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(m.t, err)
	defer connection.Close()
	plugin := api.NewDevicePluginClient(connection)
	limited, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	can, err := plugin.GetDevicePluginOptions(limited, &api.Empty{})
	must(m.t, err)
	spoken.Options = kit.PluginOptions{PreStartRequired: can.PreStartRequired, GetPreferredAllocationAvailable: can.GetPreferredAllocationAvailable}
	watch, err := plugin.ListAndWatch(limited, &api.Empty{})
	must(m.t, err)
	var all []string
	answers := make(chan *api.ListAndWatchResponse, 16)
	go func() {
		defer close(answers)
		for {
			answer, err := watch.Recv()
			if err != nil {
				return
			}
			answers <- answer
		}
	}()
	// It says one device after the other in any order; what counts is what it says at last.
	list := func() {
		m.t.Helper()
		var devices []kit.PluginDevice
		for patience := 20 * time.Second; ; patience = 2 * time.Second {
			select {
			case answer, open := <-answers:
				if !open {
					m.t.Fatal("the plugin has ended ListAndWatch")
				}
				devices = devicesOf(answer)
				continue
			case <-time.After(patience):
			}
			break
		}
		if devices == nil {
			m.t.Fatal("the plugin says nothing in ListAndWatch")
		}
		spoken.Devices = append(spoken.Devices, devices)
	}
	list()
	for _, found := range spoken.Devices[0] {
		all = append(all, found.ID)
	}
	if can.GetPreferredAllocationAvailable {
		answer, err := plugin.GetPreferredAllocation(limited, &api.PreferredAllocationRequest{ContainerRequests: []*api.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: all[1:], AllocationSize: 1}}})
		must(m.t, err)
		for _, container := range answer.ContainerResponses {
			for _, id := range container.DeviceIDs {
				card, _, _ := strings.Cut(id, "::") // any share of it
				spoken.Preferred = append(spoken.Preferred, card)
			}
		}
	}
	if resource != share && resource != memoryUnits { // these answer for a pod that waits, and only then
		answer, err := plugin.Allocate(limited, &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: all[:1]}}})
		must(m.t, err)
		spoken.Allocated[all[0]] = allocationOf(answer.ContainerResponses[0])
	}
	if change != nil {
		var before object
		m.change(func(node object) { before = copyOf(node); change(node) })
		defer m.change(func(node object) {
			clear(node)
			for key, value := range before {
				node[key] = value
			}
		})
		list()
	}
	return spoken
}

// registrations of the running plugin up to now, by its log.
func (m *machine) registrations(module string) int {
	m.t.Helper()
	pods, err := m.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=" + module})
	if err != nil || len(pods.Items) == 0 {
		return 0
	}
	text, err := m.Client.CoreV1().Pods(kit.Namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{Container: pods.Items[0].Spec.Containers[0].Name}).DoRaw(ctx)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "Registered device plugin ")
}

func devicesOf(answer *api.ListAndWatchResponse) (out []kit.PluginDevice) {
	for _, entry := range answer.Devices {
		found := kit.PluginDevice{ID: entry.ID, Health: entry.Health}
		if entry.Topology != nil {
			for _, numa := range entry.Topology.Nodes {
				found.NUMA = append(found.NUMA, numa.ID)
			}
		}
		out = append(out, found)
	}
	slices.SortFunc(out, func(a, b kit.PluginDevice) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func allocationOf(answer *api.ContainerAllocateResponse) (out kit.PluginAllocation) {
	out.Environment, out.Annotations = answer.Envs, answer.Annotations
	for _, mount := range answer.Mounts {
		out.Mounts = append(out.Mounts, fmt.Sprintf("%s -> %s read-only %v", mount.HostPath, mount.ContainerPath, mount.ReadOnly))
	}
	for _, node := range answer.Devices {
		out.Devices = append(out.Devices, fmt.Sprintf("%s -> %s %s", node.HostPath, node.ContainerPath, node.Permissions))
	}
	for _, name := range answer.CdiDevices {
		out.CDI = append(out.CDI, name.Name)
	}
	return out
}

func copyOf(node object) (out object) {
	text, _ := json.Marshal(node)
	json.Unmarshal(text, &out)
	return out
}
