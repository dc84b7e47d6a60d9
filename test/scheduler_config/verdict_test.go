package scheduler_config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quartermaster.io/test/faults/kit"
	"sigs.k8s.io/yaml"
)

var golden = filepath.Join(kit.Root(), "test/golden/scheduler_config")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(golden, name))
	must(t, err)
	return string(text)
}

func named(t *testing.T, folder string) []string {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(golden, folder))
	must(t, err)
	var out []string
	for _, one := range all {
		out = append(out, filepath.Join(folder, one.Name()))
	}
	return out
}

// agree starts kube-scheduler and compares what it did with what lint says.
func agree(t *testing.T, config string) (outcome, verdict) {
	t.Helper()
	said, err := at.lint(config)
	must(t, err)
	did, err := at.start(config, nil)
	must(t, err)
	if did.started == said.ends {
		t.Errorf("kube-scheduler %s started: %v, lint says it ends: %v %v\n%s", at.minor, did.started, said.ends, said.codes, did.said)
	}
	if said.ends && said.rc != 3 {
		t.Errorf("lint says it ends, with exit code %d", said.rc)
	}
	return did, said
}

// One edit of a sound file each: kube-scheduler's own start shows whether our verdict is right.
func TestS7_KubeSchedulerAgreesWithEveryVerdict(t *testing.T) {
	t.Parallel()
	var table []struct {
		Name, From, To, Append, Code, Before string
		Since, Until                         int
	}
	must(t, yaml.Unmarshal([]byte(read(t, "mutants.yaml")), &table))
	if len(table) < 60 {
		t.Fatalf("%d edits", len(table))
	}
	base := read(t, "base.yaml")
	for i, one := range table {
		if !sampled(i) {
			continue
		}
		t.Run(fmt.Sprintf("%02d %s", i, one.Name), func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(base, one.From) {
				t.Fatalf("base.yaml has no %q", one.From)
			}
			did, said := agree(t, strings.Replace(base, one.From, one.To, 1)+one.Append)
			code := one.Code
			if minor := number(t, strings.TrimPrefix(at.minor, "1.")); minor < one.Since {
				code = one.Before
			} else if one.Until != 0 && minor > one.Until {
				code = ""
			}
			if did.started == (code != "") {
				t.Errorf("started: %v; mutants.yaml says %q; lint %v\n%s", did.started, code, said.codes, did.said)
			}
		})
	}
}

// The words of flags.yaml, whose verdict of lint the unit tests compare: what kube-scheduler itself does with each. Its profile has a name of
// its own, or it would take the pods of other tests.
func TestS7_KubeSchedulerEndsWithTheFlagsThatEndIt(t *testing.T) {
	t.Parallel()
	var table []struct {
		Words []string
		Ends  []int
	}
	must(t, yaml.Unmarshal([]byte(read(t, "flags.yaml")), &table))
	if len(table) < 120 {
		t.Fatalf("%d rows", len(table))
	}
	config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: " + standard + "}\nprofiles: [{schedulerName: flags}]\n"
	for i, row := range table {
		if !sampled(i) {
			continue
		}
		t.Run(strings.Join(row.Words, " "), func(t *testing.T) {
			t.Parallel()
			did, err := at.start(config, nil, row.Words...)
			must(t, err)
			ends := slices.Contains(row.Ends, number(t, strings.TrimPrefix(at.minor, "1.")))
			if did.started == ends {
				t.Errorf("kube-scheduler %s started with %q: %v\n%s", at.minor, row.Words, did.started, did.said)
			}
		})
	}
}

// What the manuals tell people to write, to the letter, and each of its mistakes alone. Files of certificates are of this test.
func TestS7_WhatTheManualsSayIsJudgedAsItStarts(t *testing.T) {
	t.Parallel()
	for _, name := range named(t, "mistakes") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			config := read(t, name)
			for _, file := range []string{"ca.crt", "scheduler-extender.crt", "scheduler-extender.key", "apiserver-kubelet-client.crt", "apiserver-kubelet-client.key"} {
				with := at.keys.ClientCert
				if strings.HasSuffix(file, ".key") {
					with = at.keys.ClientKey
				}
				// The path stays the one that lint is asked about: it comes through a folder of that name.
				must(t, link(filepath.Join(at.dir, "pki", file), with))
			}
			did, said := agree(t, strings.ReplaceAll(config, "/etc/kubernetes/pki/", filepath.Join(at.dir, "pki")+"/"))
			if strings.Contains(name, "to-the-letter") && (did.started || said.rc != 3) {
				t.Errorf("the manual's file started: %v, lint's exit code %d", did.started, said.rc)
			}
		})
	}
}

// A file that is not there ends kube-scheduler; lint cannot know that, and names each file the start depends on.
func TestS7_KubeSchedulerEndsWithoutAFileThatLintNames(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, field := range []string{"caFile", "certFile", "keyFile"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"caFile": at.keys.ServerCA, "certFile": at.keys.ClientCert, "keyFile": at.keys.ClientKey}
			config := func() string {
				return fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %s}\n"+
					"extenders:\n- urlPrefix: https://127.0.0.1:9443\n  filterVerb: filter\n  enableHTTPS: true\n"+
					"  tlsConfig: {caFile: %s, certFile: %s, keyFile: %s}\n", standard, files["caFile"], files["certFile"], files["keyFile"])
			}
			agree(t, config())
			files[field] = filepath.Join(folder, field)
			said, err := at.lint(config())
			must(t, err)
			did, err := at.start(config(), nil)
			must(t, err)
			if did.started || said.ends || !slices.Contains(said.opens, files[field]) {
				t.Errorf("started without %s: %v; lint: ends %v, opens %v\n%s", field, did.started, said.ends, said.opens, did.said)
			}
		})
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	value, err := strconv.Atoi(text)
	must(t, err)
	return value
}

func link(name, to string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(to, name); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}
