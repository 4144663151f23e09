package ast

// SetOptions turns options of the session on or off. Page: statements/set-statements-transact-sql.
type SetOptions struct {
	StatementAt
	Options []string // in upper case: NOCOUNT, XACT_ABORT, ANSI_NULLS
	On      bool
}

// SetValue gives an option of the session a value: ROWCOUNT, LOCK_TIMEOUT, DATEFIRST, DATEFORMAT, LANGUAGE, TEXTSIZE,
// DEADLOCK_PRIORITY, CONTEXT_INFO and others. Page: statements/set-statements-transact-sql.
type SetValue struct {
	StatementAt
	Option string // in upper case
	Value  Expression
}

// SetStatistics is SET STATISTICS. Page: statements/set-statistics-io-transact-sql.
type SetStatistics struct {
	StatementAt
	Kinds []string // IO, TIME, PROFILE, XML
	On    bool
}

// SetIdentityInsert is SET IDENTITY_INSERT. Page: statements/set-identity-insert-transact-sql.
type SetIdentityInsert struct {
	StatementAt
	Table Name
	On    bool
}

// SetIsolation is SET TRANSACTION ISOLATION LEVEL. Page: statements/set-transaction-isolation-level-transact-sql.
type SetIsolation struct {
	StatementAt
	Level string // READ UNCOMMITTED, READ COMMITTED, REPEATABLE READ, SNAPSHOT, SERIALIZABLE
}

// BeginTransaction is BEGIN TRANSACTION. Page: language-elements/begin-transaction-transact-sql.
type BeginTransaction struct {
	StatementAt
	Distributed bool
	Name        TransactionName
	HasMark     bool
	Mark        Expression // or nil
}

// TransactionName is the name of a transaction or of a savepoint, or the variable that holds it; empty without one.
type TransactionName struct {
	Name     string
	Variable string // with its @
}

// Commit is COMMIT, COMMIT TRANSACTION and COMMIT WORK. Page: language-elements/commit-transaction-transact-sql.
type Commit struct {
	StatementAt
	Work    bool
	Name    TransactionName
	Options []*Option // DELAYED_DURABILITY
}

// Rollback is ROLLBACK, to the beginning or to a savepoint. Page: language-elements/rollback-transaction-transact-sql.
type Rollback struct {
	StatementAt
	Work bool
	Name TransactionName
}

// SaveTransaction is SAVE TRANSACTION. Page: language-elements/save-transaction-transact-sql.
type SaveTransaction struct {
	StatementAt
	Name TransactionName
}

// Use is USE. Page: language-elements/use-transact-sql.
type Use struct {
	StatementAt
	Database string
}

// ExecuteAs changes whose rights the session has. Page: statements/execute-as-transact-sql.
type ExecuteAs struct {
	StatementAt
	Kind      string     // CALLER, OWNER, SELF, LOGIN, USER
	Name      Expression // of LOGIN and USER
	NoRevert  bool
	CookieFor string // the variable of WITH COOKIE INTO, with its @, or empty
}

// Revert gives back the rights that the session had. Page: statements/revert-transact-sql.
type Revert struct {
	StatementAt
	Cookie string // the variable of WITH COOKIE, or empty
}

// Reconfigure is RECONFIGURE. Page: language-elements/reconfigure-transact-sql.
type Reconfigure struct {
	StatementAt
	Override bool
}

// Kill ends a session. Page: language-elements/kill-transact-sql.
type Kill struct {
	StatementAt
	Session    Expression
	StatusOnly bool
}
