//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/backoff"
)

const (
	// readyPoll is how often a starting server is asked whether it is ready.
	readyPoll = 20 * time.Millisecond
	// answerTimeout is how long a server may take to answer that.
	answerTimeout = 10 * time.Second
	// logBytesMax is how large the log may be when a server starts with it: 16 MB.
	logBytesMax = 16 << 20
)

// ensure makes sure that the server runs and takes connections. The caller holds the start lock.
func (s *Server) ensure(ctx context.Context) error {
	made, err := s.folder.clusterMajor()
	if err != nil {
		return err
	}
	if made != 0 && s.major != 0 && made != s.major {
		return fmt.Errorf("data folder %s was made by PostgreSQL %d and cannot be used by %d: "+
			"choose another folder with --data, or leave the version open", s.folder.root, made, s.major)
	}
	for {
		p, ok, err := s.folder.readPostmaster()
		if err != nil {
			return err
		}
		if !ok || !s.folder.serves(p.pid) && !listens(p) {
			break
		}
		ready, err := p.ready(ctx)
		if err != nil {
			return err
		}
		if ready {
			if s.config.TCP && !p.tcp {
				return errNoTCP
			}
			s.setRunning(p)
			return nil
		}
		if err := backoff.Wait(ctx, readyPoll); err != nil {
			return fmt.Errorf("wait for the server to take connections: %w", err)
		}
	}
	programs, err := s.programs(ctx, made)
	if err != nil {
		return err
	}
	if made == 0 {
		if err := createCluster(ctx, s.folder, programs, s.log); err != nil {
			return err
		}
		s.created = true
	}
	return s.launch(ctx, programs)
}

func (s *Server) setRunning(p postmaster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = p
}

// programs finds or fetches the programs for the cluster made by a version (0: none yet).
func (s *Server) programs(ctx context.Context, made int) (installation, error) {
	major := s.major
	if made != 0 {
		major = made
	}
	found, ok, err := findInstalled(s.config.Binaries, major, s.folder.account)
	if ok || err != nil {
		return found, err
	}
	if major == 0 {
		major = fetchedMajor
	}
	return fetch(ctx, s.config.Cache, major, s.folder.account, s.log)
}

// launch starts the server below a keeper and waits until it takes connections.
func (s *Server) launch(ctx context.Context, programs installation) error {
	f := s.folder
	if err := f.makeSockets(); err != nil {
		return err
	}
	if isThere, err := f.clearDead(ctx); err != nil {
		return err
	} else if isThere {
		return s.ensure(ctx)
	}
	settings := defaultSettings(memoryBytes())
	if programs.major >= 15 && supports(ctx, f, programs, "wal_compression", "lz4") {
		settings["wal_compression"] = "lz4"
	}
	p := postmaster{port: socketPort, sockets: f.sockets, tcp: s.config.TCP}
	if s.config.TCP {
		settings["listen_addresses"] = "127.0.0.1"
		// A server that is started again keeps its port, so that DSNs stay good.
		if p.port = s.current().port; p.port == 0 {
			var err error
			if p.port, err = freePort(); err != nil {
				return err
			}
		}
	}
	maps.Copy(settings, s.config.Settings)
	if err := writeSettings(f, settings); err != nil {
		return err
	}

	log, begin, err := f.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	task := keeperTask{
		Postgres: programs.program("postgres"),
		Args:     []string{"-D", f.cluster, "-k", p.sockets, "-p", strconv.Itoa(p.port)},
		Root:     f.root,
		UID:      f.account.uid,
		GID:      f.account.gid,
		Switched: f.account.switched,
		Linger:   s.config.Linger,
	}
	keeper, err := startKeeper(task, log)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- keeper.Wait() }()
	for {
		if ready, err := p.ready(ctx); err != nil {
			return err
		} else if ready {
			s.setRunning(p)
			return nil
		}
		select {
		case err := <-ended:
			if err == nil {
				return fmt.Errorf("PostgreSQL %d %w; its log %s ends with:\n%s", programs.major, errStopped, f.log, tail(f.log, begin))
			}
			return fmt.Errorf("PostgreSQL %d did not start; its log %s ends with:\n%s", programs.major, f.log, tail(f.log, begin))
		case <-ctx.Done():
			return fmt.Errorf("wait for the server to take connections: %w", context.Cause(ctx))
		case <-time.After(readyPoll):
		}
	}
}

// errStopped means that a server has not failed, but was stopped before it was seen to be ready.
var errStopped = errors.New("was stopped while it started")

// ready reports whether the server takes connections. An error means that it never will take ours.
func (p postmaster) ready(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.dsn("postgres"))
	var answer *pgconn.PgError
	switch {
	case err == nil:
		_ = conn.Close(ctx)
		return true, nil
	case errors.As(err, &answer):
		// cannot_connect_now: it is starting, stopping or in recovery. Any other refusal is a server at work.
		return answer.Code != "57P03", nil
	case errors.Is(err, os.ErrPermission):
		return false, fmt.Errorf("the server of this data folder belongs to another user, choose another folder with --data: %w", err)
	}
	return false, nil
}

// listens reports whether someone answers at the socket, even a process that we cannot see.
func listens(p postmaster) bool {
	conn, err := net.Dial("unix", filepath.Join(p.sockets, ".s.PGSQL."+strconv.Itoa(p.port)))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// openLog opens the log to append and returns where the new part begins. A log grown large is renamed first.
func (f *folder) openLog() (*os.File, int64, error) {
	if info, err := os.Lstat(f.log); err == nil && info.Size() > logBytesMax {
		if err := os.Rename(f.log, f.log+".old"); err != nil {
			return nil, 0, fmt.Errorf("set the old log aside: %w", err)
		}
	}
	log, err := openWithin(f.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the log: %w", err)
	}
	info, err := log.Stat()
	if err != nil {
		_ = log.Close()
		return nil, 0, fmt.Errorf("open the log: %w", err)
	}
	return log, info.Size(), nil
}

// tail returns the last lines of a log from a position on.
func tail(path string, begin int64) string {
	file, err := openWithin(path, os.O_RDONLY, 0)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, begin, logBytesMax))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
