# What docs/compatibility.md assumes: a node in a mode.
# shellcheck shell=bash
clean
installed '{modules: {pgpu: {enabled: true}}}'
node gpu-1 a100 pgpu
ready gpu-1 pgpu
