package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
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

// hashOf is a sum over the sources of a peer.
func hashOf(sources fs.FS, folder string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(sources, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := fs.ReadFile(sources, name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(source), source)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the sources of %s: %w", folder, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
