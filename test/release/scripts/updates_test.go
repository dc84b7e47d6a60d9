// Package scripts is about the parts of a release that need no release: which packages may go in, and what is signed.
package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quartermaster.io/test/repository"
)

// machine is the folder of an apt-cache and a dpkg-query that know these versions: package -> installed, candidate. An empty installed version is
// no installation; the candidate "-" is in no list, so apt takes the installed one.
func machine(t *testing.T, versions map[string][2]string) string {
	t.Helper()
	folder := t.TempDir()
	policy, query := "#!/bin/sh\n[ \"$1\" = policy ] || exit 9\nfor name; do case $name in\n", "#!/bin/sh\nfor name; do :; done\ncase $name in\n"
	for name, version := range versions {
		installed, candidate := version[0], version[1]
		table := fmt.Sprintf("     %s 500\\n        500 http://deb.debian.org/debian-security bookworm-security/main amd64 Packages\\n", candidate)
		if candidate == "-" {
			candidate, table = installed, ""
		}
		if installed != "" {
			table += fmt.Sprintf(" *** %s 100\\n        100 /var/lib/dpkg/status\\n", installed)
			query += fmt.Sprintf("%s) echo 'ii  %s' ;;\n", name, installed)
		}
		policy += fmt.Sprintf("%s) printf '%s:\\n  Installed: %s\\n  Candidate: %s\\n  Version table:\\n%s' ;;\n", name, name, installed, candidate, table)
	}
	for name, text := range map[string]string{"apt-cache": policy + "esac; done\n", "dpkg-query": query + "*) exit 1 ;;\nesac\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// run is the exit code and the output of a script on such a machine, with these variables.
func run(t *testing.T, tools string, variables []string, script string, arguments ...string) string {
	t.Helper()
	command := exec.Command(filepath.Join(repository.Root(), script), arguments...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "QM_") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, variables...)
	if tools != "" {
		command.Env = append(command.Env, "PATH="+tools+":"+os.Getenv("PATH"))
	}
	output, _ := command.CombinedOutput()
	return fmt.Sprintf("%d %s", command.ProcessState.ExitCode(), output)
}

// needDebian skips a test where no image and no release can be made.
func needDebian(t *testing.T) {
	t.Helper()
	if said := run(t, "", nil, "image/build.sh", "--check"); !strings.HasPrefix(said, "0 ") {
		t.Skip(said)
	}
}

func TestAReleaseRefusesOldPackages(t *testing.T) {
	tools := machine(t, map[string][2]string{
		"libssl3":      {"3.0.19-1~deb12u2", "3.0.22-1~deb12u2"},
		"libcurl4":     {"7.88.1-10+deb12u15", "7.88.1-10+deb12u15"},
		"libyaml":      {"0.7.0", "0.6.9"}, // newer than any list, as where someone compiled it
		"libown":       {"1.0", "-"},
		"libnew":       {"", "2.0"},
		"libforeign":   {"5.2+dfsg-2", "5.2+dfsg-2+b1"},
		"libforeign-2": {"5.2+dfsg-2+b3", "5.3-1"},
	})
	foreign := filepath.Join(t.TempDir(), "sysroot/var/lib/dpkg")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const (
		ssl      = "old packages go in: libssl3 3.0.19-1~deb12u2 (apt has 3.0.22-1~deb12u2)"
		upgrade  = "apt-get update && apt-get upgrade, then build again"
		variable = "QM_ALLOW_OLD_PACKAGES="
	)
	fetch := "delete " + strings.TrimSuffix(foreign, "/sysroot/var/lib/dpkg") + " and build again, which fetches the newest"
	for _, row := range []struct{ variable, arguments, want string }{
		{"", "libcurl4 libyaml libnew", "0 "},
		{"", "--release libcurl4 libyaml libnew", "0 "},
		{"", "libssl3 libcurl4", "0 updates: " + ssl + "; a release refuses them: " + upgrade + "\n"},
		{"", "--release libssl3 libcurl4", "1 updates: " + ssl + "; " + upgrade + ", or set QM_ALLOW_OLD_PACKAGES=1\n"},
		{"1", "--release libssl3 libcurl4", "0 updates: " + ssl + "; allowed, because QM_ALLOW_OLD_PACKAGES is 1\n"},
		{"1", "--release libcurl4", "0 "},
		{"yes", "--release libssl3", "2 updates: QM_ALLOW_OLD_PACKAGES is 'yes'; allowed is 1 (see image/updates.sh --help)\n"},
		{"", "--release libown", "1 updates: no list of apt has: libown 1.0; " + upgrade + ", or set QM_ALLOW_OLD_PACKAGES=1\n"},
		{"", "libown libssl3", "0 updates: " + ssl + "; no list of apt has: libown 1.0; a release refuses them: " + upgrade + "\n"},
		{"", "--release libforeign", "1 updates: old packages go in: libforeign 5.2+dfsg-2 (apt has 5.2+dfsg-2+b1); " + upgrade + ", or set QM_ALLOW_OLD_PACKAGES=1\n"},
		{"", "--release --admindir=" + foreign + " libforeign", "0 "},
		{"", "--release --admindir=" + foreign + " libforeign-2", "1 updates: old packages go in: libforeign-2 5.2+dfsg-2+b3 (apt has 5.3-1); " + fetch + ", or set QM_ALLOW_OLD_PACKAGES=1\n"},
		{"", "--admindir=/nowhere libssl3", "2 updates: --admindir=/nowhere is no folder of dpkg: it has no file status (see image/updates.sh --help)\n"},
		{"", "--release", "2 updates: no package is named (see image/updates.sh --help)\n"},
		{"", "--force libssl3", "2 updates: unknown argument '--force' (see image/updates.sh --help)\n"},
	} {
		if said := run(t, tools, []string{variable + row.variable}, "image/updates.sh", strings.Fields(row.arguments)...); said != row.want {
			t.Errorf("%s%s updates.sh %s:\n%q, not\n%q", variable, row.variable, row.arguments, said, row.want)
		}
	}
}

// An apt-cache that fails is no "nothing newer".
func TestAMachineWhoseAptDoesNotAnswerIsRefused(t *testing.T) {
	tools := machine(t, map[string][2]string{"libssl3": {"1.0", "1.0"}})
	if err := os.WriteFile(filepath.Join(tools, "apt-cache"), []byte("#!/bin/sh\nexit 100\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if said, want := run(t, tools, nil, "image/updates.sh", "--release", "libssl3"), "1 updates: apt-cache does not answer (above)\n"; said != want {
		t.Errorf("%q, not %q", said, want)
	}
}

// What ./dev release asks first, before it compiles: with the packages of the executable, and of the certificates in the image.
func TestTheReleaseLooksBeforeItBuilds(t *testing.T) {
	needDebian(t)
	tools := machine(t, map[string][2]string{"libssl-dev": {"3.0.19", "3.0.22"}, "libsimdjson-dev": {"3.1.1-2", "3.1.1-3"}, "libxxhash-dev": {"1", "2"}})
	const old = "updates: old packages go in: libsimdjson-dev 3.1.1-2 (apt has 3.1.1-3), libssl-dev 3.0.19 (apt has 3.0.22); "
	if said := run(t, tools, nil, "release/release.sh", "--check"); !strings.HasPrefix(said, "1 "+old) || strings.Count(said, "\n") != 1 {
		t.Errorf("release.sh --check: %q", said)
	}
	allowed := run(t, tools, []string{"QM_ALLOW_OLD_PACKAGES=1"}, "release/release.sh", "--check")
	if want := "0 " + old + "allowed, because QM_ALLOW_OLD_PACKAGES is 1\nrelease: this machine can make the release\n"; allowed != want {
		t.Errorf("release.sh --check: %q, not %q", allowed, want)
	}
}

// An image of another program, by the same script: the packages are those whose files are in it. Without --release it is made all the same.
func TestAnImageForAReleaseTakesNoOldPackages(t *testing.T) {
	needDebian(t)
	tree, tools := t.TempDir(), t.TempDir()
	if said, err := exec.Command("bash", "-euc", `
		cd "$1"
		cp --parents -r image VERSION console/page/package-lock.json "$2"
		install -D /bin/true "$2/build/release/quartermaster"
		printf '%s\n' '#!/bin/sh' 'shift' 'for name; do case $name in $OLD) version=99:1 ;; *) version=0 ;; esac' \
			'printf "%s:\n  Candidate: %s\n     %s 500\n        500 http://deb.debian.org/debian bookworm/main amd64 Packages\n" $name $version $version; done' >"$3/apt-cache"
		chmod +x "$3/apt-cache"`, "copy", repository.Root(), tree, tools).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	const variable = "QM_ALLOW_OLD_PACKAGES=1"
	for _, row := range []struct{ old, variable, argument, says string }{
		{"libc6", "", "--release", "1 updates: old packages go in: libc6 "},
		{"ca-certificates", "", "--release", "1 updates: old packages go in: ca-certificates "},
		{"libcurl4", "", "--release", "0 image: "}, // it is not in this image
		{"libc6", variable, "--release", "0 updates: old packages go in: libc6 "},
		{"libc6", "", "--arch=amd64", "0 updates: old packages go in: libc6 "},
	} {
		if err := os.RemoveAll(filepath.Join(tree, "build/image")); err != nil {
			t.Fatal(err)
		}
		script, err := filepath.Rel(repository.Root(), filepath.Join(tree, "image/build.sh"))
		if err != nil {
			t.Fatal(err)
		}
		said := run(t, tools, []string{"OLD=" + row.old, row.variable, "SOURCE_DATE_EPOCH=0"}, script, row.argument)
		archives, _ := filepath.Glob(filepath.Join(tree, "build/image/*.tar"))
		if !strings.HasPrefix(said, row.says) || (len(archives) == 1) != strings.HasPrefix(row.says, "0") {
			t.Errorf("%s %s build.sh %s: %v, %q, not %q", row.old, row.variable, row.argument, archives, said, row.says)
		}
	}
}
