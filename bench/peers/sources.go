package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// The sources of peers in other languages, a folder each.
var (
	//go:embed flow
	flowSources embed.FS
	//go:embed jobs
	jobSources embed.FS
)

// unpack writes the sources of a peer where the caches of this user are, so that its packages are fetched and built once.
func unpack(sources fs.FS, folder string) (to string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the build of %s: %w", folder, err)
	}
	to = filepath.Join(cache, "parley-bench", path.Base(folder))
	from, err := fs.Sub(sources, folder)
	if err != nil {
		return "", fmt.Errorf("find the sources of %s: %w", folder, err)
	}
	err = fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		file := filepath.Join(to, name)
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(file, 0o750))
		}
		source, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		return os.WriteFile(file, source, 0o600)
	})
	if err != nil {
		return "", fmt.Errorf("write the sources of %s: %w", folder, err)
	}
	return to, nil
}
