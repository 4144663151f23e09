//go:build unix

// Package postgres runs the private PostgreSQL that Parley uses when no other database is named.
//
// A data folder holds one cluster. Everyone who starts a Server on the folder, in whatever process, shares one
// running PostgreSQL; it stops when the last of them has let go of it. Clients connect through a Unix socket
// that only the server's own operating system user, and root, can reach.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLock = "start.lock"
	usersLock = "users.lock"
)

// Config says where the private PostgreSQL lives and what it is like. The zero value is a good one.
type Config struct {
	// Data is the data folder. The default is parley in the user's data directory ($XDG_DATA_HOME, else
	// ~/.local/share), or /var/lib/parley for root where that is out of reach for PostgreSQL's user.
	Data string
	// Version is the major version, such as "18". The default is the one that made the cluster in the data
	// folder; for a new folder the newest installed; where none is installed, 18 is fetched.
	Version string
	// Binaries is the folder of the PostgreSQL programs. The default is to look for them.
	Binaries string
	// Cache is the folder for fetched PostgreSQL programs, with the same kind of default as Data.
	Cache string
	// Settings are added to, and win over, Parley's own choice of server settings.
	Settings map[string]string
	// TCP makes the server listen on a free port of 127.0.0.1 too, with a password. See [Server.TCPDSN].
	TCP bool
	// Linger is how long the server outlives its last user. It counts for who starts the server.
	Linger time.Duration
	// Disposable allows to make the cluster anew, empty, when the one in the folder does not start.
	Disposable bool
	// Logger hears of what takes long or went wrong. The default is silence.
	Logger *slog.Logger
}

// Server is a hold on a running private PostgreSQL.
type Server struct {
	config Config
	major  int // asked for; 0: any
	folder *folder
	log    *slog.Logger

	mu      sync.Mutex
	running postmaster
	users   *fileLock // nil once stopped
}

// Start starts the server of a data folder, or joins it if it runs already. The caller must Stop it.
//
// It waits as long as ctx allows: for a download, for another process that is starting or stopping the same
// server, and for recovery after a crash.
func Start(ctx context.Context, config Config) (*Server, error) {
	s := &Server{config: config, log: config.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.major, err = parseMajor(config.Version); err != nil {
		return nil, err
	}
	if s.folder, err = openFolder(config.Data); err != nil {
		return nil, err
	}
	start, err := s.lockStart(ctx)
	if err != nil {
		return nil, err
	}
	defer start.close()

	users, err := openLock(filepath.Join(s.folder.root, usersLock))
	if err != nil {
		return nil, err
	}
	first, err := users.try(syscall.LOCK_EX)
	if err == nil {
		err = users.wait(ctx, syscall.LOCK_SH)
	}
	if err == nil {
		err = s.ensure(ctx)
	}
	if err != nil && first && config.Disposable && ctx.Err() == nil {
		s.log.Warn("making the cluster anew, as it does not start", "error", err)
		if err = os.RemoveAll(s.folder.cluster); err == nil {
			err = s.ensure(ctx)
		}
	}
	if err != nil {
		users.close()
		return nil, err
	}
	s.users = users
	return s, nil
}

// Stop lets go of the server. The last one to do so stops PostgreSQL and waits for that, unless the server is
// to linger. A second Stop does nothing. When ctx ends first, PostgreSQL goes on stopping by itself.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		return nil
	}
	defer func() {
		s.users.close()
		s.users = nil
	}()
	start, err := s.lockStart(ctx)
	if err != nil {
		return err
	}
	defer start.close()
	last, err := s.users.try(syscall.LOCK_EX)
	if err != nil || !last || s.config.Linger > 0 {
		return err
	}
	return s.folder.stop(ctx)
}

// stop ends the server of the folder. Fast shutdown: open transactions are rolled back.
func (f *folder) stop(ctx context.Context) error {
	p, ok, err := f.readPostmaster()
	if err != nil || !ok || !f.serves(p.pid) {
		return err
	}
	if err := syscall.Kill(p.pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the server: %w", err)
	}
	for f.serves(p.pid) {
		if err := pause(ctx, lockPoll); err != nil {
			return fmt.Errorf("wait for the server to stop (process %d): %w", p.pid, err)
		}
	}
	if filepath.Dir(f.sockets) != f.root {
		_ = os.Remove(f.sockets)
	}
	return nil
}

func (s *Server) lockStart(ctx context.Context) (*fileLock, error) {
	lock, err := openLock(filepath.Join(s.folder.root, startLock))
	if err != nil {
		return nil, err
	}
	if err := lock.wait(ctx, syscall.LOCK_EX); err != nil {
		lock.close()
		return nil, err
	}
	return lock, nil
}

// Folder is the data folder.
func (s *Server) Folder() string { return s.folder.root }

// Log is the path of the server's log.
func (s *Server) Log() string { return s.folder.log }

// SocketFolder is the folder of the server's Unix socket.
func (s *Server) SocketFolder() string { return s.current().sockets }

// Port is the number in the socket's name, and the TCP port if the server listens on one.
func (s *Server) Port() int { return s.current().port }

func (s *Server) current() postmaster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// DSN returns the connection string of a database, as superuser, through the Unix socket.
func (s *Server) DSN(database string) string { return s.current().dsn(database) }

func (p postmaster) dsn(database string) string {
	return (&url.URL{
		Scheme: "postgres",
		User:   url.User(superuser),
		Path:   "/" + database,
		RawQuery: url.Values{
			"host": {p.sockets},
			"port": {strconv.Itoa(p.port)},
		}.Encode(),
	}).String()
}

// TCPDSN returns the connection string of a database over TCP, for clients without Unix sockets. It holds the
// password. It fails unless the server was started with TCP.
func (s *Server) TCPDSN(database string) (string, error) {
	running := s.current()
	if !running.tcp {
		return "", errNoTCP
	}
	password, err := os.ReadFile(filepath.Join(s.folder.root, passwordFile))
	if err != nil {
		return "", fmt.Errorf("read the password of the server: %w", err)
	}
	return (&url.URL{
		Scheme: "postgres",
		User:   url.UserPassword(superuser, strings.TrimSpace(string(password))),
		Host:   "127.0.0.1:" + strconv.Itoa(running.port),
		Path:   "/" + database,
	}).String(), nil
}

var errNoTCP = errors.New("the server runs without TCP: stop the other commands that use its data folder and try again")
