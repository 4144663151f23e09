package security

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// A Translator compiles the statements on users, rights and keys, and leaves all others to another Translator.
type Translator struct {
	interpreter.Translator

	connection *connection.Connection
	keys       Keys
}

// New gives a Translator on a connection. Without keys it makes no certificates and reaches no file.
func New(c *connection.Connection, keys Keys, rest interpreter.Translator) *Translator {
	if rest == nil {
		rest = interpreter.None()
	}
	return &Translator{Translator: rest, connection: c, keys: keys}
}

// ofMasterKeys says where the master key is.
const ofMasterKeys = "the master key is a file of the daemon"

// Statement compiles a statement on users, rights and keys.
func (t *Translator) Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (interpreter.Statement, *fault.Error) {
	switch node := node.(type) {
	case *ast.Permission:
		return t.permission(node)
	case *ast.Authorization:
		return t.authorization(node)
	case *ast.Principal:
		return t.principal(node, scope)
	case *ast.Key:
		if node.Kind == "MASTER KEY" && node.Verb != "BACKUP" && node.Verb != "RESTORE" {
			return t.informed(node.Verb+" MASTER KEY", ofMasterKeys), nil
		}
	case *ast.Certificate:
		return t.certificate(node, scope)
	case *ast.BackupCertificate:
		return t.backupCertificate(node, scope)
	case *ast.Drop:
		switch node.Kind {
		case "USER", "LOGIN", "ROLE":
			return t.dropPrincipals(node), nil
		case "MASTER KEY":
			return t.informed("DROP MASTER KEY", ofMasterKeys), nil
		case "CERTIFICATE":
			return t.dropCertificates(node), nil
		}
	}
	return t.Translator.Statement(ctx, node, scope)
}

// A statement changes users or rights.
type statement struct {
	interpreter.SilentWrite

	run func(ctx context.Context, frame *expression.Frame, sink session.Sink) *fault.Error
}

// Run runs it.
func (s *statement) Run(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	return 0, false, s.run(ctx, frame, sink)
}

// informed gives a statement that does nothing and says so in one line.
func (t *Translator) informed(construct, reason string) *statement {
	return &statement{run: func(_ context.Context, _ *expression.Frame, sink session.Sink) *fault.Error {
		return inform(sink, construct, reason)
	}}
}

// refused gives the error for a construct that Parley has nothing for, with what to do in its place.
func refused(construct, reason string) *fault.Error {
	return expression.Unsupported(construct).Because(reason)
}

func inform(sink session.Sink, construct, reason string) *fault.Error {
	if err := sink.Message(&fault.Error{State: 1, Message: construct + " has no effect: " + reason + "."}); err != nil {
		return connection.Fault(err, "")
	}
	return nil
}

// ask gives the first value of a statement.
func (t *Translator) ask(ctx context.Context, sql string, parameters ...string) (value string, err error) {
	texts := make([][]byte, len(parameters))
	for i, p := range parameters {
		texts[i] = []byte(p)
	}
	return t.askWith(ctx, sql, texts)
}

// askWith is ask with parameters of which some are NULL.
func (t *Translator) askWith(ctx context.Context, sql string, parameters [][]byte) (value string, err error) {
	take := func(_ []pgconn.FieldDescription, row [][]byte) error {
		if len(row) > 0 {
			value = string(row[0])
		}
		return nil
	}
	_, err = t.connection.Run(ctx, connection.Statement{SQL: sql, Parameters: parameters, Row: take})
	return value, err
}

// written has the server write a statement from names and texts, and runs it: no text of the batch becomes SQL without the server's quotes.
func (t *Translator) written(ctx context.Context, format string, arguments ...string) error {
	var places strings.Builder
	for i := range arguments {
		places.WriteString(", $" + strconv.Itoa(i+1) + "::text")
	}
	command, err := t.ask(ctx, "select pg_catalog.format('"+strings.ReplaceAll(format, "'", "''")+"'"+places.String()+")", arguments...)
	if err == nil {
		_, err = t.ask(ctx, command)
	}
	return err
}

// roleOf gives the role that a name of a user stands for: dbo is the owner of the database, public is all, others are found without
// regard to case. Error 15151 where there is none.
func (t *Translator) roleOf(ctx context.Context, name string) (string, *fault.Error) {
	if strings.EqualFold(name, "public") {
		return "public", nil
	}
	role, err := t.ask(ctx, `select case when lower($1) in ('dbo', 'sa') then
  (select pg_catalog.pg_get_userbyid(d.datdba)::text from pg_catalog.pg_database as d where d.datname = current_database())
else (
  select r.rolname::text from pg_catalog.pg_roles as r where lower(r.rolname) = lower($1) order by r.rolname = $1 desc limit 1
) end`, name)
	switch {
	case err != nil:
		return "", connection.Fault(err, "SELECT")
	case role == "":
		return "", fault.New(15151, "find", "user", name)
	}
	return role, nil
}

func stateOf(err error) string {
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		return refused.Code
	}
	return ""
}
