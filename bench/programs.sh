# programs.sh: sourced by the run.sh of each bench. It goes to the repository's root and finds Go.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. test/cluster/go.sh
[[ -n $go ]] || { echo "run.sh: Go is not on the PATH" >&2; exit 1; }

# build FOLDER[=PROGRAM]...: Go programs, from bench/FOLDER to build/bench-go/PROGRAM.
build() {
  local pair
  mkdir -p build/bench-go
  for pair; do (cd bench && GOWORK=off "$go" build -trimpath -o "../build/bench-go/${pair#*=}" "./${pair%=*}"); done
}
