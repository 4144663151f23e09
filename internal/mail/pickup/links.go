//go:build unix

package pickup

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lock keeps other processes from a file until it is closed; it reports whether none has it. A file system without locks keeps nobody:
// there the store alone knows what was submitted.
func lock(file *os.File) bool {
	return !errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// hasOtherNames reports whether a file has more than one name.
func hasOtherNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 1
}
