package interpreter

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

var (
	intType     = value.Of(value.Int)
	sysname     = value.Sized(value.NVarChar, 128)
	messageType = value.Sized(value.NVarChar, 4000)
	contextType = value.Sized(value.VarBinary, 128)
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
	"@@PROCID":           {intType, whole(0)},
	"@@MICROSOFTVERSION": {intType, whole(16<<24 + 1000)}, // that of @@VERSION: major, minor, build
	"@@LANGID":           {value.Of(value.SmallInt), func(*Session) value.Value { return value.Integer(value.SmallInt, 0) }},
	"@@SERVICENAME":      {sysname, func(*Session) value.Value { return value.TextOf(sysname, "PARLEY") }},
	"@@VERSION": {
		value.Sized(value.NVarChar, 300), func(*Session) value.Value {
			return value.TextOf(value.Sized(value.NVarChar, 300), "Parley: the T-SQL of SQL Server 2022 (16.0.1000.6) on PostgreSQL")
		},
	},
	"CONTEXT_INFO":   {contextType, func(s *Session) value.Value { return s.contextInfo }},
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
	"PROGRAM_NAME":    {sysname, func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Program) }},
}

// A named function gives a name of the session, or the one of a number, which the Translator knows by another name.
type named struct {
	letters string
	read    func(*Session) value.Value
	other   string
}

// callable are functions of the session that are called with parentheses.
var callable = map[string]named{
	"DB_NAME":     {"?b", databaseOf, "NAME OF A DATABASE"},
	"USER_NAME":   {"?b", func(s *Session) value.Value { return value.TextOf(sysname, s.identity.User) }, "NAME OF A USER"},
	"SUSER_NAME":  {"?b", func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Login) }, "NAME OF A LOGIN"},
	"SUSER_SNAME": {"?x", func(s *Session) value.Value { return value.TextOf(sysname, s.identity.Login) }, "NAME OF A LOGIN"},
}

// function gives the function: with an argument it asks the Translator. A number in bytes is one of a login.
func (n named) function(s *Session, name string) *function.Function {
	return &function.Function{
		Name: name, Parameters: n.letters, IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return sysname, nil },
		Call: func(c *function.Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			if len(arguments) == 0 {
				return n.read(s), nil
			}
			f, known := s.translator.Function(n.other)
			if !known {
				return value.Null(result), nil
			}
			if arguments[0].Kind().IsBinary() {
				number := int64(0)
				for _, b := range []byte(arguments[0].Raw()) {
					number = number<<8 | int64(b)
				}
				arguments = []value.Value{value.Integer(value.BigInt, number)}
			}
			return f.Call(c, result, arguments)
		},
	}
}

// sessionProperties are the options that SESSIONPROPERTY tells. Page: functions/sessionproperty-transact-sql.
var sessionProperties = []string{
	"ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "ARITHABORT", "CONCAT_NULL_YIELDS_NULL", "NUMERIC_ROUNDABORT", "QUOTED_IDENTIFIER",
}

// sessionProperty is SESSIONPROPERTY(option): NULL for what is no option.
func (s *Session) sessionProperty() *function.Function {
	return &function.Function{
		Name: "SESSIONPROPERTY", Parameters: "t", IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return value.Of(value.Variant), nil },
		Call: func(_ *function.Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			name := strings.ToUpper(strings.TrimSpace(arguments[0].Raw()))
			if !slices.Contains(sessionProperties, name) {
				return value.Null(result), nil
			}
			isOn := name == "ANSI_PADDING" || *s.switches(name)
			return value.NewVariant(value.NewInt(map[bool]int{true: 1}[isOn])), nil
		},
	}
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
	switch name {
	case "SESSION_CONTEXT":
		return s.sessionContextFunction(), true
	case "SESSIONPROPERTY":
		return s.sessionProperty(), true
	case "@@SPID": // that of the database, where there is one
		if f, known := s.translator.Function(name); known {
			return f, true
		}
	}
	if n, is := callable[name]; is {
		return n.function(s, name), true
	}
	found, known := sessionFunctions[name]
	if !known {
		return nil, false
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
