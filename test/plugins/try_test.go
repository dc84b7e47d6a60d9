package plugins

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"quartermaster.io/test/faults/kit"
)

// `./dev try --real` shows what it promises: a container with the card that it was given, why a pod waits, and a change of mode that waits.
func TestTryOnRealNodes(t *testing.T) {
	command := exec.Command(filepath.Join(kit.Root(), "test/try/real.sh"), "--once", "--k8s", kit.Minor())
	command.Env = append(os.Environ(), "TERM=dumb")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, line := range []string{
		`NVIDIA_VISIBLE_DEVICES=GPU-\S+\n  device nodes: /dev/nvidia[01]\n  GPU [01]: Tesla T4`,
		`Pod default/too-many waits`,
		`real-2 +pgpu +share +Draining +PodsHoldCards`,
		`real-2 +share +share +Ready +Enrolled`,
		`(?s)(GPU-\S+ +Tesla T4 +15360 MiB +Healthy\n){2}`,
	} {
		if !regexp.MustCompile(line).Match(said) {
			t.Errorf("it does not show %q:\n%s", line, said)
		}
	}
}
