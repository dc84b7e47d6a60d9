// runtime is what runc is called through on the test's node: a stand-in for NVIDIA's container runtime. Containers whose environment names
// cards get what NVIDIA's would give them: library, nvidia-smi, the control program of MPS and device nodes; here also the fixture that the library reads. The rest is
// runc's.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	fixture    = "/run/nvidia-standin" // where test/nvml/node.sh puts it
	libraries  = "/usr/lib/x86_64-linux-gnu/"
	asVolumes  = "/var/run/nvidia-container-devices"
	mpsControl = "/usr/bin/nvidia-cuda-mps-control"
	kept       = "/run/nvidia-standin.kept" // a folder for what the driver keeps for all programs; only where a test has made it
)

type object = map[string]any

func main() {
	if len(os.Args) > 1 && os.Args[1] == "mount-in-kernel-folders" {
		end(mountInKernelFolders())
	}
	if slices.Contains(os.Args, "create") {
		if err := giveCards(filepath.Join(bundle(os.Args), "config.json")); err != nil {
			end(err)
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		end(err)
	}
	end(syscall.Exec(runc, append([]string{"runc"}, os.Args[1:]...), os.Environ()))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in for NVIDIA's runtime:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func bundle(args []string) string {
	for i, arg := range args {
		if value, found := strings.CutPrefix(arg, "--bundle="); found {
			return value
		}
		if (arg == "--bundle" || arg == "-b") && i+1 < len(args) {
			return args[i+1]
		}
	}
	return "."
}

// giveCards writes into the container's configuration what the cards need that it names; nothing where it names none.
func giveCards(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var config object
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	names := named(config)
	if names == nil {
		return nil
	}
	nodes, err := deviceNodes(names)
	if err != nil {
		return err
	}
	mounts, _ := config["mounts"].([]any)
	for _, path := range []string{libraries + "libnvidia-ml.so.1", "/usr/bin/nvidia-smi", mpsControl, fixture} {
		source, err := filepath.EvalSymlinks(path)
		if err != nil && path == mpsControl {
			continue
		}
		if err != nil {
			return fmt.Errorf("no driver: %w", err)
		}
		mounts = append(mounts, object{"destination": path, "source": source, "type": "bind", "options": []string{"rbind", "ro", "nosuid", "nodev"}})
	}
	if _, err := os.Stat(kept); err == nil {
		mounts = append(mounts, object{"destination": kept, "source": kept, "type": "bind", "options": []string{"rbind", "rw", "nosuid", "nodev"}})
		process, _ := config["process"].(object)
		environment, _ := process["env"].([]any)
		process["env"] = append(environment, "QM_NVML_LIMITS="+kept+"/limits")
	}
	config["mounts"] = mounts
	if err := addDevices(config, nodes); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	hooks, _ := config["hooks"].(object)
	if hooks == nil {
		hooks = object{}
		config["hooks"] = hooks
	}
	created, _ := hooks["createRuntime"].([]any)
	hooks["createRuntime"] = append(created, object{"path": self, "args": []string{"nvidia", "mount-in-kernel-folders"}})
	if text, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// named are the cards by index, UUID or "all"; an empty list is a container that gets the driver and no card. Names that are mounted count
// more than the environment.
func named(config object) (names []string) {
	mounts, _ := config["mounts"].([]any)
	for _, mount := range mounts {
		if name, found := strings.CutPrefix(mount.(object)["destination"].(string), asVolumes+"/"); found {
			names = append(names, name)
		}
	}
	if names != nil {
		return names
	}
	process, _ := config["process"].(object)
	environment, _ := process["env"].([]any)
	for _, variable := range environment {
		switch value, found := strings.CutPrefix(variable.(string), "NVIDIA_VISIBLE_DEVICES="); {
		case !found:
		case value == "" || value == "void":
			return nil
		case value == "none":
			return []string{}
		default:
			names = strings.Split(value, ",")
		}
	}
	return names
}

type node struct {
	Cards []struct {
		UUID  string
		Minor int
		Lost  bool
		Mig   struct {
			Enabled   bool
			Instances []struct {
				ID      int
				Compute []struct {
					ID   int
					UUID string
				}
			}
		}
	}
}

func deviceNodes(names []string) (out []string, err error) {
	text, err := os.ReadFile(filepath.Join(fixture, "node.json"))
	if err != nil {
		return nil, fmt.Errorf("no driver: %w", err)
	}
	var machine node
	if err := json.Unmarshal(text, &machine); err != nil {
		return nil, err
	}
	out = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}
	known := map[string][]string{}
	for index, card := range machine.Cards {
		if card.Lost {
			continue
		}
		path := fmt.Sprintf("/dev/nvidia%d", card.Minor)
		known[card.UUID], known[fmt.Sprint(index)] = []string{path}, []string{path}
		known["all"] = append(known["all"], path)
		slice := 0
		for _, gpu := range card.Mig.Instances {
			first := 3 + (card.Minor*15+gpu.ID)*9 // as test/nvml/node.sh numbers them
			for _, compute := range gpu.Compute {
				nodes := []string{path, fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", first), fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", first+1+compute.ID)}
				known[compute.UUID], known[fmt.Sprintf("%d:%d", index, slice)] = nodes, nodes
				slice++
			}
		}
	}
	for _, name := range names {
		nodes, found := known[name]
		if !found && name != "all" {
			return nil, fmt.Errorf("unknown device %q", name)
		}
		out = append(out, nodes...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func addDevices(config object, paths []string) error {
	linux := config["linux"].(object)
	devices, _ := linux["devices"].([]any)
	resources, _ := linux["resources"].(object)
	if resources == nil {
		resources = object{}
		linux["resources"] = resources
	}
	rules, _ := resources["devices"].([]any)
	for _, path := range paths {
		if slices.ContainsFunc(devices, func(device any) bool { return device.(object)["path"] == path }) {
			continue
		}
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		major, minor := unix.Major(stat.Rdev), unix.Minor(stat.Rdev)
		devices = append(devices, object{"path": path, "type": "c", "major": major, "minor": minor, "fileMode": stat.Mode & 0o777, "uid": 0, "gid": 0})
		rules = append(rules, object{"allow": true, "type": "c", "major": major, "minor": minor, "access": "rw"})
	}
	linux["devices"], resources["devices"] = devices, rules
	return nil
}

// mountInKernelFolders is a hook: it puts what the kernel shows of a driver where the container looks for it. With a real driver every
// container's /proc and /sys have these.
func mountInKernelFolders() error {
	var state struct {
		Pid    int
		Bundle string
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	var config struct{ Root struct{ Path string } }
	if text, err = os.ReadFile(filepath.Join(state.Bundle, "config.json")); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	root := config.Root.Path
	if !filepath.IsAbs(root) {
		root = filepath.Join(state.Bundle, root)
	}
	for _, path := range []string{"/proc/driver", "/sys/bus/pci/devices"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		text, err := exec.Command("nsenter", "--target", fmt.Sprint(state.Pid), "--mount", "mount", "-n", "--rbind", path, root+path).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", path, err, text)
		}
	}
	return nil
}
