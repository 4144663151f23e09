package ownpath

import (
	"fmt"
	"io/fs"
	"os"
)

// RequirePrivate refuses a file with a key that others may read. Its owner may, and so may the group of a file that belongs to root when we
// are somebody else: root decided then who gets it, as with a mounted secret of Kubernetes. The error tells how to mend it.
//
// Errors: those of [os.Stat].
func RequirePrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, isKnown := ownerOf(info)
	if isKnown && !isPrivate(info.Mode(), owner, os.Geteuid()) {
		return fmt.Errorf("%s holds a private key, and others may read it (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// isPrivate reports whether a file of this mode and owner is read by nobody whom root or we, a user by number, did not choose.
func isPrivate(mode fs.FileMode, owner, us int) bool {
	refused := fs.FileMode(0o077)
	if owner == 0 && us != 0 {
		refused = 0o037
	}
	return mode.Perm()&refused == 0
}
