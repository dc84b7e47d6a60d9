module quartermaster.io/test/cluster/node

go 1.26.0

require golang.org/x/sys v0.47.0
