#!/usr/bin/env bash
# What a reader may rely on without looking: layout, the one direction of dependency, scripts, headers, names. One line per finding.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=0
finding() { printf 'lint: %s\n' "$*"; bad=1; }
mapfile -t cxx < <(git ls-files -co --exclude-standard '*.cpp' '*.hpp' | while IFS= read -r file; do [[ ! -e $file ]] || echo "$file"; done)

# The arrows of the folders (CMakeLists.txt).
against() {  # against FOLDER FORBIDDEN...: no file of FOLDER includes a FORBIDDEN one
  local folder=$1 forbidden; shift
  forbidden=$(IFS='|'; echo "$*")
  local hits; hits=$(grep -rnE "#include [\"<]($forbidden)/" "$folder" --include='*.hpp' --include='*.cpp' 2>/dev/null) || return 0
  while IFS= read -r hit; do finding "include against the arrow: $hit"; done <<<"$hits"
}
against text kube controller quota api scheduler_config reconcilers agent cli
against kube controller quota api scheduler_config reconcilers agent cli
against controller quota api scheduler_config reconcilers agent cli
against quota text kube controller api scheduler_config reconcilers agent cli
against api scheduler_config reconcilers agent cli
against scheduler_config reconcilers agent cli
against reconcilers agent cli
against agent reconcilers cli

# The folders inside a folder, level by level: each includes only those of levels before its own.
ordered() {  # ordered FOLDER LEVEL...
  local root=$1 level inner rank=0 file line include from to; shift
  local -A place=()
  for level in "$@"; do
    rank=$((rank + 1))
    for inner in $level; do place[$inner]=$rank; done
  done
  for inner in "$root"/*/; do
    inner=$(basename "$inner")
    [ -n "${place[$inner]:-}" ] || finding "$root/$inner has no place in the order of folders (test/lint.sh)"
  done
  while IFS=: read -r file line include; do
    from=${file#"$root"/}; to=${include#*"$root"/}
    [[ $from == */* ]] || continue
    from=${from%%/*}; to=${to%%/*}
    [ "$from" = "$to" ] || [ "${place[$to]:-0}" -lt "${place[$from]:-0}" ] ||
      finding "include against the order of folders: $file:$line: $root/$to"
  done < <(grep -rnoE "#include \"$root/[a-z_]+/" "$root" --include='*.hpp' --include='*.cpp')
}
ordered reconcilers "modules quotas" "certificates container_runtime declarations dialects" cuda "admission nodes" "extender views" \
  "plugins usage" "own_scheduler verify"
ordered agent "cards disk grpc" "device_plugin facts kubelet mps static_pod" "allocation container_runtime exporter"
ordered cli "alerts flags" "cluster completion output" views "agent controller lint manual remove version" "explain inspect render" chargeback console \
  "report top verify"

# The engine and the extender name no product: what one of them says and reads is in reconcilers/dialects. Left out are the
# engine's tables of words and the rule by which one plugin chooses.
named=$(grep -rniE 'gpu.?manager|hami|gpushare|aliyun' reconcilers/extender quota --include='*.hpp' --include='*.cpp' |
  grep -vE '^quota/(vocabulary\.cpp|selector\.cpp|resource_keys\.hpp|forecast\.cpp):') || true
while IFS= read -r hit; do [ -z "$hit" ] || finding "a product is named outside reconcilers/dialects: $hit"; done <<<"$named"

unformatted=$(printf '%s\n' "${cxx[@]}" | xargs clang-format-19 --dry-run -Werror 2>&1 | grep -oE '^[^:]+\.(cpp|hpp)' | sort -u) || true
for file in $unformatted; do finding "$file is not in the house layout: ./dev fmt"; done

for file in "${cxx[@]}"; do
  case $file in
    *.hpp)
      [ "$(head -1 "$file")" = "#pragma once" ] || finding "$file does not begin with #pragma once"
      sed -n 2p "$file" | grep -q '^//' || finding "$file does not say on line 2 what it is for" ;;
  esac
done

mapfile -t scripts < <({ git ls-files -co --exclude-standard '*.sh'; echo dev; echo .ci/run; } | sort -u)
# Sourced files (test/cluster/*.sh) share variables, which one file alone cannot show (SC2034, SC2154).
shellcheck -s bash -S warning -e SC1091,SC2034,SC2154,SC1007 "${scripts[@]}" || bad=1

mapfile -t gomods < <(git ls-files -co --exclude-standard '*.go')
if [ ${#gomods[@]} -gt 0 ] && command -v gofmt >/dev/null; then
  for file in $(gofmt -l "${gomods[@]}"); do finding "$file is not gofmt'd"; done
fi

# Claims in what people read: documents, chart, help texts.
mapfile -t told < <(git ls-files -co --exclude-standard README.md docs charts crds cli | grep -E '\.(md|yaml|tpl|json|txt|cpp|hpp)$')
if ! hits=$(test/forbidden_claims.sh "${told[@]}"); then
  while IFS= read -r hit; do finding "a claim we do not make: $hit"; done <<<"$hits"
fi

# docs/claims.md is what test/claims.sh makes of the names of tests.
test/claims.sh --check || bad=1

# The mutants of the list are faults of what the product is now.
test/mutants/run.sh --check >/dev/null || bad=1

# The tables of docs/performance.md are what the benches wrote into bench/figures.json.
if command -v node >/dev/null; then node test/figures.cjs --check || bad=1; else finding "the figures were not compared: ./dev setup installs node"; fi

# Links between the documents, and from messages, chart and code to their sections.
if command -v node >/dev/null; then
  [ "$(node test/links.cjs test/links_sample.md | grep -c .)" = 4 ] || finding "test/links.cjs does not find the 4 links of test/links_sample.md"
  said=$(node test/links.cjs) || bad=1
  [ -z "$said" ] || sed 's/^/lint: /' <<<"$said"
fi

# The English of the documents (test/prose). Left out: what is not English.
prose_skip=(docs/troubleshooting.zh.md docs/alerts.zh.md)
mapfile -t prose < <(git ls-files -co --exclude-standard '*README.md' ':(glob)docs/*.md' | grep -vxF "$(printf '%s\n' "${prose_skip[@]}")")
if [ -x test/prose/node_modules/.bin/textlint ]; then
  # textlint continues without its rules if it cannot read them, so each run must find the mistakes of the sample.
  said=$(test/prose/node_modules/.bin/textlint --config test/prose/.textlintrc.json --format unix test/prose/sample.md "${prose[@]}" 2>&1) || true
  said=$(sed -e "s#^$PWD/##" -e 's# \[Error/[a-z]*\]$##' <<<"$said")
  [ "$(grep -c '^test/prose/sample.md:' <<<"$said")" = 6 ] || finding "textlint does not find the 6 mistakes of test/prose/sample.md: $said"
  while IFS= read -r hit; do finding "$hit"; done < <(grep -E '^[^:]+\.md:[0-9]' <<<"$said" | grep -v '^test/prose/sample.md:')
else
  finding "the documents were not read: ./dev setup installs textlint"
fi

# The same words in what people read outside Markdown. Left out: test data, whose sentences are those of the program.
mapfile -t texts < <(git ls-files -co --exclude-standard dev .clang-tidy '*.sh' '*CMakeLists.txt' crds charts test/try test/e2e |
  grep -E '(^dev|^\.clang-tidy|\.(sh|yaml|json|tpl|txt))$' | grep -v '^charts/quartermaster/files/')  # crds/ has links to those
if [ -d test/prose/node_modules/js-yaml ]; then
  said=$(node test/prose/words.cjs test/prose/sample.yaml) || true
  [ "$(grep -c '^test/prose/sample.yaml:' <<<"$said")" = 3 ] || finding "test/prose/words.cjs does not find the 3 mistakes of test/prose/sample.yaml: $said"
  if ! said=$(node test/prose/words.cjs "${texts[@]}"); then
    while IFS= read -r hit; do finding "$hit"; done <<<"$said"
  fi
else
  finding "the chart and the scripts were not read: ./dev setup installs what reads them"
fi

# Names, lengths, and the English of comments and messages. test/names/pending.txt has the files with messages that the chart's
# admission policies repeat word for word; it only shrinks.
if [ -d test/names/node_modules ]; then
  said=$(node test/names/check.cjs test/names/sample.cxx) || true
  [ "$(grep -c . <<<"$said")" = 11 ] || finding "test/names/check.cjs does not find the 11 mistakes of test/names/sample.cxx: $said"
  said=$(node test/names/check.cjs --pending test/names/pending.txt "${cxx[@]}" text/messages.en.yaml) || bad=1
  [ -z "$said" ] || sed 's/^/lint: /' <<<"$said"
  # Assertions on sentences. test/names/sentences.txt has those that are left; it only shrinks.
  said=$(node test/names/sentences.cjs test/names/sentences.cxx) || true
  [ "$(grep -c . <<<"$said")" = 2 ] || finding "test/names/sentences.cjs does not find the 2 sentences of test/names/sentences.cxx: $said"
  mapfile -t tests < <(printf '%s\n' "${cxx[@]}" | grep '^test/.*\.cpp$')
  said=$(node test/names/sentences.cjs --pending test/names/sentences.txt "${tests[@]}") || bad=1
  [ -z "$said" ] || sed 's/^/lint: /' <<<"$said"
else
  finding "the names were not read: ./dev setup installs what reads them"
fi

if [ "${1:-}" = --tidy ]; then
  [ -f build/dev/compile_commands.json ] || ./dev build dev
  printf '%s\n' "${cxx[@]}" | grep -E '^(text|kube|controller|quota|api|scheduler_config|reconcilers|agent|cli)/.*\.cpp$' | grep -v impl.cpp |
    xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/dev --quiet 2>/dev/null || { finding "clang-tidy found defects, listed above"; }
fi
[ $bad -eq 0 ] && echo "lint: ${#cxx[@]} C++ files, ${#scripts[@]} scripts, ${#gomods[@]} Go files: clean"
exit $bad
