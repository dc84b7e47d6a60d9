package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugins "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet is what a device plugin sees of one: a folder with its socket and its record of devices, and pod-resources.
type kubelet struct {
	plugins.UnimplementedRegistrationServer
	resources.UnimplementedPodResourcesListerServer
	folder string
	taken  chan *plugins.RegisterRequest
	pods   *resources.ListPodResourcesResponse
	server *grpc.Server
}

// given to the container of a pod.
type given struct {
	pod, uid string
	ids      map[string][]string // by resource
}

const container = "main"

func startKubelet(folder string, pods []given) (*kubelet, error) {
	k := &kubelet{folder: folder, taken: make(chan *plugins.RegisterRequest, 64), pods: &resources.ListPodResourcesResponse{}, server: grpc.NewServer()}
	type entry struct {
		PodUID, ContainerName, ResourceName string
		DeviceIDs                           map[string][]string
	}
	var entries []entry
	for _, pod := range pods {
		var devices []*resources.ContainerDevices
		for resource, ids := range pod.ids {
			entries = append(entries, entry{pod.uid, container, resource, map[string][]string{"-1": ids}})
			devices = append(devices, &resources.ContainerDevices{ResourceName: resource, DeviceIds: ids})
		}
		k.pods.PodResources = append(k.pods.PodResources, &resources.PodResources{Name: pod.pod, Namespace: "default",
			Containers: []*resources.ContainerResources{{Name: container, Devices: devices}}})
	}
	record, err := json.Marshal(map[string]any{"Data": map[string]any{"PodDeviceEntries": entries, "RegisteredDevices": map[string]any{}}, "Checksum": 1})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "kubelet_internal_checkpoint"), record, 0o600); err != nil {
		return nil, err
	}
	plugins.RegisterRegistrationServer(k.server, k)
	resources.RegisterPodResourcesListerServer(k.server, k)
	for _, name := range []string{"kubelet.sock", "pods.sock"} {
		listener, err := net.Listen("unix", filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		go k.server.Serve(listener)
	}
	return k, nil
}

func (k *kubelet) Register(_ context.Context, request *plugins.RegisterRequest) (*plugins.Empty, error) {
	k.taken <- request
	return &plugins.Empty{}, nil
}

func (k *kubelet) List(context.Context, *resources.ListPodResourcesRequest) (*resources.ListPodResourcesResponse, error) {
	return k.pods, nil
}

// registered waits for so many resources, and returns the plugin of the one.
func (k *kubelet) registered(ctx context.Context, number int, resource string) (*grpc.ClientConn, error) {
	var endpoint string
	for range number {
		select {
		case request := <-k.taken:
			if request.ResourceName == resource {
				endpoint = request.Endpoint
			}
		case <-time.After(30 * time.Second):
			return nil, fmt.Errorf("no plugin has registered")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return grpc.NewClient("unix://"+filepath.Join(k.folder, endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// offers waits until the plugin lists that many devices in order.
func offers(ctx context.Context, plugin plugins.DevicePluginClient, wanted int) error {
	deadline, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := plugin.ListAndWatch(deadline, &plugins.Empty{})
	if err != nil {
		return err
	}
	healthy := 0
	for {
		list, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("%d devices in order, not %d: %w", healthy, wanted, err)
		}
		healthy = 0
		for _, device := range list.Devices {
			if device.Health == plugins.Healthy {
				healthy++
			}
		}
		if healthy >= wanted {
			return nil
		}
	}
}
