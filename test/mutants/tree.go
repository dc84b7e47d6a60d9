package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// tree is a copy of the user's working tree, with its own repository and build folder. Its HEAD is the copied state, so that
// `git diff HEAD` shows the mutant alone.
type tree struct{ root string }

// lock keeps a second run out of build/mutants.
func lock(root string) (func(), error) {
	file, err := os.Create(filepath.Join(root, "build/mutants/.lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.New("another run is at work in build/mutants; wait for its end")
	}
	return func() { file.Close() }, nil
}

func git(ctx context.Context, folder string, environment []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// newTree copies what git knows or would add: a test that is not committed yet counts.
func newTree(ctx context.Context, root string) (*tree, error) {
	work := filepath.Join(root, "build/mutants")
	out := &tree{filepath.Join(work, "tree")}
	if err := os.RemoveAll(out.root); err != nil {
		return nil, err
	}
	say("copying the working tree into build/mutants/tree")
	if err := out.fill(ctx, root, filepath.Join(work, "index")); err != nil {
		out.remove()
		return nil, err
	}
	return out, nil
}

func (tree *tree) fill(ctx context.Context, root, index string) error {
	objects, err := git(ctx, root, nil, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	// An index of our own: the user's stays as it is.
	defer os.Remove(index)
	environment := []string{"GIT_INDEX_FILE=" + index, "GIT_AUTHOR_NAME=mutants", "GIT_AUTHOR_EMAIL=mutants@localhost",
		"GIT_COMMITTER_NAME=mutants", "GIT_COMMITTER_EMAIL=mutants@localhost"}
	if _, err := git(ctx, root, environment, "read-tree", "HEAD"); err != nil {
		return err
	}
	if _, err := git(ctx, root, environment, "add", "-A"); err != nil {
		return err
	}
	content, err := git(ctx, root, environment, "write-tree")
	if err != nil {
		return err
	}
	commit, err := git(ctx, root, environment, "commit-tree", "-p", "HEAD", "-m", "The working tree", content)
	if err != nil {
		return err
	}
	if _, err := git(ctx, root, nil, "init", "-q", tree.root); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree.root, ".git/objects/info/alternates"), []byte(objects+"\n"), 0o644); err != nil {
		return err
	}
	if _, err := git(ctx, tree.root, nil, "checkout", "-q", "--detach", commit); err != nil {
		return err
	}
	return tree.bringPage(root)
}

// bringPage copies the page of the console, unless one of its sources is newer. Then ./dev build makes it, which needs npm.
func (tree *tree) bringPage(root string) error {
	page := filepath.Join(root, "console/page")
	made, err := os.Stat(filepath.Join(page, "dist/assets.cpp"))
	if err != nil {
		return nil
	}
	isNewer := false
	for _, source := range []string{"source", "package.json", "package-lock.json", "build.mjs"} {
		filepath.WalkDir(filepath.Join(page, source), func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if info, err := entry.Info(); err == nil && info.ModTime().After(made.ModTime()) {
				isNewer = true
			}
			return nil
		})
	}
	if isNewer {
		return nil
	}
	return os.CopyFS(filepath.Join(tree.root, "console/page/dist"), os.DirFS(filepath.Join(page, "dist")))
}

func (tree *tree) remove() { os.RemoveAll(tree.root) }

// put writes the mutant into its file and returns the line, and what takes it out again.
func (tree *tree) put(mutant mutant) (int, func() error, error) {
	path := filepath.Join(tree.root, mutant.File)
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, nil, err
	}
	changed, line, err := mutant.apply(string(content))
	if err != nil {
		return 0, nil, err
	}
	return line, func() error { return os.WriteFile(path, content, 0o644) }, os.WriteFile(path, []byte(changed), 0o644)
}
