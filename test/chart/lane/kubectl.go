package lane

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// ended is how kubectl ends where the program would call exit.
type ended struct {
	message string
	code    int
}

func init() {
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(ended{message, code}) })
}

// inProcess is true of verbs that are the same in this process. `auth` may exit by itself, and `version` knows no version here.
func inProcess(verb string) bool { return verb != "auth" && verb != "version" }

// kubectl runs kubectl's own code, as administrator, because a lane calls it some hundred times. It returns what the program would say
// and its exit code. What comes from the standard input is read from a file: kubectl reads the one of the process.
func (c *Cluster) kubectl(stdin string, arguments []string) (said string, code int) {
	var out bytes.Buffer
	defer func() {
		if end := recover(); end != nil {
			fatal, is := end.(ended)
			if !is {
				panic(end)
			}
			if fatal.message != "" {
				fmt.Fprintln(&out, strings.TrimSuffix(fatal.message, "\n"))
			}
			said, code = out.String(), fatal.code
		}
	}()
	words := make([]string, len(arguments))
	for i, word := range arguments {
		if word == "-" && i > 0 && arguments[i-1] == "-f" {
			file, err := os.CreateTemp("", "stdin-*.yaml")
			if err != nil {
				return err.Error(), 1
			}
			defer os.Remove(file.Name())
			file.WriteString(stdin)
			file.Close()
			word = file.Name()
		}
		words[i] = word
	}
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	kubeconfig := c.Kubeconfig
	flags.KubeConfig = &kubeconfig
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{ConfigFlags: flags, Arguments: append([]string{"kubectl"}, words...),
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &out}})
	command.SetArgs(words)
	command.SetOut(&out)
	command.SetErr(&out)
	if err := command.Execute(); err != nil {
		return out.String(), 1
	}
	return out.String(), 0
}
