package lane

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"quartermaster.io/test/chart"
)

// Cards of a node: two Tesla T4 of the stand-in for NVML, whose state a test changes in Fixture.
type Cards struct {
	Fixture     map[string]any
	Environment []string // of a program that should see the cards
	folder      string
}

// NewCards are written: a program may read them at once.
func NewCards(t *testing.T) *Cards {
	t.Helper()
	driver := filepath.Join(chart.Root(), "build/dev/nvml")
	if _, err := os.Stat(filepath.Join(driver, "libnvidia-ml.so.1")); err != nil {
		t.Fatal("no stand-in for the card: ./dev build dev nvml_standin")
	}
	c := &Cards{folder: t.TempDir()}
	c.Environment = []string{"LD_LIBRARY_PATH=" + driver, "QM_NVML_FIXTURE=" + filepath.Join(c.folder, "node.json")}
	fixtures := filepath.Join(chart.Root(), "test/nvml/fixtures")
	models, err := os.ReadFile(filepath.Join(fixtures, "models.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(c.folder, "models.json"), models, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(fixtures, "t4_pair.json"))
	if err == nil {
		err = json.Unmarshal(text, &c.Fixture)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Write(t)
	return c
}

// Card is a part of Fixture.
func (c *Cards) Card(index int) map[string]any {
	return c.Fixture["cards"].([]any)[index].(map[string]any)
}

// Write puts Fixture in the place of what the stand-in reads. No reader sees half of it.
func (c *Cards) Write(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(c.Fixture)
	next := filepath.Join(c.folder, "new.json")
	if err == nil {
		err = os.WriteFile(next, text, 0o600)
	}
	if err == nil {
		err = os.Rename(next, filepath.Join(c.folder, "node.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Kubelet answers each call on a socket with the bytes that a real one sent: train-0 has the second card, train-1 the first.
func Kubelet(t *testing.T) (socket string) {
	t.Helper()
	answer, err := os.ReadFile(filepath.Join(chart.Root(), "test/agent/exporter/recorded/kubelet-1.36.bin"))
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	end := append([]byte{0, 0, 5, 0, 1, 0, 0, 0, 1}, make([]byte, 5)...) // the last frame of a call: five bytes on stream 1
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer caller.Close()
				var request []byte
				part := make([]byte, 4096)
				for n := 1; n > 0 && !bytes.Contains(request, end); {
					n, _ = caller.Read(part)
					request = append(request, part[:n]...)
				}
				caller.Write(answer)
				io.Copy(io.Discard, caller)
			}()
		}
	}()
	return socket
}
