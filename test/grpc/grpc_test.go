// Package grpc has the agent's gRPC talk with grpc-go, which the kubelet uses, from both sides.
package grpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// plain takes messages as bytes.
type plain struct{}

func (plain) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (plain) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (plain) Name() string                       { return "proto" }

func program(t *testing.T) string {
	path := os.Getenv("QM_GRPC_PEER")
	if path == "" {
		t.Fatal("QM_GRPC_PEER names no program: build/dev/test/grpc_peer")
	}
	return path
}

type peer struct {
	t      *testing.T
	socket string
	pid    int
}

func serve(t *testing.T) *peer {
	p := &peer{t: t, socket: filepath.Join(t.TempDir(), "plugin.sock")}
	command := exec.Command(program(t), "serve", p.socket)
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
	p.pid = command.Process.Pid
	if line, _ := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the peer said %q", line)
	}
	t.Cleanup(func() {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the peer ended: %v", err)
		}
		if _, err := os.Stat(p.socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	})
	return p
}

func (p *peer) dial(options ...grpc.DialOption) *grpc.ClientConn {
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{}), grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	connection, err := grpc.NewClient("unix://"+p.socket, options...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { connection.Close() })
	return connection
}

func ask(connection *grpc.ClientConn, method, message string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	in, out := []byte(message), []byte(nil)
	err := connection.Invoke(ctx, "/test.Peer/"+method, &in, &out)
	return string(out), err
}

func TestUnaryCallsOfEverySize(t *testing.T) {
	connection := serve(t).dial()
	for _, size := range []int{0, 1, 16_379, 70_000, 1 << 20, 4 << 20} {
		message := strings.Repeat("x", size)
		if out, err := ask(connection, "Echo", message); err != nil || out != message {
			t.Errorf("%d bytes: %d came back, %v", size, len(out), err)
		}
	}
	if _, err := ask(connection, "Echo", strings.Repeat("x", 4<<20+1)); err == nil {
		t.Error("a message above the limit was taken")
	}
	if out, err := ask(connection, "Echo", "after"); err != nil || out != "after" {
		t.Errorf("the connection did not outlive it: %q, %v", out, err)
	}
}

func TestAThousandCallsAtOnce(t *testing.T) {
	connection := serve(t).dial()
	var all sync.WaitGroup
	for i := range 1000 {
		all.Add(1)
		go func() {
			defer all.Done()
			message := fmt.Sprint("call ", i)
			if out, err := ask(connection, "Echo", message); err != nil || out != message {
				t.Errorf("%s: %q, %v", message, out, err)
			}
		}()
	}
	all.Wait()
}

func TestTheReasonComesToTheByte(t *testing.T) {
	connection := serve(t).dial()
	for _, text := range []string{"no card: 100 % given out", "two\nlines", "见 verify", "", "%41 stays"} {
		_, err := ask(connection, "Fail", text)
		if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != text {
			t.Errorf("%q came as %v", text, err)
		}
	}
	if _, err := ask(connection, "Other", ""); status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method: %v", err)
	}
}

func stream(t *testing.T, connection *grpc.ClientConn, ctx context.Context, method, message string) grpc.ClientStream {
	out, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.Peer/"+method)
	if err != nil {
		t.Fatal(err)
	}
	in := []byte(message)
	if err := out.SendMsg(&in); err != nil {
		t.Fatal(err)
	}
	if err := out.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAStreamForASlowReader(t *testing.T) {
	// A window smaller than a message, as of a kubelet that is busy.
	connection := serve(t).dial(grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	reading := stream(t, connection, t.Context(), "Count", "20 300000")
	for i := range 20 {
		var message []byte
		if err := reading.RecvMsg(&message); err != nil || len(message) != 300_000 || message[0] != byte('a'+i%26) {
			t.Fatalf("message %d: %d bytes, %v", i, len(message), err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	var message []byte
	if err := reading.RecvMsg(&message); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestWhoGivesUpIsKnown(t *testing.T) {
	connection := serve(t).dial()
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		holding := stream(t, connection, ctx, "Hold", "")
		var message []byte
		if err := holding.RecvMsg(&message); err != nil || string(message) != "held" {
			t.Fatalf("%q, %v", message, err)
		}
		cancel()
	}
	for range 100 {
		if out, err := ask(connection, "GivenUp", ""); err == nil && out == "200" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("not all that gave up are known")
}

func TestKeepaliveOfAnIdleStream(t *testing.T) {
	connection := serve(t).dial(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second}))
	holding := stream(t, connection, t.Context(), "Hold", "")
	var message []byte
	if err := holding.RecvMsg(&message); err != nil {
		t.Fatal(err)
	}
	if out, err := ask(connection, "Echo", "later"); err != nil || out != "later" {
		t.Errorf("%q, %v", out, err)
	}
}

// rss is the peer's memory in MiB.
func (p *peer) rss() int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	var kib int
	for line := range strings.Lines(string(data)) {
		fmt.Sscanf(line, "VmRSS: %d kB", &kib)
	}
	return kib / 1024
}

type raw struct {
	net.Conn
	framer *http2.Framer
}

func (p *peer) raw() *raw {
	connection, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	connection.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(connection, http2.ClientPreface)
	out := &raw{connection, http2.NewFramer(connection, connection)}
	out.framer.WriteSettings()
	return out
}

func headers(fields ...string) []byte {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	all := append([]string{":method", "POST", ":scheme", "http", ":path", "/test.Peer/Hold", ":authority", "x",
		"content-type", "application/grpc", "te", "trailers"}, fields...)
	for i := 0; i < len(all); i += 2 {
		encoder.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]})
	}
	return out.Bytes()
}

// Attacks that ended or swelled other servers. Each ends with its connection, or costs nothing, and the next caller is served.
func TestHostileClientsCostLittleAndHurtNoOne(t *testing.T) {
	p := serve(t)
	connection := p.dial()
	if _, err := ask(connection, "Echo", ""); err != nil {
		t.Fatal(err)
	}
	before := p.rss()
	attacks := map[string]func(*raw){
		"rapid reset": func(to *raw) {
			for i := range uint32(50_000) {
				if to.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1 + 2*i, BlockFragment: headers(), EndHeaders: true}) != nil ||
					to.framer.WriteRSTStream(1+2*i, http2.ErrCodeCancel) != nil {
					return
				}
			}
		},
		"continuations": func(to *raw) {
			to.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers()})
			for i := range 50_000 {
				if to.framer.WriteContinuation(1, false, headers("x", fmt.Sprint(i))) != nil {
					return
				}
			}
		},
		"pings": func(to *raw) {
			for range 500_000 {
				if to.framer.WritePing(false, [8]byte{}) != nil {
					return
				}
			}
		},
		"settings": func(to *raw) {
			for range 500_000 {
				if to.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}) != nil {
					return
				}
			}
		},
		"a message without end": func(to *raw) {
			to.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers(), EndHeaders: true})
			prefix := binary.BigEndian.AppendUint32([]byte{0}, 1<<31)
			to.framer.WriteData(1, false, prefix)
			for range 4_000 {
				if to.framer.WriteData(1, false, make([]byte, 16_384)) != nil {
					return
				}
			}
		},
		"a window of nothing": func(to *raw) {
			to.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for i := range uint32(60) {
				to.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1 + 2*i, EndHeaders: true,
					BlockFragment: headers()})
				to.framer.WriteData(1+2*i, true, []byte{0, 0, 0, 0, 0})
			}
		},
		"HTTP/1.1": func(to *raw) { io.WriteString(to, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") },
	}
	for name, attack := range attacks {
		to := p.raw()
		since := time.Now()
		attack(to)
		t.Logf("%s: %.2f s", name, time.Since(since).Seconds())
		if out, err := ask(connection, "Echo", name); err != nil || out != name {
			t.Errorf("%s: the next caller got %q, %v", name, out, err)
		}
		to.Close()
		if grown := p.rss() - before; grown > 64 {
			t.Errorf("%s: %d MiB more (a build with a sanitizer keeps what it frees)", name, grown)
		}
	}
	var idle []net.Conn
	for range 200 {
		if client, err := net.Dial("unix", p.socket); err == nil {
			idle = append(idle, client)
		}
	}
	if out, err := ask(connection, "Echo", "there"); err != nil || out != "there" {
		t.Errorf("next to %d idle connections: %q, %v", len(idle), out, err)
	}
	for _, client := range idle {
		client.Close()
	}
}

// Our client, asked of a server of grpc-go as the kubelet has it for pod-resources.
func TestOurClientAsksAServerOfGo(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var in []byte
		if err := decode(&in); err != nil {
			return nil, err
		}
		if string(in) == "refuse" {
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit: 100 % used")
		}
		out := bytes.Repeat([]byte("y"), len(in))
		return &out, nil
	}
	server := grpc.NewServer(grpc.ForceServerCodec(plain{}))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Go", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Same", Handler: answer}}}, nil)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	for _, row := range []struct{ method, message, want string }{
		{"/test.Go/Same", "abc", "yyy"},
		{"/test.Go/Same", "", ""},
		{"/test.Go/Same", strings.Repeat("x", 3<<20), strings.Repeat("y", 3<<20)},
		{"/test.Go/Same", "refuse", "status 8: rejected by rate limit: 100 % used"},
		{"/test.Go/Other", "", "status 12: unknown method Other for service test.Go"},
	} {
		command := exec.Command(program(t), "call", socket, row.method)
		command.Stdin = strings.NewReader(row.message)
		out, _ := command.Output()
		if string(out) != row.want {
			t.Errorf("%s of %d bytes: %d bytes, %.80q", row.method, len(row.message), len(out), out)
		}
	}
}
