package chart

import (
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/spf13/pflag"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
)

// Render is `helm template NAME CHART [FLAG...]`, in this process, because tests render some hundred times. The library checks values by the
// schema and says what helm says.
func Render(name, folder string, arguments ...string) (string, error) {
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.DryRun, install.ClientOnly, install.Replace, install.ReleaseName = true, true, true, name
	var said values.Options
	var version string
	var apis, files []string
	flags := pflag.NewFlagSet("template", pflag.ContinueOnError)
	flags.StringVarP(&install.Namespace, "namespace", "n", "default", "")
	flags.StringSliceVarP(&said.ValueFiles, "values", "f", nil, "")
	flags.StringArrayVar(&said.Values, "set", nil, "")
	flags.StringVar(&version, "kube-version", "1.37.0", "") // the library's own default is a version of 2020
	flags.StringSliceVarP(&apis, "api-versions", "a", nil, "")
	flags.BoolVar(&install.DisableHooks, "no-hooks", false, "")
	flags.BoolVar(&install.IsUpgrade, "is-upgrade", false, "")
	flags.StringArrayVarP(&files, "show-only", "s", nil, "")
	if err := flags.Parse(arguments); err != nil {
		return "", err
	}
	install.APIVersions = apis
	kube, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return "", err
	}
	install.KubeVersion = kube
	given, err := said.MergeValues(getter.All(cli.New()))
	if err != nil {
		return "", err
	}
	source, err := loader.Load(folder)
	if err != nil {
		return "", err
	}
	release, err := install.Run(source, given)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintln(&out, strings.TrimSpace(release.Manifest))
	if !install.DisableHooks {
		for _, hook := range release.Hooks {
			fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
		}
	}
	if len(files) == 0 {
		return out.String(), nil
	}
	return only(out.String(), files)
}

// only the objects that these templates of the chart make.
func only(manifest string, files []string) (string, error) {
	var out strings.Builder
	for _, file := range files {
		found := false
		for _, text := range strings.Split("\n"+manifest, "\n---\n") {
			source, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "# Source: "), "\n")
			if _, path, _ := strings.Cut(source, "/"); path == file {
				found = true
				fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(text))
			}
		}
		if !found {
			return "", fmt.Errorf("could not find template %s in chart", file)
		}
	}
	return out.String(), nil
}

// The library says by the standard log that it replaces one table of values by another, which the tests do on purpose.
func init() { log.SetOutput(io.Discard) }
