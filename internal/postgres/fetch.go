//go:build unix

package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/parley-broker/parley/internal/ownpath"
)

// fetchedMajor is the version fetched when none is asked for and none is installed.
const fetchedMajor = 18

// fetchable are the builds that can be fetched, by major version.
var fetchable = map[int]string{
	14: "14.18.0",
	15: "15.13.0",
	16: "16.9.0",
	17: "17.5.0",
	18: "18.3.0",
}

// fetch makes a major version available in the cache and returns its programs. The first time this needs
// the network; later, and for others that wait meanwhile, it does not.
func fetch(ctx context.Context, cache string, major int, as account, log *slog.Logger) (installation, error) {
	version, ok := fetchable[major]
	if !ok {
		return installation{}, fmt.Errorf("PostgreSQL %d is not installed and cannot be fetched: install it or choose another version", major)
	}
	cache, err := openCache(cache, as)
	if err != nil {
		return installation{}, err
	}
	cache = filepath.Join(cache, "postgresql")
	if err := makeFolder(cache, 0o755); err != nil {
		return installation{}, fmt.Errorf("create the cache folder: %w", err)
	}
	home := filepath.Join(cache, version)
	bin := filepath.Join(home, "bin")
	if found, err := inspect(bin, as); err == nil {
		return found, nil
	}

	lock, err := openLock(filepath.Join(cache, "fetch.lock"))
	if err != nil {
		return installation{}, err
	}
	defer lock.close()
	if err := lock.wait(ctx, syscall.LOCK_EX); err != nil {
		return installation{}, err
	}
	if found, err := inspect(bin, as); err == nil {
		return found, nil
	}

	log.Info("fetching PostgreSQL, once", "version", version, "into", home)
	staging := filepath.Join(cache, "fetching")
	if err := os.RemoveAll(staging); err != nil {
		return installation{}, fmt.Errorf("clear an unfinished download: %w", err)
	}
	programs := filepath.Join(staging, "programs")
	if err := unpack(ctx, repository, version, programs); err != nil {
		return installation{}, fmt.Errorf("fetch PostgreSQL %s: %w (install PostgreSQL %d or give --dsn to do without)", version, err, major)
	}
	if err := openToAll(programs); err != nil {
		return installation{}, err
	}
	if err := os.RemoveAll(home); err != nil {
		return installation{}, fmt.Errorf("replace a broken PostgreSQL %s: %w", version, err)
	}
	if err := os.Rename(programs, home); err != nil {
		return installation{}, fmt.Errorf("keep PostgreSQL %s: %w", version, err)
	}
	_ = os.RemoveAll(staging)
	return inspect(bin, as)
}

// CacheFolder is the folder for what can be made again: fetched programs, and clusters for tests. PostgreSQL's
// user can reach it.
func CacheFolder() (string, error) {
	as, err := serverAccount("")
	if err != nil {
		return "", err
	}
	return openCache("", as)
}

// openCache resolves the cache folder, "" being the default one: it must be within reach of the account.
func openCache(path string, as account) (string, error) {
	if path == "" {
		path = defaultFolder("XDG_CACHE_HOME", ".cache")
		if as.barrier(path) != "" {
			path = "/var/cache/parley"
		}
	}
	path, err := canonical(path)
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if at := as.barrier(path); at != "" {
		return "", fmt.Errorf("cache folder %s is out of reach for user %s, who runs PostgreSQL: %s is closed to that user", path, as.name, at)
	}
	// Programs in it are run, by root's hand too.
	if err := ownpath.Require("cache folder", path); err != nil {
		return "", err
	}
	if err := makeFolder(path, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	return path, nil
}

// openToAll lets every user read and run what was unpacked, whatever our umask is.
func openToAll(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if entry.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}
