package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// door leads into a network namespace and out of it: a socket belongs to the namespace its thread was in when it was made, and is then
// used like any other. No interface, address or rule of the machine is touched.
type door struct{ namespace *os.File }

func openDoor(pid int) (*door, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	return &door{file}, err
}

// inside calls do on a thread in the namespace, which ends afterwards: a locked thread is not used again.
func inside[T any](d *door, do func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Setns(int(d.namespace.Fd()), unix.CLONE_NEWNET); err == nil {
			out, err = do()
		}
	}()
	<-done
	return out, err
}

// forward listens in the namespace and connects on the machine. The address need not be there yet when it is listened on.
func (d *door) forward(pairs []string) error {
	early := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1) }); e != nil {
			return e
		}
		return err
	}}
	for _, pair := range pairs {
		from, to, found := strings.Cut(pair, "=")
		if !found {
			return fmt.Errorf("'%s' is not LISTEN=TARGET, as in 10.96.0.1:443=127.0.0.1:6443", pair)
		}
		listener, err := inside(d, func() (net.Listener, error) { return early.Listen(context.Background(), "tcp4", from) })
		if err != nil {
			return err
		}
		go func() {
			for {
				here, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					there, err := dial(to)
					if err != nil {
						fmt.Fprintln(os.Stderr, "real-node:", err)
						here.Close()
						return
					}
					join(here, there)
				}()
			}
		}()
	}
	return nil
}

// proxy is for the API server, which reaches kubelets and pods through it.
func (d *door) proxy(socket string, network netip.Prefix) error {
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		if in.Method != http.MethodConnect {
			http.Error(w, "CONNECT alone", http.StatusMethodNotAllowed)
			return
		}
		var there net.Conn
		var err error
		if to, e := netip.ParseAddrPort(in.RequestURI); e == nil && network.Contains(to.Addr()) {
			there, err = inside(d, func() (net.Conn, error) { return dial(in.RequestURI) })
		} else {
			there, err = dial(in.RequestURI)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			there.Close()
			return
		}
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		join(here, there)
	}))
	return nil
}

func dial(to string) (net.Conn, error) { return net.DialTimeout("tcp", to, 10*time.Second) }

// join two connections until both ways are closed.
func join(a, b net.Conn) {
	half := make(chan struct{})
	one := func(to, from net.Conn) {
		io.Copy(to, from)
		if w, ok := to.(interface{ CloseWrite() error }); ok {
			w.CloseWrite()
		}
		half <- struct{}{}
	}
	go one(a, b)
	go one(b, a)
	<-half
	<-half
	a.Close()
	b.Close()
}

// forward, the verb: into a namespace that is there, as long as it is.
func forward(args []string) error {
	flags := flag.NewFlagSet("forward", flag.ExitOnError)
	pid := flags.Int("pid", 0, "")
	flags.Parse(args)
	if *pid == 0 || flags.NArg() == 0 {
		wrong("forward needs --pid and LISTEN=TARGET")
	}
	door, err := openDoor(*pid)
	if err != nil {
		return err
	}
	if err := door.forward(flags.Args()); err != nil {
		return err
	}
	process, err := unix.PidfdOpen(*pid, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", *pid, err)
	}
	fmt.Println("forwarding", strings.Join(flags.Args(), " "))
	for err = unix.EINTR; err == unix.EINTR; { // until that process ends: nothing else may keep the namespace
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, -1)
	}
	return err
}
