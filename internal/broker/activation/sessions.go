package activation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

const (
	// warmSessions stay connected when there is nothing to do, so that the first reader need not wait for a connection.
	warmSessions = 2
	// idleTime is after how long the others are closed.
	idleTime = time.Minute
	// cancelDelay is how long a session that was cancelled may take to answer before its connection is cut.
	cancelDelay = 2 * time.Second
	// warmUpQueue exists everywhere.
	warmUpQueue = "ServiceBrokerQueue"
)

// session is a connection that runs procedures, one after the other.
type session struct {
	conn     *pgx.Conn
	pid      uint32
	isDirect bool
	login    string
	// role is the one that it was connected for: another one may need another login.
	role string
	// queue is the queue that it was used for last: the same procedure finds its plans there.
	queue  string
	since  time.Time
	logger *slog.Logger
}

// sessions keeps sessions warm between readers. Those in use and those that wait are SessionsMax together.
type sessions struct {
	config Config
	places chan struct{}
	// cleaning are the sessions that are made as if new after a reader has left.
	cleaning sync.WaitGroup

	mu     sync.Mutex
	idle   []*session // the last one used stands last
	closed bool
	// noCheck: the server cannot detect whether a client is still there.
	noCheck bool
}

// trusted is how long a session may have been idle to be used without a question whether it is still there.
const trusted = time.Second

func newSessions(config Config) *sessions {
	return &sessions{config: config, places: make(chan struct{}, config.SessionsMax)}
}

// take gives a session for a procedure of a queue, waiting for a place when there is none.
func (s *sessions) take(ctx context.Context, q Queue) (*session, error) {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for warm := s.takeIdle(q); warm != nil; warm = s.takeIdle(q) {
		if warm.isThere(ctx) {
			return warm, nil
		}
		warm.close()
	}
	fresh, err := s.connect(ctx, q.ExecuteAs)
	if err != nil {
		<-s.places
		return nil, err
	}
	return fresh, nil
}

// isThere asks a session that was idle for long whether it is still there. The server may have ended it: its
// idle_session_timeout is the owner's.
func (s *session) isThere(ctx context.Context) bool {
	if time.Since(s.since) < trusted {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return s.conn.Ping(ctx) == nil
}

// takeIdle prefers a session that served the same queue, then the one used last. It takes none of another role's where that may be another
// login.
func (s *sessions) takeIdle(q Queue) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i, candidate := range slices.Backward(s.idle) {
		if s.config.ProcedureConfig != nil && candidate.role != q.ExecuteAs {
			continue
		}
		if best < 0 || candidate.queue == q.Name {
			best = i
		}
		if candidate.queue == q.Name {
			break
		}
	}
	if best < 0 {
		return nil
	}
	taken := s.idle[best]
	s.idle = slices.Delete(s.idle, best, best+1)
	return taken
}

// give takes a session back that is as it was, or closes it.
func (s *sessions) give(used *session) {
	s.mu.Lock()
	keep := !s.closed && !used.conn.IsClosed()
	if keep {
		used.since = time.Now()
		s.idle = append(s.idle, used)
	}
	s.mu.Unlock()
	if !keep {
		used.close()
	}
	<-s.places
}

// drop closes a session that is not worth keeping.
func (s *sessions) drop(used *session) {
	used.close()
	<-s.places
}

// tend keeps some sessions warm and closes others that have not been used for long, until ctx ends. Then it closes all.
func (s *sessions) tend(ctx context.Context, isNeeded func() bool) {
	defer s.close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if isNeeded() {
			s.warmUp(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, old := range s.takeOld() {
			old.close()
		}
	}
}

func (s *sessions) warmUp(ctx context.Context) {
	if s.config.ProcedureConfig != nil {
		return // which login it takes is known when there is a reader
	}
	for s.missing() > 0 && ctx.Err() == nil {
		select {
		case s.places <- struct{}{}:
		default:
			return
		}
		fresh, err := s.connect(ctx, "")
		if err != nil {
			<-s.places
			return // the readers that need one will report it
		}
		s.give(fresh)
	}
}

// missing reports how many warm sessions there should be besides those there are.
func (s *sessions) missing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	return warmSessions - len(s.idle) - len(s.places)
}

// takeOld takes out the sessions that are to be closed: unused for long, or dead.
func (s *sessions) takeOld() (old []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := len(s.idle)
	s.idle = slices.DeleteFunc(s.idle, func(candidate *session) bool {
		isOld := candidate.conn.IsClosed() || left > warmSessions && time.Since(candidate.since) > idleTime
		if isOld {
			left--
			old = append(old, candidate)
		}
		return isOld
	})
	return old
}

func (s *sessions) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, one := range idle {
		one.close()
	}
}

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// connect opens a session and lets it run through RECEIVE once, so that the first reader finds it compiled.
func (s *sessions) connect(ctx context.Context, role string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	opened := &session{logger: s.config.Logger, role: role}
	conn, err := s.open(ctx, opened)
	if err != nil {
		return nil, fmt.Errorf("connect a session for procedures: %w", err)
	}
	opened.conn = conn
	opened.pid, opened.isDirect, err = pgdb.Backend(ctx, conn)
	if err == nil {
		err = conn.QueryRow(ctx, "select session_user", pgx.QueryExecModeExec).Scan(&opened.login)
	}
	if err == nil && s.config.ProcedureConfig != nil {
		err = s.checkLogin(ctx, opened)
	}
	if err != nil {
		opened.close()
		return nil, fmt.Errorf("prepare a session for procedures: %w", err)
	}
	if _, err := parley.Receive(ctx, conn, warmUpQueue, parley.Top(0)); err != nil {
		opened.logger.Debug("a session could not be warmed up", "error", err)
	}
	return opened, nil
}

// open connects. The server is asked to check now and then whether the daemon is still there, and to end what the procedure
// does when it is not; some servers cannot, and poolers do not let that through.
func (s *sessions) open(ctx context.Context, opened *session) (*pgx.Conn, error) {
	const check = "client_connection_check_interval"
	config, err := s.settings(opened.role)
	if err != nil {
		return nil, err
	}
	pgdb.SetName(config, "parley reader")
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { opened.logNotice(notice) }
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelDelay}
	}
	s.mu.Lock()
	noCheck := s.noCheck
	s.mu.Unlock()
	if !noCheck {
		config.RuntimeParams[check] = "2s"
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	var refused *pgconn.PgError
	if !noCheck && errors.As(err, &refused) && refused.Code != "53300" {
		delete(config.RuntimeParams, check)
		if conn, err = pgx.ConnectConfig(ctx, config); err == nil {
			s.mu.Lock()
			s.noCheck = true
			s.mu.Unlock()
		}
	}
	return conn, err
}

// settings reports how to connect a session for a role.
func (s *sessions) settings(role string) (*pgx.ConnConfig, error) {
	if s.config.ProcedureConfig == nil {
		return s.config.Pool.Config().ConnConfig.Copy(), nil
	}
	return s.config.ProcedureConfig(role)
}

// checkLogin refuses a session of another broker than the daemon's, whose messages the procedure would receive in vain, and warns of one
// that gives procedures more than a login of their own is for.
func (s *sessions) checkLogin(ctx context.Context, opened *session) error {
	const broker = "select service_broker_guid from parley.databases"
	var here, there parley.UUID
	if err := s.config.Pool.QueryRow(ctx, broker).Scan(&here); err != nil {
		return err
	}
	var isSuperuser bool
	err := opened.conn.QueryRow(ctx, `
		select d.service_broker_guid, r.rolsuper
		from parley.databases as d, pg_catalog.pg_roles as r
		where r.rolname operator(pg_catalog.=) session_user`).
		Scan(&there, &isSuperuser)
	switch {
	case err != nil:
		return err
	case here != there:
		return fmt.Errorf("the login of procedures leads to broker %s, the daemon works for %s", there, here)
	case isSuperuser:
		opened.logger.Warn("procedures log in as a superuser: RESET ROLE in one of them gives it all rights", "login", opened.login)
	}
	return nil
}

// logNotice logs what a procedure prints.
func (s *session) logNotice(notice *pgconn.Notice) {
	level := slog.LevelInfo
	if notice.SeverityUnlocalized == "WARNING" {
		level = slog.LevelWarn
	}
	s.logger.Log(context.Background(), level, "the activated procedure says", "number", outputOfProcedure, "queue", s.queue,
		"severity", notice.Severity, "message", notice.Message, "detail", notice.Detail)
}
