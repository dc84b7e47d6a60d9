package staticpods

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// inContainer is set in the process that becomes a container.
const inContainer = "STATICPODS_CONTAINER"

// image is what that process gets.
type image struct {
	Root    string // becomes "/"
	Program string
	Command []string
	Mounts  []mount
}
type mount struct {
	From, To string
	ReadOnly bool
}

// etc is where a control-plane node's folder is, as its manifests have it.
const etc = "/etc/kubernetes"

func (k *Kubelet) start(spec *corev1.Pod) (*container, error) {
	c := spec.Spec.Containers[0]
	command := append(append([]string{}, c.Command...), c.Args...)
	program := k.Programs[command[0]]
	if program == "" {
		return nil, fmt.Errorf("no program %s", command[0])
	}
	of := image{Root: filepath.Join(k.Work, spec.Name+".root"), Program: program, Command: command}
	for _, at := range c.VolumeMounts {
		from, err := k.hostPath(spec, at.Name)
		if err != nil {
			return nil, err
		}
		of.Mounts = append(of.Mounts, mount{from, at.MountPath, at.ReadOnly})
	}
	if err := os.MkdirAll(of.Root, 0o700); err != nil {
		return nil, err
	}
	told, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(k.Work, spec.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	made := &container{done: make(chan struct{}), started: time.Now()}
	if k.Fails != nil && k.Fails(command) {
		fmt.Fprintln(log, "this container is made to fail")
		made.cmd = exec.Command("false")
	} else {
		made.cmd = exec.Command("/proc/self/exe")
		made.cmd.Env = []string{inContainer + "=" + string(told)}
	}
	made.cmd.Stdout, made.cmd.Stderr = log, log
	made.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := made.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { made.cmd.Wait(); close(made.done) }()
	return made, nil
}

// hostPath of a volume, below the control-plane node's folder.
func (k *Kubelet) hostPath(spec *corev1.Pod, volume string) (string, error) {
	for _, one := range spec.Spec.Volumes {
		if one.Name != volume {
			continue
		}
		if one.HostPath == nil || !strings.HasPrefix(one.HostPath.Path, etc+"/") {
			return "", fmt.Errorf("volume %s is no hostPath below %s", volume, etc)
		}
		path := filepath.Join(k.Root, strings.TrimPrefix(one.HostPath.Path, etc))
		info, err := os.Stat(path)
		if one.HostPath.Type != nil && *one.HostPath.Type == corev1.HostPathFile && (err != nil || !info.Mode().IsRegular()) {
			return "", fmt.Errorf("hostPath type check failed: %s is not a file", one.HostPath.Path)
		}
		return path, err
	}
	return "", fmt.Errorf("no volume %s", volume)
}

func (c *container) stop() {
	c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
		c.cmd.Process.Kill()
		<-c.done
	}
}

// Main is called first by every program that has a Kubelet: in the process that becomes a container it does not return.
func Main() {
	told := os.Getenv(inContainer)
	if told == "" {
		return
	}
	var of image
	err := json.Unmarshal([]byte(told), &of)
	if err == nil {
		err = of.become()
	}
	fmt.Fprintln(os.Stderr, "no container:", err)
	os.Exit(127)
}

func (of image) become() error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("none", of.Root, "tmpfs", 0, "size=16m"); err != nil {
		return err
	}
	const program = "/program"
	for _, one := range append([]mount{{of.Program, program, true}}, of.Mounts...) {
		if err := one.put(of.Root); err != nil {
			return fmt.Errorf("mount %s: %w", one.To, err)
		}
	}
	if err := errors.Join(syscall.Chroot(of.Root), syscall.Chdir("/")); err != nil {
		return err
	}
	return syscall.Exec(program, of.Command, nil)
}

func (m mount) put(root string) error {
	to := filepath.Join(root, m.To)
	info, err := os.Stat(m.From)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(to, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
		err = os.WriteFile(to, nil, 0o600)
	}
	if err == nil {
		err = syscall.Mount(m.From, to, "", syscall.MS_BIND, "")
	}
	if err == nil && m.ReadOnly {
		err = syscall.Mount("", to, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	return err
}
