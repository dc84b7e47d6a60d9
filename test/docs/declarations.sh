# What docs/declarations.md assumes: the operator, which has judged what the first command declares.
# shellcheck shell=bash
clean
installed '{}'
