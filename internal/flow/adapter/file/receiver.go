package file

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// receiver takes the files of a folder in.
type receiver struct {
	folder.Receiver
	permission  adapter.Permission
	cutOffAfter time.Duration
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	if err := asError(check(adapter.Receive, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	r := &receiver{permission: e.Permission, cutOffAfter: cutOffAfter}
	r.Settings, r.Logger = folder.Defaults(), e.Logger
	r.Folder, r.Mask, _ = place(e.Address)
	r.OpenBox = func(context.Context) (folder.Box, error) { return r.open() }
	adapter.CheckSettings(e.Settings, &r.Settings)
	return r, r.permission.CheckFolder(r.Folder)
}

// open opens the folder of the location.
func (r *receiver) open() (*box, error) {
	b, err := openBox(r.permission, r.Folder, r.Settings.MoveTo)
	if err != nil {
		return nil, err
	}
	b.cutOffAfter = r.cutOffAfter
	if r.Settings.Ready == folder.Marker {
		b.markerSuffix = r.Settings.MarkerSuffix
	}
	if info, err := b.folder.Lstat(r.Mask); err == nil && info.IsDir() && !strings.ContainsAny(r.Mask, `*?[\`) {
		b.Close()
		address := path.Join(r.Folder, r.Mask)
		return nil, fmt.Errorf("the address %s is a folder; write %s/* for the files in it", address, address)
	}
	return b, nil
}
