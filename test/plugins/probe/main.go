// probe says as one line of JSON what its container was given of cards, and waits until it is ended.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	found := struct {
		Environment map[string]string
		Devices     []string
		Volumes     []string // names of cards that are mounted, for DEVICE_LIST_STRATEGY volume-mounts
		Library     bool
		Preload     string // of /etc/ld.so.preload
		Smi         []string
	}{Environment: map[string]string{}}
	for _, variable := range os.Environ() {
		if key, value, _ := strings.Cut(variable, "="); strings.HasPrefix(key, "NVIDIA_") || strings.HasPrefix(key, "CUDA_") || strings.HasPrefix(key, "ALIYUN_") {
			found.Environment[key] = value
		}
	}
	for _, pattern := range []string{"/dev/nvidia*", "/dev/nvidia-caps/*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				found.Devices = append(found.Devices, path)
			}
		}
	}
	slices.Sort(found.Devices)
	volumes, _ := filepath.Glob("/var/run/nvidia-container-devices/*")
	for _, path := range volumes {
		found.Volumes = append(found.Volumes, filepath.Base(path))
	}
	libraries, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.*")
	found.Library = len(libraries) > 0
	if text, err := os.ReadFile("/etc/ld.so.preload"); err == nil {
		found.Preload = strings.TrimSpace(string(text))
	}
	if text, err := exec.Command("nvidia-smi", "-L").Output(); err == nil {
		found.Smi = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	text, _ := json.Marshal(found)
	fmt.Println(string(text))
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
