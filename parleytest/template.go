package parleytest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/schema"
)

const (
	templatePrefix = "parley_template_"
	// templatesKept is how many schemas may have their template at a time: checkouts and edits alternate.
	templatesKept = 4
)

// templateName names the template by the content of the schema, so that an edit of the schema gets its own.
var templateName = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(schema.Script()))
	return templatePrefix + hex.EncodeToString(sum[:8])
})

// ensureTemplate builds the template database with the schema installed unless it is there. Of several
// processes that want it one builds and the others wait.
func (r *testProcess) ensureTemplate(ctx context.Context, conn *pgx.Conn, name string) error {
	if exists, err := databaseExists(ctx, conn, name); exists || err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1, $2)", lockClass, templateLock); err != nil {
		return fmt.Errorf("wait for the template database: %w", err)
	}
	// The lock goes with the connection at the latest.
	defer func() { _, _ = conn.Exec(ctx, "select pg_advisory_unlock($1, $2)", lockClass, templateLock) }()
	if exists, err := databaseExists(ctx, conn, name); exists || err != nil {
		return err
	}
	// It gets its name last: a template with a name is whole.
	fresh := name + "_new"
	if err := dropDatabase(ctx, conn, fresh); err != nil {
		return err
	}
	if err := createDatabase(ctx, conn, fresh, "template0"); err != nil {
		return err
	}
	if err := r.installIn(ctx, fresh); err != nil {
		return err
	}
	for _, statement := range []string{
		"alter database %s with allow_connections false",
		"alter database %s rename to " + pgx.Identifier{name}.Sanitize(),
	} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(statement, pgx.Identifier{fresh}.Sanitize())); err != nil {
			return fmt.Errorf("finish the template database: %w", err)
		}
	}
	return pruneTemplates(ctx, conn)
}

func (r *testProcess) installIn(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, r.server.DSN(database))
	if err != nil {
		return fmt.Errorf("connect to the template database: %w", err)
	}
	defer conn.Close(ctx)
	return schema.Install(ctx, conn)
}

// pruneTemplates drops the oldest templates. A run that still wants one builds it again.
func pruneTemplates(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx,
		"select datname from pg_database where starts_with(datname, $1) order by oid desc offset $2", templatePrefix, templatesKept)
	if err != nil {
		return fmt.Errorf("find old templates: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find old templates: %w", err)
	}
	for _, name := range names {
		if err := dropDatabase(ctx, conn, name); err != nil {
			return err
		}
	}
	return nil
}

func databaseExists(ctx context.Context, conn *pgx.Conn, name string) (exists bool, err error) {
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("find database %s: %w", name, err)
	}
	return exists, nil
}

// createDatabase copies the files of the template. Without that strategy, servers from 15 on write each page of the copy to the WAL
// instead, which takes several times as much of the processor.
func createDatabase(ctx context.Context, conn *pgx.Conn, name, template string) error {
	statement := fmt.Sprintf("create database %s template %s", pgx.Identifier{name}.Sanitize(), pgx.Identifier{template}.Sanitize())
	if !strings.HasPrefix(conn.PgConn().ParameterStatus("server_version"), "14") {
		statement += " strategy file_copy"
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}
