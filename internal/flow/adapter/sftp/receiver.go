package sftp

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// receiver takes the files of a folder of a server in.
type receiver struct {
	folder.Receiver
	endpoint adapter.Endpoint
	server   Server
	address  address

	mu   sync.Mutex
	conn *connection
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	if err := checkEndpoint(adapter.Receive, e); err != nil {
		return nil, err
	}
	s := receiveDefaults()
	adapter.CheckSettings(e.Settings, &s)
	r := &receiver{endpoint: e, server: s.Server}
	r.address, _ = readAddress(e.Address)
	r.Settings, r.Folder, r.Mask, r.Logger = s.Settings, r.address.shown(), r.address.last, e.Logger
	r.OpenBox = r.open
	_, err := e.Permission.CheckConnect(r.address.host)
	return r, err
}

// Run takes files in until ctx ends.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.conn != nil {
			r.conn.close()
			r.conn = nil
		}
	}()
	return r.Receiver.Run(ctx, in)
}

// open gives the folder, over the session of the poll before, or a new one.
func (r *receiver) open(ctx context.Context) (folder.Box, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil || r.conn.isEnded() {
		conn, err := dial(ctx, r.endpoint, r.server, r.address.host)
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	b := &box{ctx: ctx, conn: r.conn, folder: r.address.folder}
	if r.Settings.Ready == folder.Marker {
		b.markerSuffix = r.Settings.MarkerSuffix
	}
	if to := r.Settings.MoveTo; to != "" {
		if !path.IsAbs(to) {
			to = path.Join(r.address.folder, to)
		}
		if b.moveTo = path.Clean(to); b.moveTo == b.folder {
			return nil, fmt.Errorf("files are moved to %s, from where they are taken; let move_to name another folder", to)
		}
		if info, err := b.lstat(b.moveTo); err != nil || info == nil || !info.IsDir() {
			return nil, errors.Join(fmt.Errorf("there is no folder %s on the server, to which files are moved; make it first", b.moveTo), err)
		}
	}
	return b, nil
}
