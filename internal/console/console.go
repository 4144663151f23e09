package console

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/net/netutil"
)

// Target is a database that the console shows.
type Target struct {
	// Name stands on the page, unique among the targets.
	Name string
	// Config is where it is. Its user and password serve the key alone; who logs in brings others.
	Config *pgx.ConnConfig
}

// Config says what a console serves.
type Config struct {
	// Targets are the databases, at least one.
	Targets []Target
	// Key lets in who knows it, as the role of the configuration of the first target; empty for nobody. It serves once.
	Key string
	// ReadOnly refuses every change.
	ReadOnly bool
	// Secure says that browsers reach the console by TLS, here or at a proxy: its cookie is sent in no other way.
	Secure bool
	// IsBehindProxy says that a proxy in front of the console adds the addresses of browsers to X-Forwarded-For.
	IsBehindProxy bool
	// Logger gets logins, refusals and changes; nil for none.
	Logger *slog.Logger
	// recheckInterval is how long a connection lives, and with it how long a password that was changed still serves.
	recheckInterval time.Duration
}

// Console is the handler of the pages, with the sessions of those who are logged in.
type Console struct {
	config   Config
	sessions *sessions
	attempts *attempts
	pages    *pages
	handler  http.Handler
}

// The limits of the server: headers and forms are small, and a page has answered or failed within a few seconds.
const (
	headerTimeout   = 5 * time.Second
	formTimeout     = 20 * time.Second
	answerTimeout   = 30 * time.Second
	shutdownTimeout = 5 * time.Second
	headerBytesMost = 32 << 10
	formBytesMost   = 1 << 20
	// Each browser has a few; one that opens more leaves the files of the process to the daemon.
	connectionsAtOnce = 512
)

// New makes a console.
//
// Errors: none of the targets, or two of one name.
func New(config Config) (*Console, error) {
	if len(config.Targets) == 0 {
		return nil, errors.New("a console needs a database")
	}
	names := map[string]bool{}
	for _, target := range config.Targets {
		if names[target.Name] {
			return nil, fmt.Errorf("two databases of the console are named %s", target.Name)
		}
		names[target.Name] = true
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	made, err := parsePages()
	if err != nil {
		return nil, err
	}
	config.recheckInterval = cmp.Or(config.recheckInterval, time.Minute)
	c := &Console{config: config, sessions: newSessions(config.Secure), attempts: newAttempts(), pages: made}
	c.handler = c.guard(c.routes())
	return c, nil
}

// Handler is the handler of all pages, with what guards them.
func (c *Console) Handler() http.Handler { return c.handler }

// Serve answers on a listener until ctx ends, which is no error, and then closes the connections of all sessions. A nil
// certificate serves without TLS.
func (c *Console) Serve(ctx context.Context, listener net.Listener, certificate *tls.Certificate) error {
	server := &http.Server{
		Handler: c.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: formTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: time.Minute, MaxHeaderBytes: headerBytesMost,
		ErrorLog: slog.NewLogLogger(c.config.Logger.Handler(), slog.LevelWarn),
	}
	listener = netutil.LimitListener(listener, connectionsAtOnce)
	if certificate != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	sweeping, stopSweeping := context.WithCancel(ctx)
	defer stopSweeping()
	go c.sessions.sweep(sweeping)
	defer c.sessions.closeAll()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the console: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}
