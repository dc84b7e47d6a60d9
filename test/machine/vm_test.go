package machine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"quartermaster.io/test/faults/kit"
)

const (
	node     = "machine-1"
	address  = "192.0.2.15" // of QEMU's network, in which this machine is 192.0.2.1
	registry = "quartermaster.test"
	pause    = registry + "/pause:1"
	probe    = registry + "/probe:1"
)

// machine is a virtual machine that runs.
type machine struct {
	folder string
	qemu   *exec.Cmd
	ended  chan struct{}
	lock   sync.Mutex // of the shell
	shell  net.Conn
	reader *bufio.Reader
	turn   int
}

// boot starts the machine; a node comes of it later.
func boot() (*machine, error) {
	folder, err := os.MkdirTemp("", "machine-")
	if err != nil {
		return nil, err
	}
	m := &machine{folder: folder, ended: make(chan struct{})}
	if err := m.pack(); err != nil {
		m.end()
		return nil, err
	}
	system := os.Getenv("QM_MACHINE")
	m.qemu = exec.Command("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-M", "q35", "-accel", "tcg,thread=multi",
		"-cpu", "max,la57=off", "-smp", "2", "-m", "2G", "-kernel", filepath.Join(system, "vmlinuz"), "-initrd", filepath.Join(system, "initramfs"),
		"-append", "console=ttyS0 net.ifnames=0 mitigations=off panic=-1 loglevel=4 systemd.show_status=error systemd.getty_auto=no", "-no-reboot",
		"-drive", "if=virtio,format=raw,snapshot=on,file="+filepath.Join(system, "root.img"),
		"-drive", "if=virtio,format=raw,readonly=on,file="+filepath.Join(folder, "node.img"),
		"-netdev", "user,id=net,ipv6=off,net=192.0.2.0/24,host=192.0.2.1,dhcpstart="+address, "-device", "virtio-net-pci,netdev=net,romfile=",
		"-serial", "file:"+m.console(), "-serial", "unix:"+filepath.Join(folder, "shell")+",server=on,wait=off")
	said := &kit.Output{}
	m.qemu.Stdout, m.qemu.Stderr = said, said
	m.qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true} // a session of its own, as each part of a control plane has
	if err := m.qemu.Start(); err != nil {
		m.end()
		return nil, err
	}
	m.yield()
	go func() { m.qemu.Wait(); close(m.ended) }()
	err = kit.Until(ctx, 10*time.Second, "QEMU has started", func() (bool, error) {
		select {
		case <-m.ended:
			return false, fmt.Errorf("it ended: %s", said)
		default:
		}
		m.shell, err = net.Dial("unix", filepath.Join(folder, "shell"))
		return err == nil, err
	})
	if err != nil {
		m.end()
		return nil, err
	}
	m.reader = bufio.NewReader(m.shell)
	return m, nil
}

// yield gives the machine's session the nice value of the lane's: the kernel shares processors out by session, and a new one starts at 0. The
// product, which renews its lease every second, then has as much of this machine as the virtual one.
func (m *machine) yield() {
	own, _ := os.ReadFile("/proc/self/autogroup")
	if _, value, found := strings.Cut(string(own), " nice "); found {
		os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", m.qemu.Process.Pid), []byte(strings.TrimSpace(value)), 0o644)
	}
}

func (m *machine) console() string { return filepath.Join(m.folder, "console") }

// end switches it off.
func (m *machine) end() {
	if m.shell != nil {
		m.shell.Close()
	}
	if m.qemu != nil && m.qemu.Process != nil {
		m.qemu.Process.Kill()
		<-m.ended
	}
	os.RemoveAll(m.folder)
}

// asks the machine's shell. It answers when the machine has come so far; a command that fails is an error with all that it printed.
func (m *machine) asks(patience time.Duration, command string) (string, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.turn++
	mark := fmt.Sprintf("<end of %d>", m.turn)
	m.shell.SetDeadline(time.Now().Add(kit.Patient(patience)))
	if _, err := fmt.Fprintf(m.shell, "{ %s\n} 2>&1 </dev/null; echo \"%s $?\"\n", command, mark); err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		line, err := m.reader.ReadString('\n')
		if err != nil {
			return out.String(), fmt.Errorf("%s: %w\n%s%s", command, err, out.String(), line)
		}
		text, code, ended := strings.Cut(line, mark+" ")
		out.WriteString(text)
		if !ended {
			continue
		}
		if code = strings.TrimSpace(code); code != "0" {
			return out.String(), fmt.Errorf("%s: exit code %s: %s", command, code, out.String())
		}
		return out.String(), nil
	}
}

// state is what helps to understand why the machine is no node.
func (m *machine) state() string {
	select {
	case <-m.ended:
		return "QEMU has ended\n" + m.screen()
	default:
	}
	text, err := m.asks(20*time.Second, "systemctl --no-pager --failed; systemctl --no-pager list-jobs; journalctl --no-pager -n 25 -u machine -u containerd -u kubelet")
	if err != nil {
		return err.Error() + "\n" + m.screen()
	}
	return text
}

// screen is the end of what its kernel and systemd have said.
func (m *machine) screen() string {
	text, _ := os.ReadFile(m.console())
	return string(text[max(0, len(text)-3000):])
}

// pack makes the disk that the machine mounts at /node: programs, images, and files of a node of this cluster.
func (m *machine) pack() error {
	at := func(name string) string { return filepath.Join(m.folder, "node", name) }
	for _, folder := range []string{"bin", "images", "cards", "files/etc/kubernetes", "files/etc/containerd", "files/etc/cni/net.d", "files/var/lib/kubelet"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			return err
		}
	}
	library, smi, err := kit.Standins()
	if err != nil {
		return err
	}
	here, programs := filepath.Join(kit.Root(), "test/machine"), os.Getenv("QM_CONTAINERD")
	runtime, err := kit.Compile(m.folder, filepath.Join(kit.Root(), "test/plugins/runtime"))
	if err != nil {
		return err
	}
	for target, source := range map[string]string{"bin/kubelet": os.Getenv("QM_KUBELET"), "bin/nvidia-container-runtime": runtime, "images/quartermaster": os.Getenv("QM_IMAGE"),
		"bin/containerd": programs + "/containerd", "bin/containerd-shim-runc-v2": programs + "/containerd-shim-runc-v2", "bin/ctr": programs + "/ctr",
		"cards/libnvidia-ml.so.1": library, "cards/nvidia-smi": smi, "cards/nvidia-cuda-mps-control": filepath.Join(filepath.Dir(smi), "nvidia-cuda-mps-control"),
		"node.sh": filepath.Join(kit.Root(), "test/nvml/node.sh"), "setup.sh": here + "/guest/setup.sh", "import.sh": here + "/guest/import.sh"} {
		if text, err := exec.Command("cp", "-L", source, at(target)).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", source, err, text)
		}
	}
	if err := kit.CopyFixture(at("cards"), "t4_pair"); err != nil {
		return err
	}
	text, err := cards()
	if err != nil {
		return err
	}
	if err := os.WriteFile(at("cards/node.json"), text, 0o644); err != nil {
		return err
	}
	if err := m.images(at); err != nil {
		return err
	}
	if err := m.files(at); err != nil {
		return err
	}
	text, err = exec.Command("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", at(""), filepath.Join(m.folder, "node.img"), "1G").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mke2fs: %w: %s", err, text)
	}
	return os.RemoveAll(at(""))
}

// cards of the machine: two T4 of a driver that limits memory by cgroup, with what a test changes of them.
func cards(changes ...func(card map[string]any)) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(kit.Root(), "test/nvml/fixtures/t4_pair.json"))
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	out["driver"].(map[string]any)["version"] = "615.71.09"
	for _, card := range out["cards"].([]any) {
		for _, change := range changes {
			change(card.(map[string]any))
		}
	}
	return json.Marshal(out)
}

// images in addition to the product's.
func (m *machine) images(at func(string) string) error {
	tool, list := os.Getenv("QM_REAL_NODE"), fmt.Sprintf("quartermaster %s/quartermaster\n", registry)
	program, err := kit.Compile(m.folder, filepath.Join(kit.Root(), "test/plugins/probe"))
	if err != nil {
		return err
	}
	for name, arguments := range map[string][]string{pause: {tool + ":/pause", "--", "/pause", "pause"}, probe: {program + ":/bin/probe"}} {
		file, _, _ := strings.Cut(filepath.Base(name), ":")
		text, err := exec.Command(tool, append([]string{"image", at("images/" + file), name}, arguments...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, text)
		}
		list += fmt.Sprintf("%s %s/%s\n", file, registry, file)
	}
	return os.WriteFile(at("images/list"), []byte(list), 0o644)
}

// files of a node, where kubeadm has them.
func (m *machine) files(at func(string) string) error {
	server, err := url.Parse(cluster.Config.Host)
	if err != nil {
		return err
	}
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://192.0.2.1:%s", certificate-authority: /etc/kubernetes/ca.crt}}]
users: [{name: node, user: {client-certificate: /etc/kubernetes/node.crt, client-key: /etc/kubernetes/node.key}}]
contexts: [{name: test, context: {cluster: test, user: node}}]
current-context: test
`, server.Port())
	for name, text := range map[string]string{"server": "192.0.2.1:" + server.Port() + "\n", "files/etc/kubernetes/kubelet.conf": kubeconfig,
		"files/var/lib/kubelet/config.yaml": kubeletSettings, "files/etc/containerd/config.toml": containerdSettings, "files/etc/cni/net.d/10-bridge.conflist": network} {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	authority := filepath.Join(cluster.Dir, "certs/ca")
	certificate := func(name, subject string, extensions ...string) error {
		base := at("files/etc/kubernetes/" + name)
		arguments := []string{"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-CA", authority + ".crt", "-CAkey", authority + ".key",
			"-subj", subject, "-keyout", base + ".key", "-out", base + ".crt", "-addext", "basicConstraints=critical,CA:FALSE"}
		for _, extension := range extensions {
			arguments = append(arguments, "-addext", extension)
		}
		if text, err := exec.Command("openssl", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("openssl: %w: %s", err, text)
		}
		return nil
	}
	text, err := os.ReadFile(authority + ".crt")
	return errors.Join(err, os.WriteFile(at("files/etc/kubernetes/ca.crt"), text, 0o644),
		certificate("node", "/O=system:nodes/CN=system:node:"+node, "extendedKeyUsage=clientAuth"),
		certificate("serving", "/CN="+node, "extendedKeyUsage=serverAuth", "subjectAltName=DNS:"+node+",IP:"+address))
}

const kubeletSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: /etc/kubernetes/ca.crt}}
tlsCertFile: /etc/kubernetes/serving.crt
tlsPrivateKeyFile: /etc/kubernetes/serving.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
staticPodPath: /etc/kubernetes/manifests
cgroupDriver: systemd
makeIPTablesUtilChains: false
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 5m
runtimeRequestTimeout: 10m
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
`

const containerdSettings = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "` + pause + `"
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
  BinaryName = "/usr/bin/nvidia-container-runtime"
  SystemdCgroup = true
`

const network = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isDefaultGateway": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "198.18.1.0/24"}]]}}]}
`
