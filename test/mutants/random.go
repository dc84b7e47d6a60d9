package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// site is a place where a random mutant may stand.
type site struct {
	file     string
	offset   int
	old, new string
}

var swapped = map[string]string{
	"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&",
}

var (
	// With a blank on both sides: then it is no template bracket and no reference.
	operators = regexp.MustCompile(` (==|!=|<=|>=|<|>|&&|\|\|)[ \n]`)
	negations = regexp.MustCompile(`[ (!](!)[A-Za-z_(]`)
	// A whole line: "  queue_.forget(key);".
	calls = regexp.MustCompile(`(?m)^[ \t]+((?:co_await )?[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|->|::)[A-Za-z_][A-Za-z0-9_]*)*\([^\n]*\);)$`)
	// No one relies on a log line or on reserved memory.
	unheard = regexp.MustCompile(`(^|::)log::|\.reserve\(|^static_assert\(`)
)

// allSites finds the sites of all product .cpp files that git knows.
func allSites(ctx context.Context, root string) ([]site, error) {
	list, err := git(ctx, root, nil, "ls-files", "*.cpp")
	if err != nil {
		return nil, err
	}
	var out []site
	for _, file := range strings.Fields(list) {
		folder, _, _ := strings.Cut(file, "/")
		if !slices.Contains(productFolders, folder) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		out = append(out, sitesIn(file, string(content))...)
	}
	return out, nil
}

func sitesIn(file, content string) []site {
	code := blanked(content)
	var out []site
	for _, match := range matches(operators, code) {
		text := code[match[0]:match[1]]
		out = append(out, site{file, match[0], text, swapped[text]})
	}
	for _, match := range matches(negations, code) {
		out = append(out, site{file, match[0], "!", ""})
	}
	for _, match := range calls.FindAllStringSubmatchIndex(code, -1) {
		text := content[match[2]:match[3]]
		if balanced(code[match[2]:match[3]]) && isStatement(code[:match[0]]) && !unheard.MatchString(text) {
			out = append(out, site{file, match[2], text, "(void)0;"})
		}
	}
	slices.SortFunc(out, func(left, right site) int { return left.offset - right.offset })
	return out
}

// matches returns where the first groups of all matches stand, also of those that overlap by a blank.
func matches(pattern *regexp.Regexp, code string) [][2]int {
	var out [][2]int
	for start := 0; ; {
		match := pattern.FindStringSubmatchIndex(code[start:])
		if match == nil {
			return out
		}
		out = append(out, [2]int{start + match[2], start + match[3]})
		start += match[3]
	}
}

func balanced(text string) bool { return strings.Count(text, "(") == strings.Count(text, ")") }

// isStatement: what comes before ends a statement or begins a block, so the next line is no part of an expression.
func isStatement(before string) bool {
	before = strings.TrimRight(before, " \t\n")
	return before != "" && strings.ContainsAny(before[len(before)-1:], ";{})")
}

// blanked returns the code with blanks in place of comments, texts, characters and lines of the preprocessor. Offsets stay.
func blanked(content string) string {
	out := []byte(content)
	blank := func(begin, end int) {
		for i := begin; i < min(end, len(out)); i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	after := func(begin int, text string) int {
		if index := strings.Index(content[begin:], text); index >= 0 {
			return begin + index + len(text)
		}
		return len(content)
	}
	for i := 0; i < len(content); {
		rest := content[i:]
		end := 0
		switch {
		case strings.HasPrefix(rest, "//"):
			end = after(i, "\n") - 1
		case strings.HasPrefix(rest, "/*"):
			end = after(i+2, "*/")
		case strings.HasPrefix(rest, `R"`):
			delimiter, _, _ := strings.Cut(rest[2:], "(")
			end = after(i, ")"+delimiter+`"`)
		case rest[0] == '"', rest[0] == '\'' && !isDigitSeparator(content, i):
			end = i + 1
			for end < len(content) && content[end] != rest[0] {
				if content[end] == '\\' {
					end++
				}
				end++
			}
			end++
		case rest[0] == '#' && strings.TrimLeft(content[strings.LastIndex(content[:i], "\n")+1:i], " \t") == "":
			end = after(i, "\n") - 1
		}
		if end <= i {
			i++
			continue
		}
		blank(i, end)
		i = end
	}
	return string(out)
}

// isDigitSeparator: 1'000'000.
func isDigitSeparator(content string, index int) bool {
	return index > 0 && index+1 < len(content) && strings.ContainsRune("0123456789abcdefABCDEF", rune(content[index-1])) &&
		strings.ContainsRune("0123456789abcdefABCDEF", rune(content[index+1]))
}

// draw puts the sites in a random order, which the seed alone decides.
func draw(sites []site, seed int64) []mutant {
	var out []mutant
	for number, index := range rand.New(rand.NewSource(seed)).Perm(len(sites)) {
		site := sites[index]
		out = append(out, mutant{ID: fmt.Sprintf("random-%d", number+1), File: site.file, Old: site.old, New: site.new, offset: site.offset})
	}
	return out
}
