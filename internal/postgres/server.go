//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/parley-broker/parley/internal/backoff"
)

const (
	startLock = "start.lock"
	usersLock = "users.lock"
)

// Server is a hold on a running private PostgreSQL.
type Server struct {
	config Config
	major  int // asked for; 0: any
	folder *folder
	log    *slog.Logger

	mu      sync.Mutex
	running postmaster
	created bool
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
		if err := backoff.Wait(ctx, lockPoll); err != nil {
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

// Version is the major version of the server.
func (s *Server) Version() (int, error) { return s.folder.clusterMajor() }

// Command prepares a program to run as the server's operating system user, who can reach its socket.
func (s *Server) Command(program string, args ...string) *exec.Cmd {
	return s.folder.account.command(program, args...)
}

// Own gives a file or folder to the server's operating system user.
func (s *Server) Own(path string) error { return s.folder.account.own(path) }

// Created reports whether Start made the cluster, because the data folder had none.
func (s *Server) Created() bool { return s.created }

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
	password, err := readWithin(filepath.Join(s.folder.root, passwordFile))
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
