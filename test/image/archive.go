package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// entry of a tar archive.
type entry struct {
	*tar.Header
	content []byte
}

// archive is an OCI image archive, read as a registry would: every blob is what its digest says.
// https://github.com/opencontainers/image-spec/blob/main/image-layout.md
type archive struct {
	digest   string // of the manifest
	tag      string
	manifest manifest
	config   config
	files    []entry          // of the only layer, in its order
	byName   map[string]entry // the same, as /etc/passwd
}

type descriptor struct {
	MediaType, Digest string
	Size              int
	Annotations       map[string]string
	Platform          struct{ Architecture, OS string }
}

type manifest struct {
	Config      descriptor
	Layers      []descriptor
	Annotations map[string]string
}

type config struct {
	Architecture, OS, Created string
	Config                    struct {
		User, WorkingDir string
		Entrypoint, Env  []string
		Labels           map[string]string
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

func readTar(source io.Reader) (entries []entry, err error) {
	for reader := tar.NewReader(source); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{header, content})
	}
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

func readArchive(file string) (*archive, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	entries, err := readTar(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	blobs := map[string][]byte{}
	var index struct{ Manifests []descriptor }
	for _, blob := range entries {
		switch name, hex, found := strings.Cut(blob.Name, "blobs/sha256/"); {
		case found && name == "" && hex != "":
			blobs["sha256:"+hex] = blob.content
		case blob.Name == "index.json":
			err = json.Unmarshal(blob.content, &index)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images", file, len(index.Manifests))
	}
	read := func(what descriptor, into any) ([]byte, error) {
		content := blobs[what.Digest]
		if digestOf(content) != what.Digest || len(content) != what.Size {
			return nil, fmt.Errorf("%s: blob %s is %d bytes with the digest %s", file, what.Digest, len(content), digestOf(content))
		}
		if into == nil {
			return content, nil
		}
		return content, json.Unmarshal(content, into)
	}
	image := &archive{digest: index.Manifests[0].Digest, tag: index.Manifests[0].Annotations["org.opencontainers.image.ref.name"], byName: map[string]entry{}}
	if _, err = read(index.Manifests[0], &image.manifest); err != nil {
		return nil, err
	}
	if _, err = read(image.manifest.Config, &image.config); err != nil {
		return nil, err
	}
	if len(image.manifest.Layers) != 1 || len(image.config.RootFS.DiffIDs) != 1 || len(blobs) != 3 {
		return nil, fmt.Errorf("%s has %d layers, %d unpacked and %d blobs", file, len(image.manifest.Layers), len(image.config.RootFS.DiffIDs), len(blobs))
	}
	packed, err := read(image.manifest.Layers[0], nil)
	if err != nil {
		return nil, err
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	layer, err := io.ReadAll(unpacker)
	if err != nil {
		return nil, err
	}
	if digestOf(layer) != image.config.RootFS.DiffIDs[0] {
		return nil, fmt.Errorf("%s: the layer is %s, the config says %s", file, digestOf(layer), image.config.RootFS.DiffIDs[0])
	}
	image.files, err = readTar(bytes.NewReader(layer))
	for _, file := range image.files {
		image.byName["/"+strings.TrimSuffix(file.Name, "/")] = file
	}
	return image, err
}
