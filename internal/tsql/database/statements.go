package database

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/calls"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// The settings of a database that keep its name in T-SQL and its broker.
const (
	nameSetting   = "parley.tsql_name"
	brokerSetting = "parley.tsql_broker"
)

// stateOf gives the SQLSTATE of an error of the database.
func stateOf(err error) string {
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		return refused.Code
	}
	return ""
}

// create compiles CREATE DATABASE: a database with a broker that is enabled.
func (t *Translator) create(node *ast.Database) (*statement, *fault.Error) {
	switch {
	case node.For != "":
		return nil, expression.Unsupported("CREATE DATABASE FOR " + node.For)
	case node.SnapshotOf != "":
		return nil, expression.Unsupported("CREATE DATABASE AS SNAPSHOT")
	case !node.CopyOf.IsEmpty():
		return nil, expression.Unsupported("CREATE DATABASE AS COPY")
	}
	for _, option := range node.Options {
		if err := refusedPart("ALTER DATABASE SET " + option.Name); err != nil {
			return nil, err
		}
	}
	return t.statement("CREATE DATABASE", func(ctx context.Context, _ *expression.Frame, sink session.Sink) *fault.Error {
		name := folded(node.Name)
		command, err := t.here(ctx, "select pg_catalog.format('create database %I', $1::text)", name)
		if err == nil {
			_, err = t.here(ctx, command)
		}
		switch {
		case stateOf(err) == "42P04":
			return fault.New(1801, node.Name)
		case stateOf(err) == "42501":
			return fault.New(262, "CREATE DATABASE", "master")
		case err != nil:
			return connection.Fault(err, "CREATE DATABASE")
		}
		if err := t.furnish(ctx, name, node.Name); err != nil {
			return connection.Fault(err, "CREATE DATABASE")
		}
		if node.HasOn || len(node.Log) > 0 {
			if lost := inform(sink, "CREATE DATABASE ON files", ""); lost != nil {
				return lost
			}
		}
		if node.Collation != "" {
			if lost := inform(sink, "CREATE DATABASE COLLATE", "text compares by SQL_Latin1_General_CP1_CI_AS"); lost != nil {
				return lost
			}
		}
		for _, option := range node.Options {
			if lost := inform(sink, "WITH "+option.Name, check.Find("ALTER DATABASE SET "+option.Name).Reason); lost != nil {
				return lost
			}
		}
		return nil
	}), nil
}

// furnish installs a broker in a new database. Where that fails the database is taken away again.
func (t *Translator) furnish(ctx context.Context, name, written string) error {
	conn, err := t.connection.Dial(ctx, name)
	if err != nil {
		return err
	}
	err = t.install(ctx, conn)
	_ = conn.Close(context.WithoutCancel(ctx))
	if err == nil {
		err = t.set(ctx, name, nameSetting, written)
	}
	if err == nil {
		err = t.record(ctx, name)
	}
	if err != nil {
		if command, bad := t.here(context.WithoutCancel(ctx), "select pg_catalog.format('drop database %I', $1::text)", name); bad == nil {
			_, _ = t.here(context.WithoutCancel(ctx), command)
		}
	}
	return err
}

// set keeps a setting of a database, which sessions in other databases can read.
func (t *Translator) set(ctx context.Context, database, setting, value string) error {
	command, err := t.here(ctx, "select pg_catalog.format('alter database %I set "+setting+" = %L', $1::text, $2::text)", database, value)
	if err == nil {
		_, err = t.here(ctx, command)
	}
	return err
}

// record keeps which broker a database has and whether it is enabled.
func (t *Translator) record(ctx context.Context, database string) error {
	broker, err := t.on(ctx, database, `select concat(service_broker_guid, case when is_broker_enabled then ' on' else ' off' end)
from parley.databases`)
	if err != nil {
		return err
	}
	return t.set(ctx, database, brokerSetting, broker)
}

// drop compiles DROP DATABASE.
func (t *Translator) drop(node *ast.Drop) *statement {
	return t.statement("DROP DATABASE", func(ctx context.Context, _ *expression.Frame, _ session.Sink) *fault.Error {
		for _, name := range node.Names {
			err := t.dropOne(ctx, name.Object())
			switch state := stateOf(err); {
			case err == nil, node.IfExists && state == "3D000":
			case state == "3D000", state == "42501":
				return fault.New(3701, "drop", "database", name.Object())
			case state == "55006":
				return fault.New(3702, name.Object())
			default:
				return connection.Fault(err, "DROP DATABASE")
			}
		}
		return nil
	})
}

// dropOne drops a database, waiting a moment for sessions that are just leaving, as PostgreSQL does.
func (t *Translator) dropOne(ctx context.Context, name string) error {
	command, err := t.here(ctx, "select pg_catalog.format('drop database %I', $1::text)", folded(name))
	if err == nil {
		_, err = t.here(ctx, command)
	}
	return err
}

// leave ends the other sessions of a database that the role may end.
const leave = `select count(pg_catalog.pg_terminate_backend(a.pid))
from pg_catalog.pg_stat_activity as a
where a.datname = $1 and a.pid <> pg_catalog.pg_backend_pid() and a.backend_type = 'client backend'
  and pg_catalog.pg_has_role(a.usesysid, 'usage')`

// alter compiles ALTER DATABASE.
func (t *Translator) alter(node *ast.AlterDatabase, _ expression.Scope) (*statement, *fault.Error) {
	for _, option := range node.Options {
		if err := refusedPart("ALTER DATABASE SET " + option.Name); err != nil {
			return nil, err
		}
	}
	return t.statement("ALTER DATABASE", func(ctx context.Context, _ *expression.Frame, sink session.Sink) *fault.Error {
		name := folded(node.Name)
		if node.Current {
			current, err := t.connection.Current(ctx)
			if err != nil {
				return connection.Fault(err, "ALTER DATABASE")
			}
			name = current
		}
		exists, err := t.here(ctx, "select count(*) from pg_catalog.pg_database as d where d.datname = $1", name)
		switch {
		case err != nil:
			return connection.Fault(err, "ALTER DATABASE")
		case exists != "1":
			return fault.New(5011, node.Name)
		}
		if strings.HasPrefix(node.Termination, "ROLLBACK") {
			if _, err := t.here(ctx, leave, name); err != nil {
				return connection.Fault(err, "ALTER DATABASE")
			}
		}
		switch node.Action {
		case "SET":
			return t.setOptions(ctx, name, node, sink)
		case "MODIFY NAME":
			return t.rename(ctx, name, node)
		}
		return inform(sink, "ALTER DATABASE "+node.Action, "")
	}), nil
}

func (t *Translator) setOptions(ctx context.Context, name string, node *ast.AlterDatabase, sink session.Sink) *fault.Error {
	for _, option := range node.Options {
		statement, argument := "SET "+option.Name, ""
		if option.Name == "HONOR_BROKER_PRIORITY" {
			word, is := option.Value.(*ast.Keyword)
			argument = strconv.FormatBool(is && word.Word == "ON")
		}
		if !calls.Has(statement) {
			if lost := inform(sink, "ALTER DATABASE SET "+option.Name, "PostgreSQL has its own settings for that"); lost != nil {
				return lost
			}
			continue
		}
		if _, err := t.on(ctx, name, "select "+calls.Text(statement, argument)); err != nil {
			if stateOf(err) == "3F000" {
				return fault.New(8442)
			}
			return connection.Fault(err, "ALTER DATABASE")
		}
		// Sessions in other databases read it; only the owner of the database may write it, and the switch has worked all the same.
		if err := t.record(ctx, name); err != nil && stateOf(err) != "42501" {
			return connection.Fault(err, "ALTER DATABASE")
		}
	}
	return nil
}

// rename renames a database in which nobody is.
func (t *Translator) rename(ctx context.Context, name string, node *ast.AlterDatabase) *fault.Error {
	command, err := t.here(ctx, "select pg_catalog.format('alter database %I rename to %I', $1::text, $2::text)", name, folded(node.NewName))
	if err == nil {
		_, err = t.here(ctx, command)
	}
	if err == nil {
		err = t.set(ctx, folded(node.NewName), nameSetting, node.NewName)
	}
	switch stateOf(err) {
	case "55006", "0A000":
		return fault.New(5030)
	case "42P04":
		return fault.New(1801, node.NewName)
	}
	if err != nil {
		return connection.Fault(err, "ALTER DATABASE")
	}
	return nil
}
