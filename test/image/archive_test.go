package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

const (
	limitMiB  = 60
	libraries = "/usr/lib/x86_64-linux-gnu/"
	bill      = "/usr/share/doc/quartermaster/sbom.spdx.json"
)

// built is what the last line of image/build.sh says.
type built struct{ file, digest, size string }

// build makes the image in a checkout.
func build(folder string) (built, error) { return made(filepath.Join(folder, "image/build.sh")) }

// made by a script whose last line says what.
func made(script string) (image built, err error) {
	command := exec.Command(script)
	var messages strings.Builder
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		return image, fmt.Errorf("%s: %w: %s", script, err, messages.String())
	}
	words := regexp.MustCompile(`(?:^|\n)(/.*) (sha256:[0-9a-f]{64}) (\d+)\n$`).FindSubmatch(output)
	if words == nil {
		return image, fmt.Errorf("%s: the last line of %q is not PATH sha256:DIGEST MIB", script, output)
	}
	return built{string(words[1]), string(words[2]), string(words[3])}, nil
}

// copyOfTheTree is the checkout in another folder, with the same changes and the same program.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "another folder")
	said, err := exec.Command("bash", "-euc", `
		git clone --quiet --shared --no-checkout "$1" "$2"
		git -C "$2" reset --quiet
		cd "$1"
		git ls-files -coz --exclude-standard | while IFS= read -rd "" file; do [[ ! -e $file && ! -L $file ]] || printf "%s\0" "$file"; done |
			tar --create --null --files-from - | tar --extract --directory "$2"
		mkdir -p "$2/build/release"
		cp build/release/quartermaster "$2/build/release/"`, "copy", kit.Root(), folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return folder
}

func theImage(t *testing.T) *archive {
	t.Helper()
	image, err := readArchive(first.file)
	must(t, err)
	return image
}

func TestTwoBuildsInTwoFoldersGiveTheSameBytes(t *testing.T) {
	began := time.Now()
	second, err := build(copyOfTheTree(t))
	must(t, err)
	t.Logf("copied and built in %.1f s: %s", time.Since(began).Seconds(), second)
	for _, suffix := range []string{".tar", ".spdx.json"} {
		one, err := os.ReadFile(strings.TrimSuffix(first.file, ".tar") + suffix)
		must(t, err)
		other, err := os.ReadFile(strings.TrimSuffix(second.file, ".tar") + suffix)
		must(t, err)
		if !bytes.Equal(one, other) {
			t.Errorf("%s: %d bytes with %s, and %d bytes with %s in another folder", suffix, len(one), digestOf(one), len(other), digestOf(other))
		}
	}
	if image := theImage(t); image.digest != first.digest || first.digest != second.digest {
		t.Errorf("the manifest is %s, and the builds say %s and %s", image.digest, first.digest, second.digest)
	}
	if info, err := os.Stat(first.file); err != nil || fmt.Sprint((info.Size()+1<<20-1)>>20) != first.size {
		t.Errorf("the build says %s MiB: %v", first.size, err)
	}
}

func TestTheConfigIsWhatTheChartExpects(t *testing.T) {
	image := theImage(t)
	said := image.config.Config
	if said.User != "65532:65532" || !slices.Equal(said.Entrypoint, []string{"/quartermaster"}) || image.config.Architecture != "amd64" || image.config.OS != "linux" {
		t.Errorf("%+v", image.config)
	}
	version, err := os.ReadFile(filepath.Join(kit.Root(), "VERSION"))
	must(t, err)
	if image.tag != strings.TrimSpace(string(version)) {
		t.Errorf("the tag is %q; the chart's default is the content of VERSION, %q", image.tag, version)
	}
	for key, pattern := range map[string]string{"title": "^quartermaster$", "version": "^" + regexp.QuoteMeta(image.tag) + "$", "revision": "^[0-9a-f]{40}(-dirty)?$",
		"licenses": "^Apache-2.0$", "created": "^" + regexp.QuoteMeta(image.config.Created) + "$"} {
		key = "org.opencontainers.image." + key
		if !regexp.MustCompile(pattern).MatchString(said.Labels[key]) || image.manifest.Annotations[key] != said.Labels[key] {
			t.Errorf("label %s is %q, the annotation %q", key, said.Labels[key], image.manifest.Annotations[key])
		}
	}
	// People with an engine get the same from the Dockerfile.
	text, err := os.ReadFile(filepath.Join(kit.Root(), "image/Dockerfile"))
	must(t, err)
	entrypoint, _ := json.Marshal(said.Entrypoint)
	for _, line := range []string{"USER " + said.User, "ENTRYPOINT " + string(entrypoint), "WORKDIR " + said.WorkingDir, "ENV " + strings.Join(said.Env, " "), "FROM scratch"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("image/Dockerfile has no line %q", line)
		}
	}
}

func TestNothingInItHelpsAnIntruder(t *testing.T) {
	image, total := theImage(t), 0
	created, err := time.Parse(time.RFC3339, image.config.Created)
	must(t, err)
	previous := ""
	for _, file := range image.files {
		name := "/" + strings.TrimSuffix(file.Name, "/")
		total += len(file.content)
		if file.Uid != 0 || file.Gid != 0 || file.Uname != "" || file.Gname != "" || !file.ModTime.Equal(created) {
			t.Errorf("%s is of %d:%d (%s:%s) and %s", name, file.Uid, file.Gid, file.Uname, file.Gname, file.ModTime)
		}
		switch file.Typeflag {
		case tar.TypeReg:
			if mode := file.Mode; mode != 0o644 && mode != 0o755 {
				t.Errorf("file %s has the mode %o", name, mode)
			}
			if (file.Mode&0o111 != 0) != (name == "/quartermaster" || strings.HasPrefix(path.Base(name), "ld-linux-")) {
				t.Errorf("%s has the mode %o; only the program and the loader run", name, file.Mode)
			}
		case tar.TypeDir:
			if file.Mode != 0o755 && (name != "/tmp" || file.Mode != 0o1777) {
				t.Errorf("folder %s has the mode %o", name, file.Mode)
			}
		case tar.TypeSymlink:
			target := file.Linkname
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(name), target)
			}
			if _, there := image.byName[strings.Replace(target, "/lib/", "/usr/lib/", 1)]; !there && image.byName[target].Header == nil {
				t.Errorf("link %s leads to %s, which is not there", name, file.Linkname)
			}
		default:
			t.Errorf("%s is neither file, folder nor link", name)
		}
		for _, tool := range []string{"sh", "bash", "dash", "busybox", "ash", "apt", "apt-get", "dpkg", "su", "sudo"} {
			if path.Base(name) == tool && file.Typeflag != tar.TypeDir {
				t.Errorf("there is %s", name)
			}
		}
		if strings.Compare(previous, file.Name) > 0 && path.Dir(previous) == path.Dir(file.Name) {
			t.Errorf("%s comes after %s", file.Name, previous)
		}
		previous = file.Name
	}
	for _, name := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/tmp"} {
		if _, there := image.byName[name]; !there {
			t.Errorf("there is no %s", name)
		}
	}
	t.Logf("%.1f MiB unpacked, %d files, folders and links", float64(total)/(1<<20), len(image.files))
	if total > limitMiB<<20 {
		t.Errorf("it is larger than %d MiB", limitMiB)
	}
}

// ofDriver is what NVIDIA's library and its control program of MPS name to the loader, next to what the program needs.
var ofDriver = []string{"libdl.so.2", "libpthread.so.0", "librt.so.1"}

// Every library that something needs is there, and nothing needs no library that is there.
func TestItHasTheLibrariesThatItNeeds(t *testing.T) {
	image := theImage(t)
	find := func(name string) string { // the file that the loader opens
		file, there := image.byName[libraries+name]
		if there && file.Typeflag == tar.TypeSymlink {
			return libraries + file.Linkname
		}
		return libraries + name
	}
	needed := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if needed[name] {
			return
		}
		needed[name] = true
		file, there := image.byName[name]
		if !there {
			t.Errorf("there is no %s", name)
			return
		}
		program, err := elf.NewFile(bytes.NewReader(file.content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if program.Section(".debug_info") != nil || name == "/quartermaster" && program.Section(".symtab") != nil {
			t.Errorf("%s is not stripped", name)
		}
		wanted, err := program.ImportedLibraries()
		must(t, err)
		for _, library := range wanted {
			visit(find(library))
		}
	}
	visit("/quartermaster")
	for _, library := range ofDriver {
		visit(find(library))
	}
	for name, file := range image.byName {
		if strings.HasPrefix(name, libraries) && file.Typeflag == tar.TypeReg && !needed[name] {
			t.Errorf("nothing needs %s", name)
		}
	}
	t.Logf("%d libraries", len(needed)-1)
}

// The list next to the archive and in the image names every file but itself, with what is in it, and every package.
func TestTheListNamesEveryFileAndItsPackage(t *testing.T) {
	image := theImage(t)
	text, err := os.ReadFile(strings.TrimSuffix(first.file, ".tar") + ".spdx.json")
	must(t, err)
	if !bytes.Equal(text, image.byName[bill].content) {
		t.Error("the list in the image is another than the one next to the archive")
	}
	var list struct {
		SpdxVersion string
		Packages    []struct{ SPDXID, Name, VersionInfo, LicenseDeclared string }
		Files       []struct {
			SPDXID, FileName string
			Checksums        []struct{ Algorithm, ChecksumValue string }
		}
		Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string }
	}
	must(t, json.Unmarshal(text, &list))
	if list.SpdxVersion != "SPDX-2.3" {
		t.Errorf("it is %q", list.SpdxVersion)
	}
	packages, source := map[string]string{}, map[string]string{}
	for _, known := range list.Packages {
		packages[known.SPDXID] = known.Name + " " + known.VersionInfo
	}
	for _, relation := range list.Relationships {
		if relation.RelationshipType == "GENERATED_FROM" {
			source[relation.SpdxElementID] = packages[relation.RelatedSpdxElement]
		}
	}
	listed := map[string]bool{bill: true}
	for _, file := range list.Files {
		name := strings.TrimPrefix(file.FileName, ".")
		listed[name] = true
		content := image.byName[name].content
		sums := map[string]string{"SHA1": fmt.Sprintf("%x", sha1.Sum(content)), "SHA256": fmt.Sprintf("%x", sha256.Sum256(content))}
		for _, sum := range file.Checksums {
			if sums[sum.Algorithm] != sum.ChecksumValue {
				t.Errorf("%s: %s is %s, not %s", name, sum.Algorithm, sums[sum.Algorithm], sum.ChecksumValue)
			}
		}
		if len(file.Checksums) != 2 || source[file.SPDXID] == "" {
			t.Errorf("%s has %d checksums and is from package %q", name, len(file.Checksums), source[file.SPDXID])
		}
		if library := path.Base(name); library == "libcurl.so.4.8.0" && !strings.HasPrefix(source[file.SPDXID], "libcurl4 7.88") {
			t.Errorf("%s is from %s", name, source[file.SPDXID])
		}
	}
	for name, file := range image.byName {
		if file.Typeflag == tar.TypeReg && !listed[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	t.Logf("%d files of %d packages", len(list.Files), len(list.Packages)-1)
}

// The authorities are those of Debian's package. This machine's own may be those of a company.
func TestItTrustsWhomDebianTrusts(t *testing.T) {
	bundle := string(theImage(t).byName["/etc/ssl/certs/ca-certificates.crt"].content)
	if count := strings.Count(bundle, "BEGIN CERTIFICATE"); count < 100 || count != strings.Count(bundle, "\n-----END CERTIFICATE-----\n") {
		t.Errorf("the bundle has %d certificates", count)
	}
	own, _ := filepath.Glob("/usr/local/share/ca-certificates/*.crt")
	for _, file := range own {
		text, err := os.ReadFile(file)
		must(t, err)
		if lines := strings.Split(string(text), "\n"); len(lines) > 2 && strings.Contains(bundle, lines[2]) {
			t.Errorf("the image trusts %s of this machine", file)
		}
	}
}

// In its files and nothing else, which no one may write, the program starts as a user that no file knows.
func TestItRunsAsAnyUserOnAReadOnlyFileSystem(t *testing.T) {
	unpacked := t.TempDir()
	must(t, os.Chmod(unpacked, 0o755))
	image := theImage(t)
	for _, file := range image.files {
		name := filepath.Join(unpacked, file.Name)
		switch file.Typeflag {
		case tar.TypeDir:
			must(t, os.MkdirAll(name, 0o755))
		case tar.TypeSymlink:
			must(t, os.Symlink(file.Linkname, name))
		default:
			must(t, os.WriteFile(name, file.content, os.FileMode(file.Mode)))
		}
	}
	said, err := exec.Command("unshare", "--mount", "bash", "-euc", `
		mount --bind "$1" "$1"
		mount -o remount,bind,ro "$1"
		if touch "$1/tmp/file" 2>/dev/null; then echo "not read-only"; exit 1; fi
		exec chroot --userspec=12345:12345 "$1" /quartermaster version`, "run", unpacked).CombinedOutput()
	if want := "quartermaster " + image.tag + " "; err != nil || !strings.HasPrefix(string(said), want) {
		t.Errorf("it says %q: %v", said, err)
	}
}

func TestWhatCannotBeMadeIsSaidInOneLine(t *testing.T) {
	folder := copyOfTheTree(t)
	must(t, os.Remove(filepath.Join(folder, "build/release/quartermaster")))
	foreign := `printf 'ID=ubuntu\nVERSION_ID=24.04\n' >"$0/os-release"; mount --bind "$0/os-release" /etc/os-release; image/build.sh`
	for command, want := range map[string]string{
		"image/build.sh --arch i386":   "2 image: --arch 'i386' cannot be built; allowed are amd64 and arm64",
		"image/build.sh --size small":  "2 image: unknown argument '--size'",
		"image/build.sh":               "1 image: no program build/release/quartermaster: build it with ./dev build release quartermaster",
		"./dev image --arch=riscv64":   "2 image: --arch 'riscv64' cannot be built; allowed are amd64 and arm64",
		foreign:                        "1 image: this machine runs 'ubuntu 24.04', and the libraries come from packages of Debian 12",
		"image/build.sh --check; true": "0 ",
	} {
		run := exec.Command("unshare", "--mount", "bash", "-c", command, folder)
		run.Dir = folder
		said, _ := run.CombinedOutput()
		is := fmt.Sprintf("%d %s", run.ProcessState.ExitCode(), said)
		if !strings.HasPrefix(is, want) || strings.Count(is, "\n") > 1 {
			t.Errorf("%s: %q, not %q", command, is, want)
		}
	}
}
