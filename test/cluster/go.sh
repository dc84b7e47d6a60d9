# go.sh: puts the right Go on the PATH and sets what every `go` command of the project takes, to be sourced. With one set of flags a package
# is compiled once, for the programs of the test cluster and for the tests.
go_wanted=1.26.8  # fetched as a Go module when `go` on the PATH is older than go_least
go_least=1.26.6

export GOWORK=off CGO_ENABLED=0 GOTOOLCHAIN=local
# No debugging data (DWARF): it takes a fifth of the compiler's time. Stack traces do not need it.
go_flags="-trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags=-s"
[[ ${GOFLAGS:-} == *"$go_flags" ]] || export GOFLAGS="${GOFLAGS:+$GOFLAGS }$go_flags"

# find_go: Debian 12's Go 1.19 cannot read `toolchain` lines, but it can download a module: the toolchain is one. It is copied out of the
# module cache, because Go before 1.21 unpacks it without the execute bits.
find_go() {
  local have arch dir cache=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster
  local home=$cache/go-$go_wanted
  have=$(cd / && go env GOVERSION 2>/dev/null) || true
  [[ -z $have || $(printf '%s\n' "$go_least" "${have#go}" | sort -V | head -n1) != "$go_least" ]] || return 0
  if [[ ! -x $home/bin/go ]]; then
    [[ -n $have ]] || { echo "no 'go' on the PATH: install Go of any version from 1.19 on (Debian: apt-get install golang-go) and run this again" >&2; return 1; }
    case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) echo "no Go toolchain known for $(uname -m)" >&2; return 1 ;; esac
    echo "$have is older than $go_least: fetching Go $go_wanted as a module, about 1 min" >&2
    mkdir -p "$cache"
    dir=$(cd / && GO111MODULE=on GOFLAGS=-mod=mod go mod download -json "golang.org/toolchain@v0.0.1-go$go_wanted.linux-$arch" |
          sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    [[ -n $dir ]] || { echo "Go $go_wanted could not be fetched (see above)" >&2; return 1; }
    rm -rf "$home.new"; cp -r "$dir" "$home.new"; chmod -R u+w "$home.new"
    chmod +x "$home.new"/bin/* "$home.new"/pkg/tool/*/*
    rm -rf "$home"; mv "$home.new" "$home"
  fi
  export PATH=$home/bin:$PATH
  unset GOROOT # of the older one
}
find_go || exit 1
