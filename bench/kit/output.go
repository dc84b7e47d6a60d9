package kit

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"quartermaster.io/bench/figures"
)

// recordFile is what docs/performance.md quotes.
const recordFile = "bench/figures.json"

// Output is where the figures of a bench go.
type Output struct {
	json   string
	record bool
}

// Flags are the options that every bench has for it.
func (o *Output) Flags(flags *flag.FlagSet) {
	flags.StringVar(&o.json, "json", "", "write the figures to this file")
	flags.BoolVar(&o.record, "record", false, "write the figures into "+recordFile+", which docs/performance.md quotes; of a whole run alone")
}

// Write the rows where they were asked for. It fails if a figure is missing: then the bench has not done its work. The form is "full" or another
// word for a whole run.
func (o Output) Write(bench, form string, rows []figures.Row) error {
	if err := figures.WriteJSON(o.json, rows); err != nil {
		return err
	}
	if err := figures.Check(rows); err != nil {
		return fmt.Errorf("%s: %w", bench, err)
	}
	if !o.record {
		return nil
	}
	return figures.Record(recordFile, bench, rows, figures.Origin{Machine: figures.Machine{Processor: processor(), Cores: len(Cores)},
		Date: time.Now().Format(time.DateOnly), Commit: commit(), Kubernetes: kubernetesVersion, Form: form})
}

// kubernetesVersion of the last control plane that was started, "1.37.0" for instance; "" where a bench needs none.
var kubernetesVersion string

var modelLine = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	if match := modelLine.FindSubmatch(text); match != nil {
		return strings.TrimSpace(string(match[1]))
	}
	return ""
}

// commit of the tree; "+" says that files differ from it, figures left out.
func commit() string {
	id, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return ""
	}
	changed, _ := exec.Command("git", "status", "--porcelain", "--", ".", ":!"+recordFile, ":!docs/performance.md").Output()
	if len(changed) > 0 {
		return strings.TrimSpace(string(id)) + "+"
	}
	return strings.TrimSpace(string(id))
}
