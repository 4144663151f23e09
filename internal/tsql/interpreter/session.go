package interpreter

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// Identity has the names of the session, for functions that give them.
type Identity struct {
	Login    string
	User     string
	Database string
	Server   string
	Host     string
	Program  string
	Process  int // @@SPID
}

// A Session runs batches. It is not for use by two goroutines at once.
type Session struct {
	identity   Identity
	translator Translator
	connection Connection
	settings   value.Settings
	context    function.Context
	options    options
	clock      func() time.Time
	functions  map[string]*compiledFunction // of the user by their lower name
	modules    map[string]*module           // temporary procedures by their lower name, others that were called with their schema before it
	kept       Modules                      // nil without a database

	current        *activation
	sink           session.Sink
	thrown         *fault.Error            // the error that goes up to a caller's TRY
	lastError      int                     // @@ERROR
	rowCount       int64                   // @@ROWCOUNT
	failures       int                     // errors so far
	isWrite        bool                    // the statement that runs changes rows
	over           bool                    // the batch has ended
	sessionContext map[string]contextValue // of sp_set_session_context by their lower key
	contextInfo    value.Value             // CONTEXT_INFO()
	gathersAt      int                     // while INSERT ... EXECUTE gathers rows: one more than @@TRANCOUNT at its begin
	firesAlone     bool                    // a statement with triggers runs in a transaction of its own
	ending         *fault.Error            // the error that ended the batch, or the module that it called, before its end
	broken         error                   // the session cannot go on

	transaction
	impersonation
	pending  []checkpoint // of statements that wait, the oldest first
	commitBy time.Time    // when a COMMIT among them has to go out; zero without one
}

// errClosed says that an error of severity 20 or more ended the session.
var errClosed = errors.New("the session was closed by an error of severity 20 or more")

// New gives a session. Without a translator it refuses statements with tables; without a connection transactions are its own.
func New(identity Identity, translator Translator, connection Connection) *Session {
	s := &Session{identity: identity, translator: translator, connection: connection, clock: time.Now, modules: map[string]*module{}}
	if translator == nil {
		s.translator = none{}
	}
	s.settings, s.contextInfo = *value.Defaults(), value.Null(contextType)
	s.context.Settings = &s.settings
	s.options = defaultOptions()
	return s
}

// Run runs one batch.
func (s *Session) Run(ctx context.Context, batch string, sink session.Sink) error {
	if s.broken != nil {
		return s.broken
	}
	s.sink, s.over, s.current, s.thrown, s.ending = sink, false, nil, nil, nil
	if compiled := s.prepare("", batch); compiled != nil {
		_ = s.run(ctx, s.activate(compiled))
	}
	s.abandon()
	if isAttention(ctx) && (s.isDoomed || s.options.xactAbort) {
		s.rollback(ctx)
	}
	if s.isDoomed && s.broken == nil {
		s.rollback(ctx)
		s.send(fault.New(3998).At(1, ""))
	}
	if err := sink.Flush(); err != nil && s.broken == nil {
		s.broken = err
	}
	return s.broken
}

// Ended gives the error that ended the last batch, or a module that it called, before its end; nil where all of it ran.
func (s *Session) Ended() *fault.Error { return s.ending }

// IsInTransaction reports whether a transaction is open: @@TRANCOUNT is not 0.
func (s *Session) IsInTransaction() bool { return s.depth > 0 }

// prepare parses and compiles a batch; it reports the error of one that is refused.
func (s *Session) prepare(name, text string) *program {
	parsed, err := parser.Parse(text, parser.Options{StringsInDoubleQuotes: !s.options.quotedIdentifier})
	if err != nil {
		s.fail(syntaxFault(err))
		return nil
	}
	compiled, bad := s.compile(name, nil, parsed.Statements)
	if bad != nil {
		s.fail(bad)
		return nil
	}
	return compiled
}

// syntaxFault gives an error of the parser as one of the session.
func syntaxFault(err error) *fault.Error {
	var refused *parser.Error
	if !errors.As(err, &refused) {
		return fault.New(102, strings.TrimSpace(err.Error()))
	}
	return &fault.Error{
		Number: refused.Number, Severity: refused.Severity, State: refused.State, Line: refused.Line, Message: refused.Message,
		Reach: fault.Compile,
	}
}

// fail reports an error outside of any statement.
func (s *Session) fail(err *fault.Error) {
	s.ending = err
	s.lastError = err.Number
	s.failures++
	s.send(err)
}

// send gives a message to the sink.
func (s *Session) send(m *fault.Error) {
	if err := s.sink.Message(m); err != nil && s.broken == nil {
		s.broken, s.over = err, true
	}
}

// inform gives a warning to the sink.
func (s *Session) inform(m *fault.Error) { s.send(m) }

// succeeded notes that a statement ended without an error: @@ERROR is 0, @@ROWCOUNT as given.
func (s *Session) succeeded(rows int64) { s.lastError, s.rowCount = 0, rows }

// stop ends the batch, and the session where there is an error.
func (s *Session) stop(err error) *fault.Error {
	s.over = true
	if err != nil && s.broken == nil {
		s.broken = err
	}
	return errOver
}

// cut ends the batch where the context has ended. After an attention the session goes on with the next batch, and its transaction stays.
func (s *Session) cut(ctx context.Context) *fault.Error {
	if isAttention(ctx) {
		return s.stop(nil)
	}
	return s.stop(ctx.Err())
}

func isAttention(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), session.ErrAttention)
}

// errOver goes up through all activations; it is no error of T-SQL.
var errOver = &fault.Error{}

func (s *Session) isOver() bool { return s.over }

// Close rolls back what is open and gives the connection back.
func (s *Session) Close(ctx context.Context) error {
	s.over = true
	if s.connection == nil {
		return nil
	}
	return s.connection.Close(ctx)
}
