#!/usr/bin/env bash
# codes.sh: the unit tests in a build in which every message is its key and parameters (CONTRIBUTING.md, "Words"). A test that fails here compares
# with a sentence. Left out are tests with "golden" in their names, and quota, which has no words: its tests compare facts. Nearly all of it
# comes out of ccache.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=(text kube controller scheduler_config reconcilers agent cli)
if [ -n "${QM_SLICE:-}" ] && [ "${QM_PARTS:-1}" -gt 1 ]; then  # part QM_SLICE of QM_PARTS (./dev, `slice`)
  part=()
  for ((i = QM_SLICE % QM_PARTS; i < ${#programs[@]}; i += QM_PARTS)); do part+=("${programs[i]}"); done
  programs=("${part[@]}")
fi
[ -f build/codes/build.ninja ] || cmake --preset dev -B build/codes -DQM_WORDS=codes >/dev/null
ninja -C build/codes "${programs[@]/%/_test}"
failed=()
for program in "${programs[@]}"; do
  build/codes/"${program}_test" --gtest_brief=1 --gtest_filter="${QM_RUN:-*}-*golden*" || failed+=("$program")
done
[ ${#failed[@]} -eq 0 ] || { echo "with messages as codes failed: ${failed[*]}" >&2; exit 1; }
