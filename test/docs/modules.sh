# What docs/modules.md assumes: the operator and a GPU node.
# shellcheck shell=bash
clean
installed '{}'
node gpu-1 t4
