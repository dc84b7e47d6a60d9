package kit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Ports that FreePort gives. Outgoing connections take theirs from 32768 on (net.ipv4.ip_local_port_range), clusters from 20000 on (cluster.sh),
// and Kubernetes has its own around 10250. So nothing else of a test run takes one between the answer and the start of the program that wants it.
const firstPort, portsEnd = 11000, 20000

// held keeps the locks of this process's ports open.
var held struct {
	sync.Mutex
	files []*os.File
}

// FreePort is a port of the loopback on which nobody listens, and which no other process of the tests is given while this one lives.
func FreePort() (int, error) {
	folder := filepath.Join(os.TempDir(), "quartermaster-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return 0, err
	}
	for range 1000 {
		port := firstPort + rand.IntN(portsEnd-firstPort)
		lock, err := os.OpenFile(filepath.Join(folder, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o666)
		if err != nil {
			return 0, err
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				listener.Close()
				held.Lock()
				held.files = append(held.files, lock)
				held.Unlock()
				return port, nil
			}
		}
		lock.Close()
	}
	return 0, errors.New("no port of the loopback is free")
}
