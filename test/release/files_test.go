package release

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// sums reads SHA256SUMS of a release.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	must(t, err)
	all := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		all[name] = sum
	}
	return all
}

func TestAllFilesAreThereWithTheirChecksums(t *testing.T) {
	want := []string{"SHA256SUMS", "SHA256SUMS.sig", "install.yaml", "krew.yaml"}
	architectures := []string{"amd64"}
	if os.Getenv("QM_NIGHTLY") != "" {
		architectures = append(architectures, "arm64") // ./dev release --arch all
	}
	for _, arch := range architectures {
		for _, pattern := range []string{"quartermaster-%s-linux-%s.tar.gz", "quartermaster-%s-linux-%s.spdx.json", "kubectl-quartermaster-%s-linux-%s.tar.gz",
			"quartermaster-%s-%s.tar", "quartermaster-%s-%s.spdx.json"} {
			want = append(want, fmt.Sprintf(pattern, version, arch))
		}
	}
	for _, pattern := range []string{"quartermaster-%s.tgz", "quartermaster-cluster-plugin-%s.tgz", "quartermaster-simulation-%s-amd64.tar",
		"quartermaster-simulation-%s-amd64.spdx.json", "quartermaster-with-simulation-%s-amd64.tar"} {
		want = append(want, fmt.Sprintf(pattern, version))
	}
	files, err := os.ReadDir(dist)
	must(t, err)
	if len(files) != len(want) {
		t.Errorf("%d files, and the help of ./dev release names %d: %v", len(files), len(want), files)
	}
	listed := sums(t, dist)
	for _, name := range want {
		content, err := os.ReadFile(filepath.Join(dist, name))
		must(t, err)
		if sum := fmt.Sprintf("%x", sha256.Sum256(content)); !strings.HasPrefix(name, "SHA256SUMS") && listed[name] != sum {
			t.Errorf("%s has the checksum %s, and SHA256SUMS says %q", name, sum, listed[name])
		}
	}
}

// Whoever has the public key can tell. test/release/scripts changes files.
func TestTheReleaseIsSigned(t *testing.T) {
	public := filepath.Join(t.TempDir(), "signing.pub")
	run(t, "openssl", "pkey", "-in", os.Getenv("QM_SIGNING_KEY"), "-pubout", "-out", public)
	run(t, "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", filepath.Join(dist, "SHA256SUMS"),
		"-sigfile", filepath.Join(dist, "SHA256SUMS.sig"))
}

// A checkout in another folder, with the same changes. Its objects come out of ccache where there is one.
func TestASecondReleaseInAnotherFolderHasTheSameBytes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "another folder")
	run(t, "bash", "-euc", `
		git clone --quiet --shared --no-checkout "$1" "$2"
		git -C "$2" reset --quiet
		cd "$1"
		git ls-files -coz --exclude-standard | while IFS= read -rd "" file; do [[ ! -e $file && ! -L $file ]] || printf "%s\0" "$file"; done |
			tar --create --null --files-from - | tar --extract --directory "$2"`, "copy", kit.Root(), folder)
	began := time.Now()
	second := filepath.Join(t.TempDir(), "made")
	run(t, filepath.Join(folder, "dev"), "release", "--out", second)
	t.Logf("the second release took %.0f s", time.Since(began).Seconds())
	first, other := sums(t, dist), sums(t, second)
	for name, sum := range first {
		if other[name] != sum {
			t.Errorf("%s: %s here, %q in another folder", name, sum, other[name])
		}
	}
	if len(first) != len(other) {
		t.Errorf("%d files here, %d in another folder", len(first), len(other))
	}
}

func TestWrongUsageIsRefusedInOneLine(t *testing.T) {
	full := t.TempDir()
	must(t, os.WriteFile(filepath.Join(full, "letter"), nil, 0o644))
	for said, args := range map[string][]string{
		"holds something else":        {"--out", full},
		"--base-url 'here' is no URL": {"--base-url", "here"},
		"--image 'a/b:1' is no name":  {"--image", "a/b:1"},
		"--push 'https://a' is no":    {"--push", "https://a"},
		"--push 'a:99999' is no":      {"--push", "a:99999"},
		"--push 'a:0' is no":          {"--push=a:0"},
		"--push 'X Y' is no":          {"--push=X Y"},
		"--push 'a..b' is no":         {"--push", "a..b"},
		"--push needs a value":        {"--push="},
		"unknown argument '--colour'": {"--colour"},
		"--out needs a value":         {"--out"},
	} {
		output, err := exec.Command(filepath.Join(kit.Root(), "release/release.sh"), args...).CombinedOutput()
		failed, ok := err.(*exec.ExitError)
		if !ok || failed.ExitCode() != 2 || !strings.Contains(string(output), said) || strings.Count(string(output), "\n") != 1 {
			t.Errorf("%v: %v: %q; it should say %q and end with 2", args, err, output, said)
		}
	}
	if _, err := os.Stat(filepath.Join(full, "letter")); err != nil {
		t.Error(err)
	}
}

func TestTheListNamesWhatIsLinkedIn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dist, "quartermaster-"+version+"-linux-amd64.spdx.json"))
	must(t, err)
	var list struct {
		SPDXVersion string
		Packages    []struct {
			Name, VersionInfo string
			Checksums         []struct{ Algorithm, ChecksumValue string }
		}
	}
	must(t, json.Unmarshal(text, &list))
	content, err := os.ReadFile(filepath.Join(program(t), "quartermaster"))
	must(t, err)
	found := map[string]string{}
	for _, entry := range list.Packages {
		found[entry.Name] = entry.VersionInfo
		for _, sum := range entry.Checksums {
			if sum.Algorithm == "SHA256" && sum.ChecksumValue != fmt.Sprintf("%x", sha256.Sum256(content)) {
				t.Errorf("the list is of an executable with the checksum %s", sum.ChecksumValue)
			}
		}
	}
	for _, name := range []string{"quartermaster", "curl", "openssl", "glibc", "gcc-12", "fmtlib", "spdlog", "simdjson", "yaml-cpp", "boost1.81", "nlohmann-json3", "protozero", "cli11", "preact", "uplot"} {
		if found[name] == "" {
			t.Errorf("the list has no %s: %v", name, found)
		}
	}
	// What the executable says of itself: libcurl and OpenSSL have their version in a string.
	for _, name := range []string{"curl", "openssl"} {
		if number := strings.FieldsFunc(found[name], func(r rune) bool { return r == '-' || r == '~' })[0]; !strings.Contains(string(content), number) {
			t.Errorf("the executable has no string %s, the version of %s in the list", number, name)
		}
	}
}
