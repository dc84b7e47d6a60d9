// The program real-node: what the test cluster's real nodes need in addition to containerd, runc, kubelet and kube-proxy. Namespaces of their
// own, a way in and out of a network for TCP, and images made from files on the disk.
package main

import (
	"fmt"
	"os"
	"runtime"
)

const usage = `usage: real-node VERB ...
  run --pid-file FILE [--proxy SOCKET --network CIDR] [--forward LISTEN=TARGET]... -- COMMAND...
        COMMAND as process 1 of new mount, network, pid and host name namespaces, until it ends; all in there ends with it.
        SOCKET speaks HTTP CONNECT: addresses of CIDR are those in there, others are the machine's. Who connects to LISTEN in there reaches
        TARGET on the machine.
  forward --pid PID LISTEN=TARGET...
        who connects to LISTEN in the network namespace of PID reaches TARGET on the machine
  image FILE.tar NAME:TAG [VARIABLE=VALUE]... PROGRAM:PATH... [-- COMMAND...]
        an OCI archive of one layer: PROGRAM (and the libraries it is linked to) at PATH; its entry point is COMMAND (default: the first PATH);
        VARIABLE is in its environment
  pause
        wait for a signal, and for orphans`

func main() {
	runtime.LockOSThread() // a child is killed when the thread that started it ends: the main one never does
	if len(os.Args) < 2 {
		wrong("a verb is missing")
	}
	verbs := map[string]func([]string) error{"run": run, "forward": forward, "image": image, "pause": pause}
	verb, known := verbs[os.Args[1]]
	if !known {
		wrong(fmt.Sprintf("no verb '%s'", os.Args[1]))
	}
	if err := verb(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "real-node:", err)
		os.Exit(1)
	}
}

func wrong(what string) {
	fmt.Fprintf(os.Stderr, "real-node: %s\n%s\n", what, usage)
	os.Exit(2)
}
