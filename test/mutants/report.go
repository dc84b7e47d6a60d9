package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// result is one row of the table.
type result struct {
	ID      string  `json:"id"`
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Change  string  `json:"change"`
	Breaks  string  `json:"breaks,omitempty"`
	Verdict verdict `json:"verdict"`
	Stage   stage   `json:"stage,omitempty"`
	Test    string  `json:"test,omitempty"`
	Seconds float64 `json:"seconds"`
	Log     string  `json:"log"`
}

type report struct {
	With    stage    `json:"with"`
	Seed    int64    `json:"seed,omitempty"`
	Mutants []result `json:"mutants"`

	path  string
	total int
}

func (report *report) count(verdict verdict) int {
	count := 0
	for _, result := range report.Mutants {
		if result.Verdict == verdict {
			count++
		}
	}
	return count
}
func (report *report) seen() int   { return report.count(seen) }
func (report *report) judged() int { return len(report.Mutants) - report.count(noCompile) }

// add keeps the result and says how long the rest will take, by what the others took.
func (report *report) add(result result) {
	report.Mutants = append(report.Mutants, result)
	left := ""
	if judged := report.judged(); judged > 0 && judged < report.total {
		seconds := 0.0
		for _, row := range report.Mutants {
			seconds += row.Seconds
		}
		rest := time.Duration(seconds / float64(judged) * float64(report.total-judged) * float64(time.Second))
		left = fmt.Sprintf("; about %.0f min left", max(rest.Minutes(), 1))
	}
	say("[%d/%d] %s: %s in %.0f s%s", report.judged(), report.total, result.ID, result.outcome(), result.Seconds, left)
	report.write() // so that a run that is stopped leaves what it found
}

func (result result) outcome() string {
	switch result.Verdict {
	case seen:
		return fmt.Sprintf("%s (%s)", result.Test, result.Stage)
	case notOfFault:
		return fmt.Sprintf("UNCLEAR: %s fails without the fault, too", result.Test)
	}
	return string(result.Verdict)
}

func (report *report) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MUTANT\tPLACE\tCHANGE\tSEEN BY\tSECONDS")
	for _, result := range report.Mutants {
		fmt.Fprintf(table, "%s\t%s:%d\t%s\t%s\t%.0f\n", result.ID, result.File, result.Line, result.Change, result.outcome(), result.Seconds)
	}
	table.Flush()
	fmt.Fprintf(out, "%d of %d mutants were seen", report.seen(), report.judged())
	if count := report.count(noCompile); count > 0 {
		fmt.Fprintf(out, "; %d did not compile", count)
	}
	fmt.Fprintln(out)
	for _, result := range report.Mutants {
		if result.Verdict == notSeen || result.Verdict == notOfFault {
			fmt.Fprintf(out, "%s: %s: %s\n", result.Verdict, result.ID, or(result.Breaks, result.Change))
		}
	}
}

func (report *report) write() error {
	if report.path == "" {
		return nil
	}
	if report.Mutants == nil {
		report.Mutants = []result{}
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(report.path, append(data, '\n'), 0o644)
}

var token = regexp.MustCompile(`\w+|\s+|[^\w\s]+`)

// changeOf is the change in one line: the words that differ.
func changeOf(mutant mutant) string {
	before, after := token.FindAllString(mutant.Old, -1), token.FindAllString(mutant.New, -1)
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	old, now := short(strings.Join(before, "")), short(strings.Join(after, ""))
	switch {
	case now == "":
		return "without " + old
	case old == "":
		return "with " + now
	}
	return old + " -> " + now
}

func short(text string) string {
	const most = 60
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}
