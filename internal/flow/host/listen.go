package host

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// listen sends a signal for each notification of a change of definitions, until ctx ends. Notifications are hints: what is lost is found
// by asking for the number of the configuration.
func (s *Server) listen(ctx context.Context, changed *signal) {
	failures := backoff.NewFailures(s.config.Logger, "not notified of changes of definitions for now; asking at intervals")
	for ctx.Err() == nil {
		isPossible, err := s.listenOnce(ctx, changed)
		s.hear(false)
		if !isPossible && err == nil {
			s.config.Logger.Info("connected through a pooler: asking for changes of definitions at intervals")
			return
		}
		if ctx.Err() != nil {
			return
		}
		_ = backoff.Wait(ctx, failures.Failed(err))
	}
}

// listenOnce listens on a connection of its own for as long as that holds.
func (s *Server) listenOnce(ctx context.Context, changed *signal) (isPossible bool, err error) {
	config := s.config.Pool.Config().ConnConfig
	pgdb.SetName(config, "parley flow listener")
	connecting, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, config)
	if err != nil {
		return true, fmt.Errorf("connect for notifications: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, isPossible, err = pgdb.Backend(connecting, conn); err != nil || !isPossible {
		return isPossible, err
	}
	answers, err := flowstore.AnswerChannel(connecting, conn, s.config.Node)
	if err != nil && pgdb.SQLState(err) != "PF001" { // a login that may serve no host yet
		return true, err
	}
	statements := []string{"set idle_session_timeout = 0", "listen " + flowstore.ConfigurationChannel}
	if answers != "" {
		statements = append(statements, "listen "+pgx.Identifier{answers}.Sanitize())
	}
	// It is idle for as long as nobody changes definitions.
	for _, statement := range statements {
		if _, err := conn.Exec(connecting, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return true, fmt.Errorf("listen for changes of definitions: %w", err)
		}
	}
	changed.send()
	s.hear(answers != "")
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, fmt.Errorf("wait for changes of definitions: %w", err)
		}
		if notification.Channel != answers {
			changed.send()
			if answers == "" {
				return true, nil // it may serve a host by now
			}
			continue
		}
		if request, err := strconv.ParseInt(notification.Payload, 10, 64); err == nil {
			for _, host := range s.served() {
				host.requests.notify(request)
			}
		}
	}
}

// hear says to the hosts whether answers are notified.
func (s *Server) hear(isHeard bool) {
	s.mu.Lock()
	s.hears = isHeard
	s.mu.Unlock()
	for _, host := range s.served() {
		host.requests.hear(isHeard)
	}
}
