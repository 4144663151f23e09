//go:build unix && !linux

package hostfolders

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// dialSocket connects to a socket. Such systems connect by a path alone: it is the one that was checked, without links, unless somebody has
// put another thing there in between.
func dialSocket(ctx context.Context, dialer *net.Dialer, permitted *os.Root, path string) (net.Conn, error) {
	info, err := permitted.Lstat(path)
	if err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(filepath.Join(permitted.Name(), path))
	if err != nil {
		return nil, err
	}
	found, err := os.Lstat(resolved)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeSocket || !os.SameFile(info, found) {
		return nil, fmt.Errorf("connect to %s: %w", path, errNoSocket)
	}
	return dialer.DialContext(ctx, "unix", resolved)
}
