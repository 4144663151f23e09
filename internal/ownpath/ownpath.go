//go:build unix

// Package ownpath reports whether a path is one on which no other user can put something else in the place of what is there.
package ownpath

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Require refuses a path that another user could change under our hands: a folder on the way to it, or it itself, that belongs to somebody
// who is neither we nor root, or in which others may write. A folder with the sticky bit, such as /tmp, is no such place: there each entry
// is its owner's. A link is followed when it is root's or ours. A folder that does not exist yet is ours to create. The error begins with
// what, such as "data folder".
func Require(what, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return require(what, path, 0)
}

// linksMax is after how many links a path is taken for one that leads to itself.
const linksMax = 40

func require(what, path string, links int) error {
	us := uint32(os.Geteuid())
	parts := strings.Split(path, string(filepath.Separator))
	current := string(filepath.Separator)
	for i, part := range parts {
		current = filepath.Join(current, part)
		info, err := os.Lstat(current)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s %s: the owner of %s is not known", what, path, current)
		}
		if stat.Uid != us && stat.Uid != 0 {
			return fmt.Errorf("%s %s: %s belongs to user %d, who could put links in the place of its files; run parley as that user, "+
				"or choose a folder of your own (chown %d %s makes it one)", what, path, current, stat.Uid, us, current)
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if links == linksMax {
				return fmt.Errorf("%s %s: too many links", what, path)
			}
			target, err := os.Readlink(current)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(current), target)
			}
			return require(what, filepath.Join(append([]string{target}, parts[i+1:]...)...), links+1)
		}
		// A group may be one's own; root's work is nobody else's.
		writable := info.Mode().Perm() & 0o002
		if us == 0 && stat.Gid != 0 {
			writable = info.Mode().Perm() & 0o022
		}
		if writable != 0 && info.Mode()&os.ModeSticky == 0 {
			return fmt.Errorf("%s %s: others may write to %s, and so put links in the place of its files; choose another folder, "+
				"or close it with chmod go-w %s", what, path, current, current)
		}
	}
	return nil
}

// ownerOf gives the number of the user to whom a file belongs.
func ownerOf(info os.FileInfo) (owner int, isKnown bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
