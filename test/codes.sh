#!/usr/bin/env bash
# codes.sh: the unit tests in a build in which every message is its key and parameters (CONTRIBUTING.md, "Words"). A test that fails here compares
# with a sentence. Golden texts are left out: tests with "golden" in their names, and those of quota, which has facts alone and whose tests
# compare them in words. Nearly all of it comes out of ccache.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=(text kube controller scheduler_config reconcilers agent cli)
[ -f build/codes/build.ninja ] || cmake --preset dev -B build/codes -DQM_WORDS=codes >/dev/null
ninja -C build/codes "${programs[@]/%/_test}"
failed=()
for program in "${programs[@]}"; do
  build/codes/"${program}_test" --gtest_brief=1 --gtest_filter="${QM_RUN:-*}-*golden*" || failed+=("$program")
done
[ ${#failed[@]} -eq 0 ] || { echo "with messages as codes failed: ${failed[*]}" >&2; exit 1; }
