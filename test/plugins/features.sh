#!/usr/bin/env bash
# features.sh [--record]: what GPU Feature Discovery says of each fixture of test/nvml is what recorded/gfd has. `features.sh --help` has
# the details.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")

usage() {
  cat <<'H'
usage: QM_PLUGINS=FOLDER test/plugins/features.sh [--record]
FOLDER has gpu-feature-discovery (README.md). It runs once per fixture, with the stand-in for the card, in a mount namespace. What it writes
for Node Feature Discovery is compared with recorded/gfd, without the time and the name of the machine; --record writes it there. The
stand-in is taken from QM_NVML, else from build/dev/nvml. run.sh calls this script, too.
Exit code 77 and one line: this machine cannot run it.
H
}

skip() { echo "not run: $*"; exit 77; }

record='' inside=''
case ${1:-} in
  --record) record=1 ;;
  --inside) inside=1 ;;
  '') ;;
  --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

if [[ -n $inside ]]; then # in the namespace of one fixture
  mount -n --make-rprivate /
  mount -n -t tmpfs tmpfs /run
  # shellcheck disable=SC2153 # of the caller
  "$root/test/nvml/node.sh" "$FOLDER" "$FOLDER/library" "$FOLDER/smi"
  # It makes a client before it knows that it needs none: no server answers there.
  KUBECONFIG=$FOLDER/kubeconfig "$FOLDER/program" --oneshot --mig-strategy=none --use-node-feature-api=false --output-file="$FOLDER/gfd" >"$FOLDER/log" 2>&1 || { tail -5 "$FOLDER/log"; exit 1; }
  exit 0
fi

program=${QM_PLUGINS:-}/gpu-feature-discovery
nvml=${QM_NVML:-$root/build/dev/nvml}
library=$nvml/libnvidia-ml.so.1 smi=$nvml/nvidia-smi
[[ -x $program ]] || skip "no gpu-feature-discovery in QM_PLUGINS='${QM_PLUGINS:-}'"
[[ -e $library && -e $smi ]] || skip "no stand-in for the card: ./dev build dev nvml_standin nvml_smi"
((EUID == 0)) || skip "not root"
unshare --mount true 2>/dev/null || skip "no right to make namespaces (CAP_SYS_ADMIN)"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$program" "$folder/program"; cp "$library" "$folder/library"; cp "$smi" "$folder/smi"
cp "$root/test/nvml/fixtures/models.json" "$folder/"
cat >"$folder/kubeconfig" <<'Y'
{apiVersion: v1, kind: Config, clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}], contexts: [{name: none, context: {cluster: none}}],
  current-context: none}
Y
failed=0
for fixture in "$root"/test/nvml/fixtures/*.json; do
  name=$(basename "$fixture" .json)
  [[ $name == models || $name == *_lost ]] && continue
  cp "$fixture" "$folder/node.json"
  rm -f "$folder/gfd"
  FOLDER=$folder unshare --mount "$0" --inside || { echo "FAILED: $name: GPU Feature Discovery ends with an error"; failed=1; continue; }
  grep -vE '^nvidia\.com/(gfd\.timestamp|gpu\.machine)=' "$folder/gfd" | sort >"$folder/said"
  file=$here/recorded/gfd/$name.txt
  if [[ -n $record ]]; then cp "$folder/said" "$file"; echo "recorded $name"
  elif diff -u "$file" "$folder/said"; then echo "passed: $name"
  else echo "FAILED: $name: --record writes what it says"; failed=1
  fi
done
exit $failed
