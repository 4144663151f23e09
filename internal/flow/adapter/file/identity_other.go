//go:build unix && !linux

package file

import (
	"io/fs"
	"syscall"

	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// identify gives by what a file is told from others that have had, or will have, its name. The time of its last change has another name on
// each of these systems, and is left out.
func identify(info fs.FileInfo) identity {
	i := identity{Identity: folder.Identity{Size: info.Size(), Modified: info.ModTime().UnixNano()}}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		i.Inode, i.names, i.device = uint64(stat.Ino), uint64(stat.Nlink), uint64(stat.Dev)
	}
	return i
}
