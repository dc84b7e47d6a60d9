# go.sh: sets $go, to be sourced. It is the Go on the PATH. Where that is too old to fetch the toolchain a go.mod asks for, it is the one
# that built the control plane, or nothing.
go=go
if ! [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[1-9]|[3-9][0-9]) ]]; then
  go=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster" -maxdepth 3 -path '*/go-1.*/bin/go' 2>/dev/null | sort -V | tail -n1)
fi
