//go:build !unix

package site

import "errors"

// Folder is never made on this system.
type Folder struct{ Path string }

// NewFolder always fails on this system.
func NewFolder() (*Folder, error) {
	return nil, errors.New("servers of our own need a Unix system: name a database with --dsn, PARLEY_DSN or DATABASE_URL")
}

// Make is never called on this system.
func (*Folder) Make(string) (string, error) { return "", nil }

// Remove is never called on this system.
func (*Folder) Remove() error { return nil }
