package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/schema"
)

// The objects of the paper, for both sides and for each of them; and the ledger of what was sent.
var (
	//go:embed objects.sql
	objects string
	//go:embed initiator.sql
	initiatorObjects string
	//go:embed target.sql
	targetObjects string
	//go:embed ledger.sql
	ledgerTable string
)

// ownMark is the comment on databases of the demo. No other database is ever dropped.
const ownMark = "Made by parley demo, which drops it again."

const (
	// dropTimeout is for a server that is still busy with what was just cut off.
	dropTimeout  = time.Minute
	closeTimeout = 5 * time.Second
)

// database is the one that a run has for itself.
type database struct {
	admin  *pgx.Conn
	config *pgx.ConnConfig
	name   string
}

// createDatabase makes the database of a run beside the one that admin is connected to, without anything in it.
func createDatabase(ctx context.Context, admin *pgx.Conn, name string) (*database, error) {
	db := &database{admin: admin, config: admin.Config(), name: name}
	db.config.Database = name
	db.config.RuntimeParams["application_name"] = "parley demo"
	db.config.RuntimeParams["search_path"] = "public"

	// Two runs at once in one database would count each other's messages.
	var alone bool
	if err := admin.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended('parley demo ' || $1, 0))", name).Scan(&alone); err != nil {
		return nil, fmt.Errorf("find another demo: %w", err)
	}
	if !alone {
		return nil, fmt.Errorf("another demo uses database %s just now: wait for it, or give --database another name", name)
	}
	var comment *string
	err := admin.QueryRow(ctx, "select shobj_description(oid, 'pg_database') from pg_database where datname = $1", name).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return nil, fmt.Errorf("find database %s: %w", name, err)
	case comment == nil || *comment != ownMark:
		return nil, fmt.Errorf("database %s exists and is not of an earlier demo: give --database another name", name)
	}
	for _, statement := range []string{
		"drop database if exists %s with (force)",
		"create database %s template template0",
		"comment on database %s is '" + ownMark + "'",
	} {
		if err := db.administer(ctx, statement); err != nil {
			return nil, fmt.Errorf("make database %s: %w", name, err)
		}
	}
	return db, nil
}

// administer runs a statement that names the database. Such statements take no parameters.
func (db *database) administer(ctx context.Context, statement string) error {
	_, err := db.admin.Exec(ctx, fmt.Sprintf(statement, pgx.Identifier{db.name}.Sanitize()))
	return err
}

// connect opens a session in the database.
func (db *database) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, db.config.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect to database %s: %w", db.name, err)
	}
	return conn, nil
}

// drop removes the database, after an interrupted run too.
func (db *database) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := db.administer(ctx, "drop database if exists %s with (force)"); err != nil {
		return fmt.Errorf("drop database %s: %w", db.name, err)
	}
	return nil
}

// furnish installs the schema and creates objects of the paper: those of both sides, and what else is given.
func furnish(ctx context.Context, conn *pgx.Conn, scripts ...string) error {
	if err := schema.Install(ctx, conn); err != nil {
		return err
	}
	for _, script := range append([]string{objects}, scripts...) {
		if _, err := conn.Exec(ctx, script, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("create the objects of the demo: %w", err)
		}
	}
	return nil
}

// activate lets the messages of the paper's queue start their readers.
func activate(ctx context.Context, conn *pgx.Conn, readers int) error {
	_, err := conn.Exec(ctx, `
		select parley.alter_queue(
			'MySSBLabTestQueue',
			activation_procedure => 'public.receive_lab_test', max_queue_readers => $1, execute_as => 'OWNER', activation => true
		)`, readers)
	if err != nil {
		return fmt.Errorf("activate the queue of the demo: %w", err)
	}
	return nil
}

// closeConn ends the session properly even when the demo was interrupted.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}
