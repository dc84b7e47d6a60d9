package realnode

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"quartermaster.io/test/faults/kit"
)

// recorded plays a device plugin: it answers the kubelet as a real one did (test/plugins/recorded).
type recorded struct {
	api.UnimplementedDevicePluginServer
	words kit.Conversation
	next  chan []kit.PluginDevice
}

func (r *recorded) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{PreStartRequired: r.words.Options.PreStartRequired}, nil
}

func (r *recorded) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case devices := <-r.next:
			answer := &api.ListAndWatchResponse{}
			for _, device := range devices {
				entry := &api.Device{ID: device.ID, Health: device.Health}
				for _, numa := range device.NUMA {
					if entry.Topology == nil {
						entry.Topology = &api.TopologyInfo{}
					}
					entry.Topology.Nodes = append(entry.Topology.Nodes, &api.NUMANode{ID: numa})
				}
				answer.Devices = append(answer.Devices, entry)
			}
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

// A kubelet takes what real plugins said to another: it offers as many devices as they called healthy, and takes them back. The resource
// has a domain of its own, because a kubelet keeps at 0 what a plugin registered and left, and other tests here write nvidia.com/gpu.
func TestAKubeletTakesWhatRealPluginsSaid(t *testing.T) {
	conversations, err := kit.Conversations()
	must(t, err)
	folder, err := os.Open(filepath.Join(cluster.Dir, "node/var/lib/kubelet/device-plugins"))
	must(t, err)
	defer folder.Close()
	// By a descriptor, because the path of a socket may be too long.
	socket := func(name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name) }
	for name, words := range conversations {
		t.Run(name, func(t *testing.T) {
			plugin := &recorded{words: words, next: make(chan []kit.PluginDevice)}
			registration := words.Register[0]
			for _, candidate := range words.Register {
				if candidate.Resource == words.Resource {
					registration = candidate
				}
			}
			_, name, _ := strings.Cut(registration.Resource, "/")
			resource := "recorded.test/" + name
			os.Remove(socket(registration.Endpoint))
			listener, err := net.Listen("unix", socket(registration.Endpoint))
			must(t, err)
			server := grpc.NewServer()
			api.RegisterDevicePluginServer(server, plugin)
			go server.Serve(listener)
			connection, err := grpc.NewClient("unix:"+socket("kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
			must(t, err)
			defer connection.Close()
			limited, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			_, err = api.NewRegistrationClient(connection).Register(limited, &api.RegisterRequest{Version: registration.Version, Endpoint: registration.Endpoint,
				ResourceName: resource, Options: &api.DevicePluginOptions{PreStartRequired: words.Options.PreStartRequired}})
			must(t, err)
			for _, devices := range words.Devices {
				healthy := int64(0)
				for _, device := range devices {
					if strings.EqualFold(device.Health, api.Healthy) {
						healthy++
					}
				}
				plugin.next <- devices
				offers(t, resource, healthy)
			}
			server.Stop()
			offers(t, resource, 0)
		})
	}
}

func offers(t *testing.T, resource string, amount int64) {
	t.Helper()
	await(t, 30*time.Second, fmt.Sprintf("%s offers %d %s", real1, amount, resource), func() (bool, error) {
		node, err := cluster.Client.CoreV1().Nodes().Get(ctx, real1, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		has := node.Status.Allocatable[corev1.ResourceName(resource)]
		return has.Value() == amount, fmt.Errorf("%v", node.Status.Allocatable)
	})
}
