package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

type entry struct {
	mode    int64
	content []byte
}

func read(t *testing.T, archive []byte) (names []string, out map[string]entry) {
	t.Helper()
	out = map[string]entry{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if err == io.EOF {
			return names, out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() > 0 {
			t.Errorf("%s belongs to %d:%d and is of %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		names = append(names, header.Name)
		out[header.Name] = entry{header.Mode, content}
	}
}

func imageOf(t *testing.T, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := image(append([]string{out}, args...)); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func script(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Every digest and size is that of the bytes it names, from the index down to the layer.
func TestAnArchiveHoldsTogether(t *testing.T) {
	program := script(t)
	archive := imageOf(t, "example.test/a:1", program+":/opt/bin/a", "--", "/opt/bin/a", "-v")
	_, files := read(t, archive)
	follow := func(of map[string]any) (content []byte) {
		t.Helper()
		content = files["blobs/sha256/"+strings.TrimPrefix(of["digest"].(string), "sha256:")].content
		if fmt.Sprintf("sha256:%x", sha256.Sum256(content)) != of["digest"] || float64(len(content)) != of["size"] {
			t.Errorf("%v is %d bytes of something else", of, len(content))
		}
		return content
	}
	object := func(text []byte) (out map[string]any) {
		t.Helper()
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return out
	}
	index := object(files["index.json"].content)["manifests"].([]any)[0].(map[string]any)
	if name := index["annotations"].(map[string]any)["io.containerd.image.name"]; name != "example.test/a:1" {
		t.Errorf("its name is %v", name)
	}
	manifest := object(follow(index))
	config := object(follow(manifest["config"].(map[string]any)))
	layer := manifest["layers"].([]any)[0].(map[string]any)
	if ids := config["rootfs"].(map[string]any)["diff_ids"]; !reflect.DeepEqual(ids, []any{layer["digest"]}) {
		t.Errorf("the layer is %v, the config says %v", layer["digest"], ids)
	}
	if command := config["config"].(map[string]any)["Entrypoint"]; !reflect.DeepEqual(command, []any{"/opt/bin/a", "-v"}) {
		t.Errorf("its command is %v", command)
	}
	names, in := read(t, follow(layer))
	if !reflect.DeepEqual(names, []string{"tmp/", "opt/", "opt/bin/", "opt/bin/a"}) {
		t.Errorf("in it are %q", names)
	}
	if a := in["opt/bin/a"]; a.mode != 0o755 || string(a.content) != "#!/bin/true\n" || in["tmp/"].mode != 0o1777 {
		t.Errorf("in it are %v", in)
	}
	if again := imageOf(t, "example.test/a:1", program+":/opt/bin/a", "--", "/opt/bin/a", "-v"); !bytes.Equal(archive, again) {
		t.Error("other bytes from the same files")
	}
}

func TestVariablesOfAnImage(t *testing.T) {
	_, files := read(t, imageOf(t, "example.test/a:1", "CARDS=all", script(t)+":/a"))
	for name, file := range files {
		if strings.Contains(string(file.content), `"Env":["PATH=/usr/local/bin:/usr/bin:/bin","CARDS=all"]`) {
			return
		}
		t.Log(name)
	}
	t.Error("its environment is not in it")
}

func TestTheLibrariesOfAProgramComeWithIt(t *testing.T) {
	libraries, err := librariesOf("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, library := range libraries {
		found += library.to + " "
	}
	if !strings.Contains(found, "/libc.so.6 ") || !strings.Contains(found, "/ld-linux") {
		t.Errorf("/bin/sh needs %q", found)
	}
	if none, err := librariesOf(script(t)); len(none) != 0 || err != nil {
		t.Errorf("a script needs %q: %v", none, err)
	}
	if _, err := librariesOf("/nowhere"); err == nil {
		t.Error("a program that is not there needs nothing")
	}
}

func TestAWrongImageIsRefused(t *testing.T) {
	program := script(t)
	for _, args := range [][]string{{"example.test/a", program + ":/a"}, {"example.test:5000/a", program + ":/a"}, {"example.test/a:1", program},
		{"example.test/a:1", program + ":a"}, {"example.test/a:1", "/nowhere:/a"}} {
		if err := image(append([]string{filepath.Join(t.TempDir(), "image.tar")}, args...)); err == nil {
			t.Errorf("%q is no mistake", args)
		}
	}
}
