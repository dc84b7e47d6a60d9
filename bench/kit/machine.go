package kit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// AnyCore stands for all of Cores.
const AnyCore = -1

// Cores are those this program may run on when it starts.
var Cores = func() (cores []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		for core := range 1024 {
			if set.IsSet(core) {
				cores = append(cores, core)
			}
		}
	}
	if cores == nil {
		cores = []int{0}
	}
	return cores
}()

// FirstAndLast of Cores; the same one twice where there is only one.
func FirstAndLast() (first, last int) { return Cores[0], Cores[len(Cores)-1] }

// PinSelf keeps this program, and what it starts from here on, to a core.
func PinSelf(core int) { Pin("self", core) }

// Pin keeps all threads of a process to a core. The process is named as in /proc.
func Pin(process string, core int) {
	var set unix.CPUSet
	for _, candidate := range Cores {
		if core == AnyCore || core == candidate {
			set.Set(candidate)
		}
	}
	tasks, _ := os.ReadDir(filepath.Join("/proc", process, "task"))
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			unix.SchedSetaffinity(id, &set)
		}
	}
}

// CPU time of a process so far: user and system, all threads. It is the clock /proc/PID/stat is made of, in nanoseconds.
func CPU(pid int) (time.Duration, error) {
	var clock unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &clock); err != nil {
		return 0, fmt.Errorf("CPU of process %d: %w", pid, err)
	}
	return time.Duration(clock.Nano()), nil
}

// Memory of a process in MiB by its name in /proc/PID/status: VmHWM, VmRSS, RssAnon, RssFile.
func Memory(pid int) (map[string]float64, error) {
	memory, err := sizes(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil && memory["VmRSS"] == 0 {
		err = errors.New("no VmRSS")
	}
	return memory, err
}

// AvailableMemory of the machine in MiB.
func AvailableMemory() float64 {
	memory, _ := sizes("/proc/meminfo")
	return memory["MemAvailable"]
}

var sizeLine = regexp.MustCompile(`(?m)^(\w+):\s+(\d+) kB`)

func sizes(file string) (map[string]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, match := range sizeLine.FindAllStringSubmatch(string(text), -1) {
		kib, _ := strconv.ParseFloat(match[2], 64)
		found[match[1]] = kib / 1024
	}
	return found, nil
}

// FreeAddresses on the loopback. They differ: each is held until all are known.
func FreeAddresses(count int) (addresses []string, err error) {
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
