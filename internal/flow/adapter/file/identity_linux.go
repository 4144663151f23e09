package file

import (
	"io/fs"
	"syscall"

	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// identify gives by what a file is told from others that have had, or will have, its name.
func identify(info fs.FileInfo) identity {
	i := identity{Identity: folder.Identity{Size: info.Size(), Modified: info.ModTime().UnixNano()}}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		i.Changed, i.Inode = stat.Ctim.Nano(), stat.Ino
		i.names, i.device = uint64(stat.Nlink), uint64(stat.Dev) //nolint:unconvert // they are narrower on other processors
	}
	return i
}
