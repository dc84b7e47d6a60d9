package main

import (
	"regexp"
	"strings"
)

// output reads what tests print, line by line, and finds the first that failed: of GoogleTest, of `go test`, or of ctest, which runs both.
type output struct {
	byCTest bool   // then only the tests of a failed entry count
	entry   string // of ctest, the first that failed
	failed  string // the first test that failed
	running string // the last that began and has not ended
}

var (
	failedEntry = regexp.MustCompile(`^\s*\d+/\d+ Test\s+#\d+: (\S+) .*\*\*\*(?:Failed|Timeout|Exception)`)
	failedTest  = regexp.MustCompile(`^\s*(?:\[  FAILED  \]|--- FAIL:) ([^\s,]+)`)
	begunTest   = regexp.MustCompile(`^\s*(?:\[ RUN      \]|=== RUN  ) (\S+)`)
	passedTest  = regexp.MustCompile(`^\s*(?:\[       OK \]|\[  SKIPPED \]|--- PASS:|--- SKIP:) (\S+)`)
)

func (output *output) read(line string) {
	if match := failedEntry.FindStringSubmatch(line); match != nil && output.entry == "" {
		output.entry = match[1]
		return
	}
	if output.failed != "" || (output.byCTest && output.entry == "") {
		return
	}
	if match := failedTest.FindStringSubmatch(line); match != nil {
		output.failed = match[1]
	} else if match := begunTest.FindStringSubmatch(line); match != nil {
		output.running = match[1]
	} else if match := passedTest.FindStringSubmatch(line); match != nil && match[1] == output.running {
		output.running = ""
	}
}

// test is the name for people; empty where no test is known to have failed. `end` says how a test ended that says nothing of itself.
func (output *output) test(end string) string {
	inner := output.failed
	if inner == "" && output.running != "" {
		inner = output.running + " " + end
	}
	if output.entry == "" {
		return inner
	}
	if strings.HasSuffix(output.entry, inner) { // ctest may have an entry per test
		return output.entry
	}
	return output.entry + ": " + inner
}
