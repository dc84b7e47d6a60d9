package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// run starts process 1 of the namespaces and is their door, where one is asked for, until it ends. The kernel ends everything in a pid
// namespace with its process 1, and process 1 with this one, whichever way this one ends; mounts and network go with the last process.
func run(args []string) error {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	var forwards list
	pidFile := flags.String("pid-file", "", "")
	socket := flags.String("proxy", "", "")
	network := flags.String("network", "", "")
	flags.Var(&forwards, "forward", "")
	flags.Parse(args)
	inside, err := netip.ParsePrefix(*network)
	if *pidFile == "" || flags.NArg() == 0 || *socket != "" && err != nil {
		wrong("run needs --pid-file and a command, and --proxy needs --network")
	}

	first := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	first.Stdout, first.Stderr = os.Stdout, os.Stderr
	first.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS}
	if err := first.Start(); err != nil {
		return fmt.Errorf("new namespaces: %w", err)
	}
	defer first.Process.Kill()
	if err := writePid(*pidFile, first.Process.Pid); err != nil {
		return err
	}
	door, err := openDoor(first.Process.Pid)
	if err != nil {
		return err
	}
	if err := door.forward(forwards); err != nil {
		return err
	}
	if *socket != "" {
		if err := door.proxy(*socket, inside); err != nil {
			return err
		}
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-asked; first.Process.Kill() }()
	return first.Wait()
}

// writePid in the form of the cluster's other pid files: the number and the start time, which tells it from a later process.
func writePid(file string, pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return os.WriteFile(file, fmt.Appendf(nil, "%d %s\n", pid, strings.Fields(rest)[19]), 0o644)
}

// pause is process 1 of a node and of a pod: it ends at a signal, and waits for those whose parents have ended.
func pause([]string) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return nil
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
	return nil
}
