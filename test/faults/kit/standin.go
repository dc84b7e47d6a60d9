package kit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NvidiaRuntime is the RuntimeClass of the stand-in for NVIDIA's container runtime, and containerd's name of it.
const NvidiaRuntime = "nvidia"

// Standins are the ready programs of the stand-in for the card (test/nvml): of QM_NVML, else those that were built here.
func Standins() (library, smi string, err error) {
	folder := Env("QM_NVML", filepath.Join(Root(), "build/dev/nvml"))
	library, smi = filepath.Join(folder, "libnvidia-ml.so.1"), filepath.Join(folder, "nvidia-smi")
	for _, file := range []string{library, smi} {
		if _, err := os.Stat(file); err != nil {
			return "", "", fmt.Errorf("no %s: ./dev build dev nvml_standin nvml_smi", file)
		}
	}
	return library, smi, nil
}

// CopyFixture of test/nvml into a folder, as node.json.
func CopyFixture(folder, name string) error {
	for source, target := range map[string]string{"models": "models", name: "node"} {
		text, err := os.ReadFile(filepath.Join(Root(), "test/nvml/fixtures", source+".json"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, target+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// GiveDriver: a real node looks as if it had the cards of the fixture in this folder.
func (c *Cluster) GiveDriver(node, folder string) error {
	library, smi, err := Standins()
	if err == nil {
		_, err = c.Script("node-exec", "--node", node, filepath.Join(Root(), "test/nvml/node.sh"), folder, library, smi)
	}
	return err
}

// GiveRuntime: containerd of a real node gets the stand-in under the name of NVIDIA's runtime, and the cluster its RuntimeClass.
func (c *Cluster) GiveRuntime(ctx context.Context, node string) error {
	suffix := strings.TrimSuffix("-"+strings.TrimPrefix(node, "real-"), "-1")
	folder := filepath.Join(c.Dir, "node"+suffix)
	program, err := Compile(folder, filepath.Join(Root(), "test/plugins/runtime"))
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "containerd.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for name, options := range map[string]string{"runc": "", NvidiaRuntime: fmt.Sprintf("BinaryName = %q", program)} {
		text = fmt.Appendf(text, "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.%s]\n  runtime_type = 'io.containerd.runc.v2'\n  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.%s.options]\n    %s\n", name, name, options)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	if _, err := c.Script("restart", "containerd"+suffix); err != nil {
		return err
	}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: NvidiaRuntime}, Handler: NvidiaRuntime}
	_, err = c.Client.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
	return err
}
