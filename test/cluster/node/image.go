package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"strings"
)

// image writes an archive that `ctr images import` takes: one layer, the same bytes for the same files.
// https://github.com/opencontainers/image-spec/blob/main/image-layout.md
func image(args []string) error {
	var command []string
	for i, arg := range args {
		if arg == "--" {
			args, command = args[:i], args[i+1:]
			break
		}
	}
	if len(args) < 3 {
		wrong("image needs an archive, a name and what is in it")
	}
	out, name := args[0], args[1]
	if _, tag, tagged := strings.Cut(path.Base(name), ":"); !tagged || tag == "" {
		return fmt.Errorf("'%s' has no tag: NAME:TAG", name)
	}
	var files []file
	environment := []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	for _, arg := range args[2:] {
		if variable.MatchString(arg) {
			environment = append(environment, arg)
			continue
		}
		from, to, found := strings.Cut(arg, ":")
		if !found || !path.IsAbs(to) {
			return fmt.Errorf("'%s' is not PROGRAM:PATH with an absolute PATH", arg)
		}
		files = append(files, file{from, to})
		libraries, err := librariesOf(from)
		if err != nil {
			return err
		}
		files = append(files, libraries...)
	}
	if len(files) == 0 {
		return fmt.Errorf("nothing is in '%s'", name)
	}
	if len(command) == 0 {
		command = []string{files[0].to}
	}
	layer, err := layerOf(files)
	if err != nil {
		return err
	}
	archive, err := archiveOf(name, layer, environment, command)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out+".new", archive, 0o644); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

// file of the machine, and where it is in the image.
type file struct{ from, to string }

var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)

var linked = regexp.MustCompile(`(?m)^\s+(?:\S+ => )?(/\S+) \(0x`)

// librariesOf a program, at the same paths; none for a static one.
func librariesOf(program string) (out []file, err error) {
	said, err := exec.Command("ldd", program).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if _, err := os.Stat(program); err != nil {
			return nil, err
		}
		return nil, nil // "not a dynamic executable"
	} else if err != nil {
		return nil, err
	}
	if missing := regexp.MustCompile(`\S+ => not found`).Find(said); missing != nil {
		return nil, fmt.Errorf("%s: %s", program, missing)
	}
	for _, match := range linked.FindAllStringSubmatch(string(said), -1) {
		out = append(out, file{match[1], match[1]})
	}
	return out, nil
}

func layerOf(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	written := map[string]bool{"/": true}
	var folder func(name string, mode int64) error
	folder = func(name string, mode int64) error {
		if written[name] {
			return nil
		}
		written[name] = true
		if err := folder(path.Dir(name), 0o755); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode})
	}
	if err := folder("/tmp", 0o1777); err != nil {
		return nil, err
	}
	for _, f := range files {
		if written[f.to] {
			continue
		}
		written[f.to] = true
		if err := folder(path.Dir(f.to), 0o755); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		if err := add(w, f.to[1:], 0o755, content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func add(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

type object = map[string]any

func archiveOf(name string, layer []byte, environment, command []string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	blob := func(mediaType string, content []byte) (object, error) {
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		err := add(w, "blobs/sha256/"+sum, 0o644, content)
		return object{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(content)}, err
	}
	document := func(mediaType string, content any) (object, error) {
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		return blob(mediaType, text)
	}
	const oci = "application/vnd.oci.image."
	layerIs, err := blob(oci+"layer.v1.tar", layer)
	if err != nil {
		return nil, err
	}
	config, err := document(oci+"config.v1+json", object{"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Env": environment, "Entrypoint": command},
		"rootfs": object{"type": "layers", "diff_ids": []any{layerIs["digest"]}}})
	if err != nil {
		return nil, err
	}
	manifest, err := document(oci+"manifest.v1+json", object{"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": config, "layers": []any{layerIs}})
	if err != nil {
		return nil, err
	}
	manifest["platform"] = object{"architecture": runtime.GOARCH, "os": "linux"}
	manifest["annotations"] = object{"io.containerd.image.name": name}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": []any{manifest}})
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, content string }{{"index.json", string(index)}, {"oci-layout", `{"imageLayoutVersion":"1.0.0"}`}} {
		if err := add(w, f.name, 0o644, []byte(f.content)); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}
