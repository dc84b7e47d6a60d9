#!/usr/bin/env bash
# forbidden_claims.sh FILE...: finds claims that this product does not make. One line per hit; exit code 1 if there is one. A line that
# says that something is "not in scope" may name it. `./dev lint` runs it on the documents, the chart and the help texts.
set -euo pipefail
# Isolation: device nodes and cgroups, nothing of the bus. Speed: only what docs/performance.md measured. Cards of other machines: none.
claims='\bIOMMU\b|\bSR-?IOV\b'
claims+='|\b30 ?%? ?(-|–|~|to|and|至|到) ?50 ?(%|％|percent)'
claims+='|(\b3 ?(x|×|times|倍)|三倍|三倍的|\bthree times)( the| 的)? ?QPS|QPS.{0,24}(\b3 ?(x|×|times|倍)|三倍|\bthree times)'
claims+='|\bremote GPUs?\b|\bGPU[- ]over[- ](IP|network|Ethernet)|远程 ?GPU|GPU 远程'
[ $# -gt 0 ] || { echo "usage: forbidden_claims.sh FILE..." >&2; exit 2; }
hits=$(grep -HnEi -- "$claims" "$@" | grep -viE 'not in scope|不在范围' || true)
[ -z "$hits" ] || { printf '%s\n' "$hits"; exit 1; }
