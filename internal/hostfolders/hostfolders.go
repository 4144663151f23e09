//go:build unix

// Package hostfolders opens what a configuration in the database names on the daemon's host: folders, files and sockets. A role that may
// change the configuration may not for that reason use the rights of the daemon's user there. So the operator of the host says below which
// folders it may be, and each step is made from the folder that was opened (openat): a link cannot lead out, whenever it was put there.
package hostfolders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/parley-broker/parley/internal/ownpath"
)

// Folders are the folders that an operator has permitted. Nil, as an empty list, permits nothing of the host.
type Folders struct{ permitted []folder }

// folder is a folder as it was given, and without links.
type folder struct{ given, resolved string }

// ErrNotPermitted is a path that is below none of the folders that the operator has permitted.
var ErrNotPermitted = errors.New("the daemon may not use it")

// NotPermittedError is [ErrNotPermitted] of a path.
type NotPermittedError struct{ Path string }

func (e *NotPermittedError) Error() string {
	return fmt.Sprintf("%s is below none of the folders that this daemon may use", e.Path)
}

// Is is whether an error is what this one is.
func (e *NotPermittedError) Is(target error) bool { return target == ErrNotPermitted }

// Permit permits folders, given by full paths. They are there, and nobody else than the daemon's user and root can put another folder in
// the place of one: that user would decide what is permitted.
func Permit(paths ...string) (*Folders, error) {
	f := &Folders{}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("folder %q: give its full path", path)
		}
		path = filepath.Clean(path)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w; make it first", path, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("folder %s: it is no folder", path)
		}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", path, err)
		}
		for _, parent := range []string{filepath.Dir(path), filepath.Dir(resolved)} {
			if err := ownpath.Require("folder", parent); err != nil {
				return nil, err
			}
		}
		f.permitted = append(f.permitted, folder{path, resolved})
	}
	return f, nil
}

// within gives the permitted folder that a path is below, or is, and the path from there.
func (f *Folders) within(path string) (permitted, rest string, err error) {
	if f != nil && filepath.IsAbs(path) {
		for _, one := range f.permitted {
			for _, name := range []string{one.given, one.resolved} {
				if rest, err := filepath.Rel(name, filepath.Clean(path)); err == nil && filepath.IsLocal(rest) {
					return one.given, rest, nil
				}
			}
		}
	}
	return "", "", &NotPermittedError{path}
}

// Check finds whether paths are below permitted folders, as they are written. Empty ones name nothing. Links are followed when something is
// opened, and refused then where they lead out.
func (f *Folders) Check(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, _, err := f.within(path); err != nil {
			return err
		}
	}
	return nil
}

// in does something in the permitted folder that a path is below.
func (f *Folders) in(path string, do func(permitted *os.Root, rest string) error) error {
	permitted, rest, err := f.within(path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(permitted)
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	return do(root, rest)
}

// OpenRoot opens a folder, and makes it with a mode where it is not there. Work inside it stays in it.
func (f *Folders) OpenRoot(path string, mode fs.FileMode) (opened *os.Root, err error) {
	err = f.in(path, func(permitted *os.Root, rest string) (err error) {
		if opened, err = permitted.OpenRoot(rest); errors.Is(err, fs.ErrNotExist) {
			if err = permitted.MkdirAll(rest, mode); err == nil {
				opened, err = permitted.OpenRoot(rest)
			}
		}
		if err != nil {
			return fmt.Errorf("open the folder %s: %w", path, err)
		}
		return nil
	})
	return opened, err
}

// Open opens a file for reading. A pipe keeps nobody waiting.
func (f *Folders) Open(path string) (file *os.File, err error) {
	err = f.in(path, func(permitted *os.Root, rest string) (err error) {
		file, err = permitted.OpenFile(rest, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	return file, err
}

// Stat describes a file.
func (f *Folders) Stat(path string) (info fs.FileInfo, err error) {
	err = f.in(path, func(permitted *os.Root, rest string) (err error) {
		info, err = permitted.Stat(rest)
		return err
	})
	return info, err
}

// Dial connects as dialer does. The address of the network unix is the path of a socket, of which no link may be the last part.
func (f *Folders) Dial(ctx context.Context, dialer *net.Dialer, network, address string) (conn net.Conn, err error) {
	if network != "unix" {
		return dialer.DialContext(ctx, network, address)
	}
	err = f.in(address, func(permitted *os.Root, rest string) (err error) {
		conn, err = dialSocket(ctx, dialer, permitted, rest)
		if at, is := errors.AsType[*net.OpError](err); is {
			at.Addr = &net.UnixAddr{Name: address, Net: "unix"}
		}
		return err
	})
	return conn, err
}

// errNoSocket is a path at which there is something else.
var errNoSocket = errors.New("it is no socket")
