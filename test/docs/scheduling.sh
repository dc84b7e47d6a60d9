# What docs/scheduling.md assumes: a node that shares its cards; the client certificate of the extender lies next to the page's file.
# shellcheck shell=bash
clean
installed '{modules: {vgpu: {enabled: true}}}'
node gpu-1 t4 vgpu
ready gpu-1 vgpu
before 'sed *' 'client_files'
