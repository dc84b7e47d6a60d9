package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quartermaster.io/test/repository"
)

func TestTheListFitsTheProduct(t *testing.T) {
	root := repository.Root()
	all, err := readList(filepath.Join(root, listFile))
	if err == nil {
		err = check(root, all)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAMutantThatNoLongerFitsIsNamedWithWhatToDo(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.cpp"), []byte("one\ntwo\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := check(root, []mutant{
		{ID: "gone", File: "a.cpp", Old: "three", Breaks: "It is gone.", offset: -1},
		{ID: "twice", File: "a.cpp", Old: "two", Breaks: "It is there twice.", offset: -1},
		{ID: "no-file", File: "b.cpp", Old: "two", Breaks: "There is no file.", offset: -1},
		{ID: "same", File: "a.cpp", Old: "one", New: "one", Breaks: "It changes nothing.", offset: -1},
	})
	if err == nil {
		t.Fatal("all fit")
	}
	for _, wanted := range []string{
		"gone: a.cpp no longer has this text:\n    three\nWrite what the file has now", "twice: a.cpp has this text 2 times",
		"no-file: there is no file b.cpp any more", "'same' needs", "no mutant is in kube/",
	} {
		if !strings.Contains(err.Error(), wanted) {
			t.Errorf("nothing says: %s\n%v", wanted, err)
		}
	}
}

func TestAMutantChangesOnePlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	text := "# a comment\nid: a\nfile: x.cpp\n-   if (a)\n-     return;\n+\nbreaks: People: see nothing.\n\n\nid: b\nfile: y.cpp\n- - 1\n+ + 1\nbreaks: B.\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := readList(path)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if all[0].Breaks != "People: see nothing." || all[1].Old != "- 1" || all[1].New != "+ 1" {
		t.Error(all)
	}
	changed, line, err := all[0].apply("{\n  if (a)\n    return;\n}")
	if changed != "{\n\n}" || line != 2 || err != nil {
		t.Errorf("%q %d %v", changed, line, err)
	}
}

func TestRandomMutantsStandInCodeAlone(t *testing.T) {
	const code = `#include <a>
// a == b
/* a != b */
template <typename T>
void act(T&& value) {
  const auto text = "a == b \" && c";
  const char quote = '\'', other = '!';
  const auto raw = R"x(a < b)x";
  if (a < 1'000 && !b) stop();
  stop();
  queue.at(0).close();
  log::info("x == y");
  list.reserve(3);
  f(a,
    b);
}
`
	var found []string
	for _, site := range sitesIn("a.cpp", code) {
		if code[site.offset:site.offset+len(site.old)] != site.old {
			t.Errorf("%+v is not there", site)
		}
		found = append(found, site.old+" -> "+site.new)
	}
	wanted := []string{"< -> <=", "&& -> ||", "! -> ", "stop(); -> (void)0;", "queue.at(0).close(); -> (void)0;"}
	if !slices.Equal(found, wanted) {
		t.Errorf("%q\nwanted are %q", found, wanted)
	}
}

func TestTheSeedAloneDecides(t *testing.T) {
	sites := sitesIn("a.cpp", strings.Repeat("  if (a == b && c) {}\n", 50))
	first, second, other := draw(sites, 7), draw(sites, 7), draw(sites, 8)
	if !slices.Equal(first, second) || slices.Equal(first, other) || len(first) != 100 {
		t.Error("the seed does not decide")
	}
}

func TestTheFirstFailedTestIsNamed(t *testing.T) {
	for _, row := range []struct {
		name, text, wanted string
		byCTest            bool
	}{
		{"GoogleTest", "[ RUN      ] a.b\n[       OK ] a.b\n[ RUN      ] a.c\n[  FAILED  ] a.c, where GetParam() = 1 (2 ms)\n[  FAILED  ] 1 test\n", "a.c", false},
		{"a crash", "[ RUN      ] a.b\n[       OK ] a.b (0 ms)\n[ RUN      ] a.c\nSEGV\n", "a.c (crashes)", false},
		{"all pass", "[ RUN      ] a.b\n[       OK ] a.b\n", "", false},
		{"a lane", " 1/9 Test  #3: demo.k8s_1.37 .....   Passed  1 sec\n--- FAIL: TestOther\n 2/9 Test  #4: chart.k8s_1.37 .....***Failed   12 sec\n=== RUN   TestA\n--- PASS: TestA\n    --- FAIL: TestB/x\n", "chart.k8s_1.37: TestB/x", true},
		{"an entry per test", "  7/90 Test #12: kube.watch.resumes ...***Timeout  300 sec\n[ RUN      ] watch.resumes\n", "kube.watch.resumes: watch.resumes (crashes)", true},
		{"what was skipped", "  7/90 Test #12: plugins.k8s_1.37 ...***Skipped  0 sec\n", "", true},
	} {
		output := output{byCTest: row.byCTest}
		for line := range strings.Lines(row.text) {
			output.read(strings.TrimSuffix(line, "\n"))
		}
		if got := output.test("(crashes)"); got != row.wanted {
			t.Errorf("%s: '%s', wanted is '%s'", row.name, got, row.wanted)
		}
	}
}

func TestTheChangeIsShownToWholeWords(t *testing.T) {
	for _, row := range [][3]string{
		{"renewed_at_ = sent;", "renewed_at_ = now;", "sent -> now"},
		{"all += pods;", "", "without all += pods;"},
		{"a || b || c", "a || c", "without b ||"},
		{"return x < 1;", "return x <= 1;", "< -> <="},
		{"size()", "size() + 1", "with + 1"},
	} {
		if got := changeOf(mutant{Old: row[0], New: row[1]}); got != row[2] {
			t.Errorf("'%s', wanted is '%s'", got, row[2])
		}
	}
}
