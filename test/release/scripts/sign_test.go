package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quartermaster.io/test/repository"
)

// checks is the block of docs/install.md that says how to check a release.
func checks(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository.Root(), "docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(openssl pkeyutl -verify [^`]*)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/install.md has no block that begins with openssl pkeyutl -verify")
	}
	return string(block[1])
}

// write a file of the release.
func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// made is a new private key of a kind.
func made(t *testing.T, kind ...string) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "signing.key")
	if said, err := exec.Command("openssl", append([]string{"genpkey", "-out", key, "-algorithm"}, kind...)...).CombinedOutput(); err != nil {
		t.Fatalf("openssl genpkey: %v: %s", err, said)
	}
	return key
}

func TestAChangedFileOfASignedReleaseIsRefused(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	if err := os.Mkdir(dist, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dist, "install.yaml", "kind: List\n")
	write(t, dist, "chart.tgz", "packed")
	key := made(t, "ed25519")
	if said := run(t, "", []string{"QM_SIGNING_KEY=" + key}, "release/sign.sh", dist); said != "0 " {
		t.Fatalf("sign.sh: %q", said)
	}
	// The public key is not among the files that it proves.
	public := filepath.Join(filepath.Dir(dist), "signing.pub")
	if said, err := exec.Command("openssl", "pkey", "-in", key, "-pubout", "-out", public).CombinedOutput(); err != nil {
		t.Fatalf("openssl pkey: %v: %s", err, said)
	}
	check := func() (string, error) {
		command := exec.Command("sh", "-euc", checks(t))
		command.Dir = filepath.Dir(dist)
		said, err := command.CombinedOutput()
		return string(said), err
	}
	if said, err := check(); err != nil || !strings.Contains(said, "Signature Verified Successfully") || !strings.Contains(said, "chart.tgz: OK") {
		t.Fatalf("a release as it was made: %v: %s", err, said)
	}

	write(t, dist, "chart.tgz", "packet")
	if said, err := check(); err == nil || !strings.Contains(said, "chart.tgz: FAILED") {
		t.Errorf("a changed file: %v: %s", err, said)
	}
	// Whoever changes a file can change its checksum, but not sign it.
	if said := run(t, "", []string{"QM_SIGNING_KEY=" + made(t, "ed25519")}, "release/sign.sh", dist); said != "0 " {
		t.Fatalf("sign.sh: %q", said)
	}
	if said, err := check(); err == nil || !strings.Contains(said, "Signature Verification Failure") || strings.Contains(said, "OK") {
		t.Errorf("a changed file, signed with another key: %v: %s", err, said)
	}
}

func TestWithoutAKeyALineSaysThatNothingIsSigned(t *testing.T) {
	dist := t.TempDir()
	write(t, dist, "install.yaml", "kind: List\n")
	write(t, dist, "SHA256SUMS.sig", "of the release before")
	if said, want := run(t, "", nil, "release/sign.sh", dist), "0 sign: the files are not signed: QM_SIGNING_KEY names no key\n"; said != want {
		t.Errorf("%q, not %q", said, want)
	}
	if _, err := os.Stat(filepath.Join(dist, "SHA256SUMS.sig")); !os.IsNotExist(err) {
		t.Errorf("the signature of another release is still there: %v", err)
	}
	if sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS")); err != nil || !regexp.MustCompile(`^[0-9a-f]{64}  install\.yaml\n$`).Match(sums) {
		t.Errorf("SHA256SUMS is %q: %v", sums, err)
	}
}

func TestAKeyThatCannotSignIsRefusedBeforeTheBuild(t *testing.T) {
	needDebian(t)
	folder := t.TempDir()
	write(t, folder, "letter", "Dear reader\n")
	elliptic, ed25519, nowhere := made(t, "EC", "-pkeyopt", "ec_paramgen_curve:P-256"), made(t, "ed25519"), filepath.Join(folder, "nowhere")
	tools := machine(t, nil)
	for key, want := range map[string]string{
		nowhere:                         "1 sign: QM_SIGNING_KEY: no file " + nowhere + " can be read\n",
		filepath.Join(folder, "letter"): "1 sign: QM_SIGNING_KEY: " + filepath.Join(folder, "letter") + " is no private key of ed25519 without a password; ",
		elliptic:                        "1 sign: QM_SIGNING_KEY: " + elliptic + " is no private key of ed25519 without a password; ",
		ed25519:                         "0 release: this machine can make the release\n",
	} {
		if said := run(t, tools, []string{"QM_SIGNING_KEY=" + key}, "release/release.sh", "--check"); !strings.HasPrefix(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: %q, not %q", key, said, want)
		}
	}
}
