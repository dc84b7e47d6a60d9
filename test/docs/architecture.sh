# What docs/architecture.md assumes: nothing. `./dev cluster up` finds the lane's own cluster, and `./dev run` ends once the operator is ready.
# shellcheck shell=bash
clean
