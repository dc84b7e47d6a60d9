package grpc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// kubelet takes registrations in the kubelet's own messages, and does what the kubelet does when it starts.
type kubelet struct {
	api.UnimplementedRegistrationServer
	t      *testing.T
	folder string
	server *grpc.Server
	taken  chan *api.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.taken <- request
	return &api.Empty{}, nil
}

func (k *kubelet) start() { k.startSlowly(0) }

// startSlowly lets some time pass between the socket, which the plugin sees, and the first moment at which anyone may connect to it.
func (k *kubelet) startSlowly(gap time.Duration) {
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, entry := range entries {
		os.Remove(filepath.Join(k.folder, entry.Name()))
	}
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	file := os.NewFile(uintptr(socket), "kubelet.sock")
	defer file.Close()
	if err := syscall.Bind(socket, &syscall.SockaddrUnix{Name: filepath.Join(k.folder, "kubelet.sock")}); err != nil {
		k.t.Fatal(err)
	}
	time.Sleep(gap)
	if err := syscall.Listen(socket, 16); err != nil {
		k.t.Fatal(err)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		k.t.Fatal(err)
	}
	k.server = grpc.NewServer()
	api.RegisterRegistrationServer(k.server, k)
	go k.server.Serve(listener)
}

func (k *kubelet) registered(within time.Duration) *api.RegisterRequest {
	k.t.Helper()
	select {
	case request := <-k.taken:
		return request
	case <-time.After(within):
		k.t.Fatal("no plugin has registered")
		return nil
	}
}

// connect calls a plugin that has registered.
func (k *kubelet) connect(request *api.RegisterRequest) api.DevicePluginClient {
	connection, err := grpc.NewClient("unix://"+filepath.Join(k.folder, request.Endpoint),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { connection.Close() })
	return api.NewDevicePluginClient(connection)
}

func watching(t *testing.T, ctx context.Context, plugin api.DevicePluginClient) func() string {
	stream, err := plugin.ListAndWatch(ctx, &api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		list, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, device := range list.Devices {
			out = append(out, device.ID+" "+device.Health)
		}
		return strings.Join(out, ", ")
	}
}

func startPlugin(t *testing.T) (*kubelet, func(offer string)) {
	k := &kubelet{t: t, folder: t.TempDir(), taken: make(chan *api.RegisterRequest, 100)}
	command := exec.Command(program(t), "plugin", k.folder, "test.example/share")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// The log goes to the same place.
	if line, _ := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the plugin said %q", line)
	}
	go io.Copy(io.Discard, output)
	t.Cleanup(func() {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the plugin ended: %v", err)
		}
		if _, err := os.Stat(filepath.Join(k.folder, "peer.sock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its socket is left: %v", err)
		}
		if k.server != nil {
			k.server.Stop()
		}
	})
	return k, func(offer string) { io.WriteString(input, offer+"\n") }
}

func TestADevicePluginInTheKubeletsOwnMessages(t *testing.T) {
	k, offer := startPlugin(t)
	offer("a b !c")
	time.Sleep(50 * time.Millisecond) // no kubelet yet
	k.start()
	request := k.registered(10 * time.Second)
	if request.Version != "v1beta1" || request.ResourceName != "test.example/share" || request.Endpoint != "peer.sock" ||
		!request.Options.PreStartRequired || request.Options.GetPreferredAllocationAvailable {
		t.Errorf("registered %v", request)
	}
	plugin := k.connect(request)
	if options, err := plugin.GetDevicePluginOptions(t.Context(), &api.Empty{}); err != nil || !options.PreStartRequired {
		t.Errorf("options %v, %v", options, err)
	}
	list := watching(t, t.Context(), plugin)
	if got := list(); got != "a Healthy, b Healthy, c Unhealthy" {
		t.Errorf("offered %q", got)
	}
	offer("a c")
	if got := list(); got != "a Healthy, c Healthy" {
		t.Errorf("offered then %q", got)
	}
	answer, err := plugin.Allocate(t.Context(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{
		{DevicesIds: []string{"a", "c"}}, {DevicesIds: []string{"b"}}}})
	if err != nil || len(answer.ContainerResponses) != 2 {
		t.Fatalf("%v, %v", answer, err)
	}
	for i, name := range []string{"test.example/share=a-c", "test.example/share=b"} {
		got := answer.ContainerResponses[i]
		if len(got.CdiDevices) != 1 || got.CdiDevices[0].Name != name || len(got.Envs)+len(got.Mounts)+len(got.Devices)+len(got.Annotations) != 0 {
			t.Errorf("container %d gets %v", i, got)
		}
	}
	_, err = plugin.Allocate(t.Context(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"bad"}}}})
	if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "no card for bad" {
		t.Errorf("refused by %v", err)
	}
	if _, err := plugin.PreStartContainer(t.Context(), &api.PreStartContainerRequest{DevicesIds: []string{"a", "c"}}); err != nil {
		t.Error(err)
	}
	_, err = plugin.PreStartContainer(t.Context(), &api.PreStartContainerRequest{DevicesIds: []string{"bad-start"}})
	if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "not placed: bad-start" {
		t.Errorf("refused before a start by %v", err)
	}
	if _, err := plugin.GetPreferredAllocation(t.Context(), &api.PreferredAllocationRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that it does not have: %v", err)
	}
}

func TestAPluginThatTheKubeletForgotRegistersAgain(t *testing.T) {
	k, offer := startPlugin(t)
	offer("a")
	k.start()
	for range 5 { // restarts of the kubelet, which removes the sockets of all plugins
		// A plugin may see this kubelet's socket, and then hear that it is new: it registers again, and ends what was begun in between.
		for tries := 1; ; tries++ {
			stream, err := k.connect(k.registered(10*time.Second)).ListAndWatch(t.Context(), &api.Empty{})
			var list *api.ListAndWatchResponse
			if err == nil {
				list, err = stream.Recv()
			}
			if status.Code(err) == codes.Unavailable && tries < 3 {
				continue
			}
			if err != nil || len(list.Devices) != 1 || list.Devices[0].ID != "a" || list.Devices[0].Health != api.Healthy {
				t.Fatalf("offered %v, %v", list, err)
			}
			break
		}
		k.server.Stop()
		since := time.Now()
		k.start()
		request := k.registered(10 * time.Second)
		t.Logf("again after %.1f ms", float64(time.Since(since).Microseconds())/1000)
		k.taken <- request
	}
	// A stream that the kubelet ends, because another plugin of this resource came and went.
	plugin := k.connect(k.registered(10 * time.Second))
	ctx, end := context.WithCancel(t.Context())
	watching(t, ctx, plugin)()
	for len(k.taken) > 0 {
		<-k.taken
	}
	end()
	k.registered(10 * time.Second)
}

// A kubelet that was away for long admits pods as soon as it is back. What a plugin waits for between two tries must not be what it waited before.
func TestAPluginIsBackAtOnceWhenTheKubeletWasAwayForLong(t *testing.T) {
	k, offer := startPlugin(t)
	offer("a")
	k.start()
	k.registered(10 * time.Second)
	soonest := time.Minute
	for range 3 {
		k.server.Stop()
		time.Sleep(1500 * time.Millisecond) // it has tried for as long, less and less often
		for len(k.taken) > 0 {
			<-k.taken
		}
		k.startSlowly(30 * time.Millisecond)
		since := time.Now()
		k.registered(10 * time.Second)
		soonest = min(soonest, time.Since(since))
	}
	if soonest > 500*time.Millisecond {
		t.Errorf("it was back %s after the kubelet at the soonest", soonest)
	}
}
