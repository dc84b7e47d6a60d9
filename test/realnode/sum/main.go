// sum prints the sum of the squares of its arguments and ends with it as exit code, after QM_SLEEP. A share, cards, and limits of MPS that the
// container was given are named, too. With QM_STAYS it does not end when it is asked to.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if os.Getenv("QM_STAYS") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	sum := 0
	for _, arg := range os.Args[1:] {
		n, err := strconv.Atoi(arg)
		if err != nil {
			fmt.Println(err)
			os.Exit(125)
		}
		sum += n * n
	}
	fmt.Println("sum of squares", sum)
	if share := os.Getenv("QM_SHARE"); share != "" {
		fmt.Println("on share", share)
	}
	if cards := os.Getenv("NVIDIA_VISIBLE_DEVICES"); cards != "" {
		fmt.Println("on cards", cards)
	}
	if folder := os.Getenv("CUDA_MPS_PIPE_DIRECTORY"); folder != "" {
		fmt.Println("with threads", os.Getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "and memory", os.Getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"))
		socket, err := net.Dial("unix", folder+"/control")
		fmt.Println("reaches the control daemon:", err == nil)
		if err == nil {
			socket.Close()
		}
		fmt.Println("may write there:", os.WriteFile(folder+"/x", nil, 0o600) == nil)
	}
	if limit := os.Getenv("NVIDIA_GPU_MEMORY_LIMIT"); limit != "" {
		fmt.Println("limited to", limit, "of which reserved", os.Getenv("NVIDIA_GPU_MEMORY_REQUEST"))
	}
	if sleep, err := time.ParseDuration(os.Getenv("QM_SLEEP")); err == nil {
		time.Sleep(sleep)
	}
	os.Exit(sum)
}
