package hostfolders

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"
)

// openPath is O_PATH: the file is held, and not opened.
const openPath = 0x200000

// dialSocket connects to the socket that is held, whatever stands at its path by then.
func dialSocket(ctx context.Context, dialer *net.Dialer, permitted *os.Root, path string) (net.Conn, error) {
	held, err := permitted.OpenFile(path, openPath|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Close() }()
	info, err := held.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("connect to %s: %w", path, errNoSocket)
	}
	return dialer.DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(int(held.Fd())))
}
