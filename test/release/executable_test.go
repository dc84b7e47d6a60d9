package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quartermaster.io/test/faults/kit"
)

func TestItNeedsNothingOfTheMachine(t *testing.T) {
	executable := filepath.Join(program(t), "quartermaster")
	check := filepath.Join(kit.Root(), "release/check.sh")
	run(t, check, "amd64", executable)
	// The check can fail: programs that are linked dynamically, and for another machine.
	for _, refused := range [][]string{{"amd64", filepath.Join(kit.Root(), "build/release/quartermaster")}, {"arm64", executable}} {
		if said, err := exec.Command(check, refused...).CombinedOutput(); err == nil {
			t.Errorf("%v: %s", refused, said)
		}
	}
	if said := run(t, "file", executable); !strings.Contains(said, "static-pie linked") {
		t.Errorf("not at random addresses: %s", said)
	}
}

func TestItStartsInAnEmptyRoot(t *testing.T) {
	root := t.TempDir()
	must(t, os.Link(filepath.Join(program(t), "quartermaster"), filepath.Join(root, "quartermaster")))
	for _, words := range []string{"version", "--help", "explain error 999", "render declaration --key example.com/fpga --group lab"} {
		if said := run(t, "unshare", append([]string{"--map-root-user", "--root", root, "/quartermaster"}, strings.Fields(words)...)...); len(said) < 20 {
			t.Errorf("%s: %q", words, said)
		}
	}
	files, err := os.ReadDir(root)
	must(t, err)
	if len(files) != 1 {
		t.Errorf("the root is not empty: %v", files)
	}
}

// A real bash, as it completes a line: the words, and where the cursor is.
func TestBashCompletes(t *testing.T) {
	folder := program(t)
	for line, want := range map[string]string{
		"quartermaster explain p|":                     "pod",
		"quartermaster inspect nodes --lang |":         "en zh",
		"quartermaster inspect nodes --lang=z|":        "zh",
		"quartermaster inspect nodes --outp|":          "--output",
		"quartermaster completion |":                   "bash fish zsh",
		"quartermaster ver| --lang zh":                 "verify version",
		"quartermaster verify --kubeconfig /etc/host|": "",
	} {
		script := fmt.Sprintf(`
			PATH=%q:$PATH; source %q
			complete -p quartermaster >/dev/null
			line=%q; before=${line%%|*}; words=${line/|/}
			read -ra COMP_WORDS <<<"${words//=/ = }"
			read -ra left <<<"${before//=/ = }"; COMP_CWORD=$((${#left[@]} - 1))
			if [[ $before == *" " ]]; then COMP_CWORD=${#left[@]}; COMP_WORDS=("${COMP_WORDS[@]:0:COMP_CWORD}" "" "${COMP_WORDS[@]:COMP_CWORD}"); fi
			_quartermaster quartermaster "" ""
			printf '%%s\n' "${COMPREPLY[@]}" | sort | paste -sd' '`, folder, filepath.Join(folder, "completion/quartermaster.bash"), line)
		if said := strings.TrimSpace(run(t, "bash", "-euc", script)); said != want {
			t.Errorf("%s: %q instead of %q", line, said, want)
		}
	}
}

// The other shells read their script, and ask the program; zsh's own completion needs a terminal.
func TestZshAndFishComplete(t *testing.T) {
	folder := program(t)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Log("no zsh here: its script was not read")
	} else {
		run(t, "zsh", "-n", filepath.Join(folder, "completion/quartermaster.zsh"))
	}
	if _, err := exec.LookPath("fish"); err != nil {
		t.Log("no fish here: its script was not read")
		return
	}
	for line, want := range map[string]string{"quartermaster explain p": "pod\t", "quartermaster inspect nodes --lang ": "en\nzh", "quartermaster verify --context ": ""} {
		said := run(t, "fish", "-c", fmt.Sprintf("source %q; complete -C %q", filepath.Join(folder, "completion/quartermaster.fish"), line))
		if !strings.HasPrefix(said, want) || want == "" && said != "" {
			t.Errorf("fish: %s: %q", line, said)
		}
	}
}

func TestTheManPageIsCorrect(t *testing.T) {
	page := filepath.Join(program(t), "man/quartermaster.1")
	if said, err := exec.Command("mandoc", "-T", "lint", "-W", "warning", page).CombinedOutput(); err != nil {
		t.Errorf("mandoc: %v\n%s", err, said)
	}
	text := regexp.MustCompile(".\b").ReplaceAllString(run(t, "mandoc", "-T", "utf8", page), "") // bold is a letter over itself
	for _, part := range []string{"EXIT STATUS", "SSL_CERT_FILE", "quartermaster " + version} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not show %q", part)
		}
	}
}

func TestTheKrewManifestFitsTheArchive(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dist, "krew.yaml"))
	must(t, err)
	archive := "kubectl-quartermaster-" + version + "-linux-amd64.tar.gz"
	for _, part := range []string{"sha256: " + sums(t, dist)[archive], "uri: " + archive, "version: v" + version, "The uri is a file name"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("krew.yaml does not say %q", part)
		}
	}
	// krew's own programs, built from their module: the validator of its index wants the file to have the plugin's name.
	named := filepath.Join(t.TempDir(), "quartermaster.yaml")
	must(t, os.WriteFile(named, text, 0o644))
	krew := func(words ...string) *exec.Cmd {
		return exec.Command("go", append([]string{"-C", filepath.Join(kit.Root(), "test/release/krew"), "tool"}, words...)...)
	}
	if said, err := krew("validate-krew-manifest", "-skip-install", "-manifest", named).CombinedOutput(); err != nil {
		t.Errorf("krew's validator: %v\n%s", err, said)
	}
	root := t.TempDir()
	install := krew("krew", "install", "--manifest="+named, "--archive="+filepath.Join(dist, archive))
	install.Env = append(os.Environ(), "KREW_ROOT="+root)
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("krew install: %v\n%s", err, said)
	}
	if said := run(t, filepath.Join(root, "bin/kubectl-quartermaster"), "version"); !strings.HasPrefix(said, "quartermaster "+version) {
		t.Error(said)
	}
	folder := unpacked(t, archive)
	for _, file := range []string{"kubectl-quartermaster", "LICENSE", "THIRD-PARTY"} {
		if !strings.Contains(string(text), "from: "+file+"\n") {
			t.Errorf("krew.yaml does not take %s", file)
		}
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Error(err)
		}
	}
}
