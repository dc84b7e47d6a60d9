package scripts

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"quartermaster.io/test/repository"
)

// registry starts one on this machine, by plain HTTP, and returns its address.
func registry(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "registry")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join(repository.Root(), "test/release/registry")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, said)
	}
	command := exec.Command(program)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// small releases: images of one file, as image/archive.sh writes them, and the chart.
func smallRelease(t *testing.T, version string) string {
	t.Helper()
	folder := t.TempDir()
	script := exec.Command("bash", "-euc", `
		arch=amd64 version=$1 revision= created=2026-01-01T00:00:00Z epoch=1767225600
		. image/archive.sh
		for name in quartermaster quartermaster-simulation; do
			mkdir -p "$2/work/$name"
			echo "$name" >"$2/work/$name/program"
			write_layout "$2/work/$name" "$2/layout" $name text '{Entrypoint: ["/program"]}' test >/dev/null
			pack "$2/layout" >"$2/$name-$version-amd64.tar"
			rm -r "$2/layout"
		done
		helm=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -path '*/kubernetes-v*/bin/helm' | sort -V | sed -n '$p')
		"$helm" package charts/quartermaster --destination "$2" >/dev/null`, "small", version, folder)
	script.Dir = repository.Root()
	if said, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return folder
}

func push(arguments ...string) (string, string, error) {
	command := exec.Command(filepath.Join(repository.Root(), "release/push.sh"), arguments...)
	var messages bytes.Buffer
	command.Stderr = &messages
	said, err := command.Output()
	return string(said), messages.String(), err
}

// What is printed is what the registry has, and people install from there.
func TestImagesAndChartArePushedWithTheirDigests(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("no skopeo: ./dev setup installs it")
	}
	text, err := os.ReadFile(filepath.Join(repository.Root(), "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(text))
	folder, address := smallRelease(t, version), registry(t)
	said, messages, err := push(folder, address+"/team/gpu")
	if err != nil {
		t.Fatalf("push.sh: %v: %s", err, messages)
	}
	lines := regexp.MustCompile(`(?m)^(image|chart) (\S+):(\S+)@(sha256:[0-9a-f]{64})$`).FindAllStringSubmatch(said, -1)
	var names []string
	for _, line := range lines {
		kind, name, tag, digest := line[1], line[2], line[3], line[4]
		path, _ := strings.CutPrefix(name, address+"/team/gpu/")
		names = append(names, kind+" "+path)
		request, err := http.NewRequest(http.MethodHead, "http://"+address+"/v2/team/gpu/"+path+"/manifests/"+tag, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if held := answer.Header.Get("Docker-Content-Digest"); tag != version || answer.StatusCode != http.StatusOK || held != digest {
			t.Errorf("%s: the registry has %q for %s (%s)", line[0], held, tag, answer.Status)
		}
		if kind == "image" && digest != digestIn(t, filepath.Join(folder, path+"-"+version+"-amd64.tar")) {
			t.Errorf("%s is not the digest of the archive", line[0])
		}
	}
	if !slices.Equal(names, []string{"image quartermaster", "image quartermaster-simulation", "chart charts/quartermaster"}) {
		t.Fatalf("pushed: %q", said)
	}
	again, _, err := push(folder, address+"/team/gpu")
	if err != nil || again != said {
		t.Errorf("a second push says %q, %v", again, err)
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	helm, err := filepath.Glob(filepath.Join(cache, "quartermaster/kubernetes-v*/bin/helm"))
	if err != nil || len(helm) == 0 {
		t.Fatal("no helm: ", err)
	}
	rendered, err := exec.Command(helm[len(helm)-1], "template", "quartermaster", "oci://"+address+"/team/gpu/charts/quartermaster", "--version", version, "--plain-http",
		"--set", "image.repository="+address+"/team/gpu/quartermaster").CombinedOutput()
	if err != nil || !strings.Contains(string(rendered), address+"/team/gpu/quartermaster:"+version) {
		t.Errorf("the chart of the registry: %v: %.500s", err, rendered)
	}
}

// digestIn is the digest of the image in an archive.
func digestIn(t *testing.T, archive string) string {
	t.Helper()
	text, err := exec.Command("tar", "-xOf", archive, "index.json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var index struct{ Manifests []struct{ Digest string } }
	if err := yaml.Unmarshal(text, &index); err != nil || len(index.Manifests) != 1 {
		t.Fatal(err, string(text))
	}
	return index.Manifests[0].Digest
}

func TestWhatCannotBePushedIsSaidInOneLine(t *testing.T) {
	empty := t.TempDir()
	for said, arguments := range map[string][]string{
		"'https://registry.example' is no registry; allowed is HOST[:PORT][/PATH]": {empty, "https://registry.example"},
		"'registry.example/Team' is no registry":                                   {empty, "registry.example/Team"},
		"it takes a folder and a registry":                                         {empty},
		"./dev release makes it":                                                   {empty, "127.0.0.1:1"},
	} {
		_, messages, err := push(arguments...)
		if err == nil || !strings.Contains(messages, said) || strings.Count(messages, "\n") != 1 {
			t.Errorf("%q: %v %q", arguments, err, messages)
		}
	}
}

// The workflow calls ./dev release with options that it has, and names no host of a registry.
func TestTheWorkflowOfAReleaseCallsDev(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository.Root(), ".github/workflows/release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run, Uses string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(filepath.Join(repository.Root(), "release/release.sh"), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if _, command, found := strings.Cut(step.Run, "./dev release"); found {
				calls++
				for _, option := range regexp.MustCompile(`--[a-z-]+`).FindAllString(command, -1) {
					if !strings.Contains(string(help), option+" ") {
						t.Errorf("./dev release has no option %s", option)
					}
				}
				if !strings.Contains(command, `--push "$REGISTRY"`) {
					t.Error("nothing is pushed: ", command)
				}
			}
			if said, err := exec.Command("bash", "-nc", step.Run).CombinedOutput(); err != nil {
				t.Errorf("%s: %s", step.Name, said)
			}
		}
	}
	if calls != 1 || !strings.Contains(string(text), "vars.QM_REGISTRY }}") {
		t.Errorf("./dev release is called %d times", calls)
	}
	if host := regexp.MustCompile(`\b(ghcr|quay|docker|gcr)\.(io|com)\b`).FindString(string(text)); host != "" {
		t.Errorf("the workflow names the registry %s", host)
	}
}
