# What docs/quotas.md assumes: the operator.
# shellcheck shell=bash
clean
installed '{}'
