package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const listFile = "test/mutants/mutants.txt"

// productFolders have at least one mutant of the list each.
var productFolders = []string{"text", "kube", "controller", "quota", "api", "scheduler_config", "reconcilers", "agent", "cli", "charts", "crds"}

// mutant is one fault: Old, which stands at one place of the file, becomes New.
type mutant struct {
	ID     string
	File   string
	Old    string
	New    string
	Breaks string // for people, in one sentence
	offset int    // of Old in the file; -1 where Old itself says the place
}

// staleError says that the list no longer fits the product.
type staleError struct{ error }

// apply returns the content with the fault, and the line of it.
func (mutant mutant) apply(content string) (string, int, error) {
	offset := mutant.offset
	if offset < 0 {
		switch count := strings.Count(content, mutant.Old); count {
		case 0:
			return "", 0, fmt.Errorf("%s: %s no longer has this text:\n%s\nWrite what the file has now after '-' in %s, or choose another fault",
				mutant.ID, mutant.File, indented(mutant.Old), listFile)
		case 1:
			offset = strings.Index(content, mutant.Old)
		default:
			return "", 0, fmt.Errorf("%s: %s has this text %d times:\n%s\nAdd the line before or after it in %s", mutant.ID, mutant.File, count,
				indented(mutant.Old), listFile)
		}
	}
	if !strings.HasPrefix(content[offset:], mutant.Old) {
		return "", 0, fmt.Errorf("%s: %s has changed meanwhile", mutant.ID, mutant.File)
	}
	line := 1 + strings.Count(content[:offset], "\n")
	return content[:offset] + mutant.New + content[offset+len(mutant.Old):], line, nil
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// readList reads entries that are separated by empty lines:
//
//	id: NAME
//	file: PATH
//	- a line of the old text, verbatim after "- "
//	+ a line of the new text
//	breaks: SENTENCE
func readList(path string) ([]mutant, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []mutant
	var entry mutant
	var before, after []string
	finish := func() {
		if entry.ID != "" || before != nil || after != nil {
			entry.Old, entry.New, entry.offset = strings.Join(before, "\n"), strings.Join(after, "\n"), -1
			out = append(out, entry)
		}
		entry, before, after = mutant{}, nil, nil
	}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			finish()
		case line[0] == '#':
		case line == "-" || strings.HasPrefix(line, "- "):
			before = append(before, strings.TrimPrefix(line[1:], " "))
		case line == "+" || strings.HasPrefix(line, "+ "):
			after = append(after, strings.TrimPrefix(line[1:], " "))
		case key == "id":
			entry.ID = value
		case key == "file":
			entry.File = value
		case key == "breaks":
			entry.Breaks = value
		default:
			return nil, fmt.Errorf("%s:%d: '%s' is not known; a line begins with id:, file:, -, +, breaks: or #", listFile, number, line)
		}
	}
	finish()
	return out, lines.Err()
}

// check says what is wrong with the list: all of it, because someone has to correct all of it.
func check(root string, all []mutant) error {
	var faults []string
	ids, folders := map[string]bool{}, map[string]bool{}
	for _, mutant := range all {
		folder, _, _ := strings.Cut(mutant.File, "/")
		folders[folder] = true
		if mutant.ID == "" || mutant.File == "" || mutant.Old == "" || mutant.Breaks == "" || mutant.Old == mutant.New {
			faults = append(faults, fmt.Sprintf("'%s' needs id, file, an old and a different new text, and breaks", mutant.ID))
			continue
		}
		if ids[mutant.ID] {
			faults = append(faults, mutant.ID+" is there twice")
		}
		ids[mutant.ID] = true
		content, err := os.ReadFile(filepath.Join(root, mutant.File))
		if err == nil {
			_, _, err = mutant.apply(string(content))
		} else {
			err = fmt.Errorf("%s: there is no file %s any more", mutant.ID, mutant.File)
		}
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	for _, folder := range productFolders {
		if !folders[folder] {
			faults = append(faults, "no mutant is in "+folder+"/")
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return staleError{fmt.Errorf("%s does not fit the product:\n%s", listFile, strings.Join(faults, "\n"))}
}
