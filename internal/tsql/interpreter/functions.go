package interpreter

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

var (
	intType     = value.Of(value.Int)
	sysname     = value.Sized(value.NVarChar, 128)
	messageType = value.Sized(value.NVarChar, 4000)
)

// whole gives an int of the session.
func whole(n int64) func(*Session) value.Value {
	return func(*Session) value.Value { return value.Integer(value.Int, n) }
}

// A sessionFunction is a function without arguments that reads the session.
type sessionFunction struct {
	result value.Type
	read   func(*Session) value.Value
}

// sessionFunctions are the functions of the session by their name in upper case.
var sessionFunctions = map[string]sessionFunction{
	"@@ROWCOUNT":  {intType, func(s *Session) value.Value { return value.Integer(value.Int, s.rowCount) }},
	"@@ERROR":     {intType, func(s *Session) value.Value { return value.NewInt(s.lastError) }},
	"@@TRANCOUNT": {intType, func(s *Session) value.Value { return value.NewInt(s.depth) }},
	"@@NESTLEVEL": {intType, func(s *Session) value.Value { return value.NewInt(s.nesting()) }},
	"@@SPID": {
		value.Of(value.SmallInt), func(s *Session) value.Value { return value.Integer(value.SmallInt, int64(s.identity.Process)) },
	},
	"@@DATEFIRST": {
		value.Of(value.TinyInt), func(s *Session) value.Value { return value.Integer(value.TinyInt, int64(s.settings.DateFirst)) },
	},
	"@@LANGUAGE":     {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.options.language) }},
	"@@LOCK_TIMEOUT": {intType, func(s *Session) value.Value { return value.Integer(value.Int, s.options.lockTimeout) }},
	"@@TEXTSIZE":     {intType, func(s *Session) value.Value { return value.Integer(value.Int, s.options.textSize) }},
	"@@OPTIONS":      {intType, func(s *Session) value.Value { return value.NewInt(s.optionBits()) }},
	"@@SERVERNAME":   {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Server) }},
	"@@MAX_PRECISION": {
		value.Of(value.TinyInt), func(*Session) value.Value { return value.Integer(value.TinyInt, value.MaxPrecision) },
	},
	"@@PROCID":       {intType, whole(0)},
	"ROWCOUNT_BIG":   {value.Of(value.BigInt), func(s *Session) value.Value { return value.Integer(value.BigInt, s.rowCount) }},
	"XACT_STATE":     {value.Of(value.SmallInt), func(s *Session) value.Value { return value.Integer(value.SmallInt, s.xactState()) }},
	"ERROR_NUMBER":   {intType, ofError(func(e *fault.Error) value.Value { return value.NewInt(e.Number) }, intType)},
	"ERROR_SEVERITY": {intType, ofError(func(e *fault.Error) value.Value { return value.NewInt(e.Severity) }, intType)},
	"ERROR_STATE":    {intType, ofError(func(e *fault.Error) value.Value { return value.NewInt(e.State) }, intType)},
	"ERROR_LINE":     {intType, ofError(func(e *fault.Error) value.Value { return value.NewInt(e.Line) }, intType)},
	"ERROR_MESSAGE": {
		messageType, ofError(func(e *fault.Error) value.Value { return value.TextOf(messageType, e.Message) }, messageType),
	},
	"ERROR_PROCEDURE": {sysname, ofError(procedureOf, sysname)},
	"SYSTEM_USER":     {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Login) }},
	"ORIGINAL_LOGIN":  {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Login) }},
	"CURRENT_USER":    {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.User) }},
	"SESSION_USER":    {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.User) }},
	"USER":            {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.User) }},
	"HOST_NAME":       {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Host) }},
	"APP_NAME":        {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Program) }},
}

// callable are functions of the session that are called with parentheses and take no argument here.
var callable = map[string]func(*Session) value.Value{
	"DB_NAME":     databaseOf,
	"USER_NAME":   func(s *Session) value.Value { return value.TextOf(sysname, s.identity.User) },
	"SUSER_NAME":  func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Login) },
	"SUSER_SNAME": func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Login) },
}

// databaseOf is NULL where the session has not been in a database yet.
func databaseOf(s *Session) value.Value {
	if s.identity.Database == "" {
		return value.Null(sysname)
	}
	return value.TextOf(sysname, s.identity.Database)
}

func procedureOf(e *fault.Error) value.Value {
	if e.Procedure == "" {
		return value.Null(sysname)
	}
	return value.TextOf(sysname, e.Procedure)
}

// ofError reads the error in whose CATCH the session is; outside of CATCH it is NULL.
func ofError(read func(*fault.Error) value.Value, t value.Type) func(*Session) value.Value {
	return func(s *Session) value.Value {
		e := s.caughtError()
		if e == nil {
			return value.Null(t)
		}
		return read(e)
	}
}

// function gives a function of the session. A name with arguments that ask the database is the Translator's.
func (s *Session) function(name string) (*function.Function, bool) {
	found, known := sessionFunctions[name]
	if !known {
		read, isCallable := callable[name]
		if !isCallable {
			return nil, false
		}
		found = sessionFunction{sysname, read}
	}
	return &function.Function{
		Name: name, IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return found.result, nil },
		Call: func(*function.Context, value.Type, []value.Value) (value.Value, *fault.Error) {
			return found.read(s), nil
		},
	}, true
}

func (s *Session) xactState() int64 {
	switch {
	case s.depth == 0:
		return 0
	case s.isDoomed:
		return -1
	}
	return 1
}

// nesting counts the modules and dynamic batches that run.
func (s *Session) nesting() int {
	n := -1
	for a := s.current; a != nil; a = a.caller {
		n++
	}
	return max(n, 0)
}

// optionBits gives the options as @@OPTIONS has them.
func (s *Session) optionBits() int {
	bits := 0
	for name, bit := range map[string]int{
		"IMPLICIT_TRANSACTIONS": 2, "ANSI_WARNINGS": 8, "ANSI_NULLS": 32, "ARITHABORT": 64, "QUOTED_IDENTIFIER": 256, "NOCOUNT": 512,
		"CONCAT_NULL_YIELDS_NULL": 4096, "NUMERIC_ROUNDABORT": 8192, "XACT_ABORT": 16384,
	} {
		if *s.switches(name) {
			bits |= bit
		}
	}
	return bits | 16 | 1024 // ANSI_PADDING and ANSI_NULL_DFLT_ON are ON for good
}

// isTemporaryName reports whether a name is one of the session's own objects.
func isTemporaryName(name string) bool { return strings.HasPrefix(name, "#") }
