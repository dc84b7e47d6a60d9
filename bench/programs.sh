# programs.sh: sourced by the run.sh of each bench. It goes to the repository's root and finds Go.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. test/cluster/go.sh

# build FOLDER[=PROGRAM]...: Go programs, from bench/FOLDER to build/bench-go/PROGRAM. Benches that are built at the same time take turns.
build() {
  local pair
  mkdir -p build/bench-go
  exec 9>build/bench-go/.lock
  flock 9
  for pair; do (cd bench && go build -o "../build/bench-go/${pair#*=}" "./${pair%=*}"); done
  exec 9>&-
}
