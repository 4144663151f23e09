package interpreter

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// options are the settings of the session that are no settings of values.
type options struct {
	noCount, xactAbort, implicitTransactions, quotedIdentifier bool
	noExec                                                     bool // batches are compiled, and nothing of them runs
	lockTimeout, rowCount, textSize                            int64
	language, isolation                                        string
}

func defaultOptions() options {
	return options{quotedIdentifier: true, lockTimeout: -1, textSize: -1, language: "us_english", isolation: "read committed"}
}

// switches has the options that are on or off, each with its place.
func (s *Session) switches(name string) *bool {
	switch name {
	case "NOCOUNT":
		return &s.options.noCount
	case "NOEXEC":
		return &s.options.noExec
	case "XACT_ABORT":
		return &s.options.xactAbort
	case "IMPLICIT_TRANSACTIONS":
		return &s.options.implicitTransactions
	case "QUOTED_IDENTIFIER":
		return &s.options.quotedIdentifier
	case "ANSI_WARNINGS":
		return &s.settings.ANSIWarnings
	case "ARITHABORT":
		return &s.settings.ArithAbort
	case "CONCAT_NULL_YIELDS_NULL":
		return &s.settings.ConcatNullYieldNull
	case "ANSI_NULLS":
		return &s.settings.ANSINulls
	case "NUMERIC_ROUNDABORT":
		return &s.settings.NumericRoundAbort
	}
	return nil
}

// ignoredSwitches change nothing that Parley does.
var ignoredSwitches = map[string]bool{
	"ANSI_PADDING": true, "ANSI_NULL_DFLT_ON": true, "ANSI_NULL_DFLT_OFF": true, "ARITHIGNORE": true, "CURSOR_CLOSE_ON_COMMIT": true,
	"FORCEPLAN": true, "REMOTE_PROC_TRANSACTIONS": true, "NO_BROWSETABLE": true,
}

func (c *compiler) setOptions(node *ast.SetOptions) *fault.Error {
	for _, name := range node.Options {
		switch {
		case name == "ANSI_DEFAULTS" || ignoredSwitches[name] || c.session.switches(name) != nil:
		default:
			return expression.Unsupported("SET " + name)
		}
	}
	at := len(c.program.instructions)
	c.simply(node, func(_ context.Context, a *activation) *fault.Error {
		for _, name := range node.Options {
			a.session.turn(name, node.On)
		}
		a.session.succeeded(0)
		return nil
	})
	for i := range c.program.instructions[at:] {
		c.program.instructions[at+i].setsNoExec = slices.Contains(node.Options, "NOEXEC")
	}
	return nil
}

// turn turns an option on or off; ANSI_DEFAULTS stands for several.
func (s *Session) turn(name string, on bool) {
	if name == "ANSI_DEFAULTS" {
		for _, each := range []string{"ANSI_NULLS", "ANSI_WARNINGS", "IMPLICIT_TRANSACTIONS", "QUOTED_IDENTIFIER"} {
			s.turn(each, on)
		}
		return
	}
	if place := s.switches(name); place != nil {
		*place = on
	}
}

// setValue compiles SET with a value: DATEFORMAT, DATEFIRST and others.
func (c *compiler) setValue(node *ast.SetValue) *fault.Error {
	var e *expression.Expression
	if word, isWord := node.Value.(*ast.Keyword); isWord {
		e, _ = expression.Compile(&ast.Literal{Kind: ast.String, Text: word.Word}, c)
	} else {
		compiled, err := expression.Compile(node.Value, c)
		if err != nil {
			return err
		}
		e = compiled
	}
	set, known := valueOptions[node.Option]
	if !known {
		return expression.Unsupported("SET " + node.Option)
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		v, err := e.Evaluate(a.frameOf(ctx))
		if err != nil {
			return err
		}
		if err := set(a.session, v); err != nil {
			return err
		}
		a.session.succeeded(0)
		return nil
	})
	return nil
}

// dateOrders are the orders of SET DATEFORMAT.
var dateOrders = map[string]bool{"mdy": true, "dmy": true, "ymd": true, "ydm": true, "myd": true, "dym": true}

// valueOptions sets each option that has a value.
var valueOptions = map[string]func(*Session, value.Value) *fault.Error{
	"DATEFORMAT": func(s *Session, v value.Value) *fault.Error {
		order := strings.ToLower(s.settings.Text(v))
		if !dateOrders[order] {
			return fault.New(2741, order)
		}
		s.settings.DateOrder = value.DateOrder(order)
		return nil
	},
	"DATEFIRST": func(s *Session, v value.Value) *fault.Error {
		n, err := s.settings.Assign(v, value.Of(value.Int))
		if err != nil {
			return err
		}
		if n.Int64() < 1 || n.Int64() > 7 {
			return fault.New(2742, n.Int64())
		}
		s.settings.DateFirst = int(n.Int64())
		return nil
	},
	"LANGUAGE": func(s *Session, v value.Value) *fault.Error {
		if name := strings.ToLower(s.settings.Text(v)); name != "us_english" && name != "english" {
			return expression.Unsupported("SET LANGUAGE " + name)
		}
		s.inform(fault.New(5703, "us_english"))
		return nil
	},
	"LOCK_TIMEOUT": func(s *Session, v value.Value) *fault.Error {
		if err := s.number(v, &s.options.lockTimeout); err != nil {
			return err
		}
		return s.onConnection(func(c Connection) error {
			c.SetLockTimeout(s.options.lockTimeout)
			return nil
		})
	},
	"TEXTSIZE": func(s *Session, v value.Value) *fault.Error { return s.number(v, &s.options.textSize) },
	"CONTEXT_INFO": func(s *Session, v value.Value) *fault.Error {
		info, err := s.settings.Assign(v, contextType)
		if err == nil {
			s.contextInfo = info
		}
		return err
	},
	"DEADLOCK_PRIORITY": func(*Session, value.Value) *fault.Error { return nil },
	"ROWCOUNT": func(s *Session, v value.Value) *fault.Error {
		if v.IsNull() || !v.Kind().IsInteger() || v.Int64() < 0 {
			return fault.New(507)
		}
		s.options.rowCount = v.Int64()
		return nil
	},
}

// number takes a whole number as the value of an option.
func (s *Session) number(v value.Value, to *int64) *fault.Error {
	n, err := s.settings.Assign(v, value.Of(value.Int))
	if err == nil {
		*to = n.Int64()
	}
	return err
}

// RowLimit gives the number of SET ROWCOUNT; 0 where all rows count.
func (s *Session) RowLimit() int64 { return s.options.rowCount }

// isolations has PostgreSQL's level for each of SQL Server's.
var isolations = map[string]string{
	"READ UNCOMMITTED": "read committed", "READ COMMITTED": "read committed", "REPEATABLE READ": "repeatable read",
	"SNAPSHOT": "repeatable read", "SERIALIZABLE": "serializable",
}

func (c *compiler) setIsolation(node *ast.SetIsolation) *fault.Error {
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		s := a.session
		s.options.isolation = strings.ToLower(node.Level)
		s.succeeded(0)
		return s.onConnection(func(c Connection) error { return c.SetIsolation(ctx, isolations[node.Level]) })
	})
	return nil
}

// use goes on in another database, and says so.
func (s *Session) use(ctx context.Context, database string) *fault.Error {
	if s.connection == nil {
		return fault.New(40510, "USE")
	}
	if err := s.enter(ctx, database); err != nil {
		return err
	}
	s.send(fault.New(5701, s.identity.Database))
	s.succeeded(0)
	return nil
}

// comeBack ends the USE of a text that was executed.
func (s *Session) comeBack(ctx context.Context, database string) *fault.Error {
	if s.identity.Database == database || s.broken != nil || database == "" {
		return nil //nolint:nilerr // a session that is broken stays where it is
	}
	return s.enter(ctx, database)
}

// enter goes on in another database. A transaction stays where it is: it may name its own database alone.
func (s *Session) enter(ctx context.Context, database string) *fault.Error {
	if s.IsInTransaction() && strings.EqualFold(database, s.identity.Database) {
		return nil
	}
	// Table variables follow the session; temporary tables stay behind with the connection.
	s.translator.RollsBack(ctx)
	err := s.onConnection(func(c Connection) (err error) {
		database, err = c.Use(ctx, database)
		return err
	})
	s.translator.RolledBack(ctx, false)
	if err != nil {
		return err
	}
	s.identity.Database = database
	maps.DeleteFunc(s.modules, func(name string, _ *module) bool { return !isTemporaryName(name) })
	return nil
}

func upper(name string) string { return strings.ToUpper(name) }
