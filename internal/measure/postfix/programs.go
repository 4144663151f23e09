package postfix

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
)

// ErrNotThere means that a program is not installed.
var ErrNotThere = errors.New("not installed")

// find gives the path of a program of Postfix, which often stands where only root's PATH leads.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, folder := range []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"} {
		path := filepath.Join(folder, name)
		if found, err := os.Stat(path); err == nil && found.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s, a program of Postfix, is %w", name, ErrNotThere)
}

// RequireRelay reports whether a relay can be run: Postfix is there, and we are root, as its master has to be.
func RequireRelay() error {
	if _, err := find("postfix"); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("its master process runs as root only")
	}
	if _, err := user.Lookup(owner); err != nil {
		return fmt.Errorf("its account is %w", ErrNotThere)
	}
	return nil
}
