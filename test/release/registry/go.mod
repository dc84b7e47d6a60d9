// A registry to push to, which keeps all in memory.
module quartermaster.io/test/release/registry

go 1.26.0

require github.com/google/go-containerregistry v0.22.1
