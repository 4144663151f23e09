package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/parley-broker/parley/internal/mail/pickup"
	"github.com/parley-broker/parley/internal/ownpath"
)

type folderSettings struct {
	Enabled        bool     `json:"enabled"`
	Path           string   `json:"path"`
	Poll           int      `json:"poll"`
	Rate           int      `json:"rate"`
	MaxHeaderSize  int      `json:"max_header_size"`
	MaxRecipients  int      `json:"max_recipients"`
	MaxMessageSize int64    `json:"max_message_size"`
	Nodes          []string `json:"nodes"`
	isReplay       bool
}

// readFolders reads the folders of files, of either kind, and the HTTP listeners: those that are for this daemon.
func (w *written) readFolders(s *settings, r reading) error {
	s.folders, s.listeners = make(map[object]folderSettings), make(map[object]listenerSettings)
	for kind, folders := range map[string]map[string]folderSettings{"pickup folder": w.Objects.Pickup, "replay folder": w.Objects.Replay} {
		for name, written := range folders {
			if !written.Enabled || !r.isOurs(written.Nodes) {
				continue
			}
			if err := r.folders.Check(written.Path); err != nil {
				if err := r.leaveOut(s, kind, name, err); err != nil {
					return err
				}
				continue
			}
			written.isReplay = kind == "replay folder"
			s.folders[object{kind, name}] = written
		}
	}
	for name, written := range w.Objects.Listeners {
		if !written.Enabled || !r.isOurs(written.Nodes) {
			continue
		}
		if err := r.folders.Check(written.CertificateFile, written.CertificateKeyFile); err != nil {
			if err := r.leaveOut(s, "http listener", name, err); err != nil {
				return err
			}
			continue
		}
		s.listeners[object{"http listener", name}] = written
	}
	return nil
}

// runs are parts of receiving that begin and end with the configuration: folders and listeners. Each is begun anew when what it is made of
// has changed.
type runs struct {
	mu     sync.Mutex
	open   map[object]*run
	failed map[object]string // why what is wanted could not be begun
}

type run struct {
	as    any // what it was begun with
	stop  context.CancelFunc
	ended chan struct{}
}

// adopt ends the runs that are no longer wanted as they are, and begins those that are new. begin gives what runs until its context ends;
// nil where it cannot, which is tried again. Folders that could not be begun are given, with the reason.
func (r *runs) adopt(
	ctx context.Context, wanted map[object]any, begin func(ctx context.Context, of object) (func(), error), log *slog.Logger,
) (failed map[object]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil { // all have ended, or are about to
		return nil
	}
	if r.open == nil {
		r.open = make(map[object]*run)
	}
	failed = make(map[object]string)
	for name, one := range r.open {
		if as, isWanted := wanted[name]; !isWanted || !reflect.DeepEqual(as, one.as) {
			one.stop()
			<-one.ended
			delete(r.open, name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(wanted), object.compare) {
		if r.open[name] != nil {
			continue
		}
		inner, stop := context.WithCancel(ctx)
		do, err := begin(inner, name)
		if err != nil {
			stop()
			if r.failed[name] != err.Error() { // once, and not every few seconds
				log.Error("a way for mail to come in cannot be opened, and is tried again", "object", name.String(), "error", err)
			}
			failed[name] = err.Error()
			continue
		}
		one := &run{as: wanted[name], stop: stop, ended: make(chan struct{})}
		r.open[name] = one
		go func() { defer close(one.ended); do() }()
	}
	r.failed = failed
	return maps.Clone(failed)
}

// end ends all runs and waits for them.
func (r *runs) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, one := range r.open {
		one.stop()
		<-one.ended
		delete(r.open, name)
	}
}

// openWaysIn begins and ends folders and HTTP listeners as the configuration says, and listens where receive connectors do.
func (s *Server) openWaysIn(ctx context.Context) {
	used := s.settings.Load()
	type way struct {
		fqdn     string
		names    []string
		folder   folderSettings
		listener listenerSettings
	}
	wanted := make(map[object]any)
	for name, written := range used.folders {
		written.MaxMessageSize = lesser(written.MaxMessageSize, used.receive.SendBytes)
		wanted[name] = way{fqdn: used.fqdn, names: used.receive.Names, folder: written}
	}
	for name, written := range used.listeners {
		written.MaxMessageSize = lesser(written.MaxMessageSize, used.receive.SendBytes)
		written.MaxRecipients = int(lesser(int64(written.MaxRecipients), int64(used.receive.Recipients)))
		wanted[name] = way{fqdn: used.fqdn, names: used.receive.Names, listener: written}
	}
	closed := s.waysIn.adopt(ctx, wanted, func(ctx context.Context, name object) (func(), error) {
		w, _ := wanted[name].(way) // it is one
		if w.folder.Path != "" {
			return s.folder(ctx, name.String(), w.folder, w.fqdn, w.names)
		}
		return s.listener(ctx, name.String(), w.listener, w.fqdn, w.names)
	}, s.config.Logger)
	own, err := bound(used.receive, s.config.Bindings)
	err = errors.Join(err, s.receiver.Rebind(ctx, own))
	if ctx.Err() != nil {
		return // A daemon that stops meanwhile has no problem to report.
	}
	s.governing.setClosed(closed)
	s.listened(err)
}

// listened records why a binding is not listened on; nil is that each is. It is logged once, and not every few seconds.
func (s *Server) listened(err error) {
	s.governing.setProblem(problemBinding, "receive connector", err)
	failure := ""
	if err != nil {
		if failure = err.Error(); failure != s.unbound {
			s.config.Logger.Error("a binding of a receive connector cannot be listened on, and is tried again", "error", err)
		}
	}
	s.unbound = failure
}

// lesser gives the smaller of two limits, of which 0 is none.
func lesser(one, other int64) int64 {
	if one == 0 || other != 0 && other < one {
		return other
	}
	return one
}

// folder gives the receiver that takes files from a folder.
func (s *Server) folder(ctx context.Context, name string, written folderSettings, fqdn string, names []string) (func(), error) {
	open := func() (*os.Root, error) { return s.equipment.folders.OpenRoot(written.Path, 0o750) }
	root, err := open()
	if err != nil {
		return nil, err
	}
	_ = root.Close()
	if written.isReplay {
		if err := ownpath.Require("replay folder", filepath.Clean(written.Path)); err != nil {
			return nil, err
		}
	}
	folder := &pickup.Folder{
		Path: written.Path, Open: open, IsReplay: written.isReplay, FQDN: fqdn, Names: names, Accepter: s.committer, Spool: s.receiver.Spool,
		Log:        s.config.Logger,
		IsRejected: s.pressure.refusesFolders, IsRefusal: isAlone, Poll: seconds(written.Poll), PerMinute: written.Rate,
		HeaderBytes: written.MaxHeaderSize,
		Recipients:  written.MaxRecipients, MessageBytes: written.MaxMessageSize, Bad: s.badFile(ctx, name, written),
	}
	return func() {
		if err := folder.Run(ctx); err != nil {
			s.config.Logger.Error("a folder of messages cannot be used", "object", name, "error", err)
		}
	}, nil
}
