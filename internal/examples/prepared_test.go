package examples_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/parley-broker/parley/parleytest"
)

// A preparation is the copy of a language's folder with packages fetched and programs built, which takes most of the time of its tests. So
// those of the examples and those of the package share it; they run one after the other.
type preparation struct {
	folder string
	err    error
}

var preparations = map[string]preparation{}

// prepared gives the folder of a language, and one that outlives the tests.
func (l language) prepared(name string) (cache, folder string, err error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("find the cache: %w", err)
	}
	cache = filepath.Join(caches, "parley-examples", name)
	p, isThere := preparations[name]
	if !isThere {
		p.folder, p.err = l.prepareIn(cache, name)
		preparations[name] = p
	}
	return cache, p.folder, p.err
}

func (l language) prepareIn(cache, name string) (folder string, err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	if folder, err = os.MkdirTemp("", "parley-examples-"); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	for _, source := range []string{filepath.Join("../../examples", name), filepath.Join("testdata", name)} {
		if _, err := os.Stat(source); err == nil {
			if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
				return folder, fmt.Errorf("copy the example: %w", err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*parleytest.Patience)
	defer cancel()
	words := l.prepare(cache)
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		return folder, fmt.Errorf("%v: %w\n%s", words, err, output)
	}
	return folder, nil
}

func removePrepared() {
	for _, p := range preparations {
		_ = os.RemoveAll(p.folder)
	}
}
