package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/postgres"
)

// PrivateDatabase is the database that commands use in the private PostgreSQL.
const PrivateDatabase = "parley"

// stopTimeout leaves time for the checkpoint of a fast shutdown.
const stopTimeout = 2 * time.Minute

// privateServer is the private PostgreSQL once a verb has asked for it.
type privateServer struct {
	Server *postgres.Server
	dsn    string
	// TCP asks for a server that listens on a port too.
	TCP bool
}

// Connect opens one connection to the database of this command. The caller closes it.
func (a *App) Connect(ctx context.Context) (*pgx.Conn, error) { return a.ConnectTo(ctx, "") }

// ConnectTo is Connect to another database of the same server, or to the same one where the name is empty.
func (a *App) ConnectTo(ctx context.Context, database string) (*pgx.Conn, error) {
	dsn, err := a.ResolveDSN(ctx)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, a.BadDSN(err)
	}
	if database != "" {
		config.Database = database
	}
	// Ctrl-C ends the statement in the database too: a RECEIVE that nobody waits for any more would take messages.
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: CloseTimeout}
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { a.printNotice(notice) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, ExplainConnection(err)
	}
	if err := PrepareSession(ctx, conn); err != nil {
		CloseConnection(ctx, conn)
		return nil, err
	}
	return conn, nil
}

// PrepareSession sets what the command relies on. Behind a pooler it may be that transactions begin at another level than READ COMMITTED:
// then reading goes on, and what needs that level refuses by itself.
func PrepareSession(ctx context.Context, conn *pgx.Conn) error {
	if err := pgdb.PrepareSession(ctx, conn); err != nil && !errors.Is(err, pgdb.ErrIsolation) {
		return err
	}
	return nil
}

// printNotice passes on the notices of the broker and of mail.
func (a *App) printNotice(notice *pgconn.Notice) {
	if !strings.HasPrefix(notice.Detail, "Service Broker error ") && !strings.HasPrefix(notice.Code, "PM") {
		return
	}
	fmt.Fprintf(a.Stderr, "parley: %s\n", notice.Message)
	if notice.Detail != "" {
		fmt.Fprintf(a.Stderr, "DETAIL: %s\n", notice.Detail)
	}
	if notice.Hint != "" {
		fmt.Fprintf(a.Stderr, "HINT: %s\n", InVerbs(notice.Hint))
	}
}

// ResolveDSN reports which database this command uses. The private PostgreSQL is started, or joined when
// another command has started it, only if nothing else is named; it is released when the command ends.
func (a *App) ResolveDSN(ctx context.Context) (string, error) {
	if a.DSN != "" {
		return a.DSN, nil
	}
	// Asking for a private server by flag beats the environment.
	if a.Data == "" && a.PostgresVersion == "" {
		for _, name := range []string{"PARLEY_DSN", "DATABASE_URL"} {
			if dsn := os.Getenv(name); dsn != "" {
				return dsn, nil
			}
		}
	}
	return a.StartPrivate(ctx)
}

// NamesDatabase reports whether the command line or the environment names a database, or a private PostgreSQL.
func (a *App) NamesDatabase() bool {
	for _, value := range []string{a.DSN, a.Data, os.Getenv("PARLEY_DSN"), os.Getenv("DATABASE_URL"), os.Getenv("PARLEY_DATA")} {
		if value != "" {
			return true
		}
	}
	return false
}

// StartPrivate starts or joins the private PostgreSQL and returns the DSN of its database.
func (a *App) StartPrivate(ctx context.Context) (string, error) {
	if a.Private.Server != nil {
		return a.Private.dsn, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Data:    cmp.Or(a.Data, os.Getenv("PARLEY_DATA")),
		Version: cmp.Or(a.PostgresVersion, os.Getenv("PARLEY_POSTGRES_VERSION")),
		TCP:     a.Private.TCP,
		Logger:  a.Notices(),
	})
	if err != nil {
		return "", fmt.Errorf("start the private PostgreSQL: %w", err)
	}
	a.Private.Server = server
	if err := server.EnsureDatabase(ctx, PrivateDatabase); err != nil {
		return "", err
	}
	if server.Created() {
		a.warnOfNewCluster(server.Folder())
	}
	a.Private.dsn = server.DSN(PrivateDatabase)
	return a.Private.dsn, nil
}

// warnOfNewCluster warns a user who forgot --dsn or --data that the database is a new and empty one.
func (a *App) warnOfNewCluster(folder string) {
	const text = "parley: a new private PostgreSQL was made in %s; " +
		"if that is not meant, name a server with --dsn or an existing folder with --data\n"
	fmt.Fprintf(a.Stderr, text, folder)
}

// Notices prints what takes long, such as a download, and what went wrong by itself, such as a crash.
func (a *App) Notices() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		},
	}))
}

// Release lets go of the private PostgreSQL, which stops it when no other command uses it.
// It runs after Ctrl-C too, so it must not end with the command's context.
func (a *App) Release(ctx context.Context) error {
	if a.Private.Server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	server := a.Private.Server
	a.Private = privateServer{}
	if err := server.Stop(ctx); err != nil {
		return fmt.Errorf("stop the private PostgreSQL: %w", err)
	}
	return nil
}

// CloseTimeout bounds the farewell to a server that does not answer.
const CloseTimeout = 5 * time.Second

// CloseConnection ends the session properly even when the command was interrupted.
func CloseConnection(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloseTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// DueIn is a time by the clock of the database.
func DueIn(ctx context.Context, db parley.DB, delay time.Duration) (due time.Time, err error) {
	err = db.QueryRow(ctx, "select clock_timestamp() + $1::float8 * interval '1 second'", delay.Seconds()).Scan(&due)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock of the database: %w", err)
	}
	return due, nil
}
