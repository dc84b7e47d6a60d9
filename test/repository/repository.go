// Package repository says where the repository lies. The tests are compiled without the paths of a machine (-trimpath), and run in their folders.
package repository

import (
	"os"
	"path/filepath"
)

var root = find()

func find() string {
	folder, err := os.Getwd()
	for err == nil && folder != filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "test/go.mod")); err == nil {
			return folder
		}
		folder = filepath.Dir(folder)
	}
	return ""
}

// Root is the top of the repository.
func Root() string {
	if root == "" {
		panic("not started in a folder of the repository")
	}
	return root
}
