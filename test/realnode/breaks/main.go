// breaks is a kube-scheduler that works until it is given a configuration: then it ends, as one would whose image cannot do what the file
// asks for, which no look at the file tells.
package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

func main() {
	for _, arg := range os.Args {
		if strings.HasPrefix(arg, "--config=") {
			fmt.Fprintln(os.Stderr, "breaks: no configuration is taken here")
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, syscall.Exec("/bin/kube-scheduler", os.Args, os.Environ()))
	os.Exit(1)
}
