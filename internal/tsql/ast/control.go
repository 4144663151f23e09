package ast

// Block is BEGIN ... END. Page: language-elements/begin-end-transact-sql.
type Block struct {
	StatementAt
	Statements []Statement
}

// If is IF ... ELSE. Page: language-elements/if-else-transact-sql.
type If struct {
	StatementAt
	Condition Condition
	Then      Statement
	Else      Statement // or nil
}

// While is WHILE. Page: language-elements/while-transact-sql.
type While struct {
	StatementAt
	Condition Condition
	Body      Statement
}

// Break leaves the innermost WHILE. Page: language-elements/break-transact-sql.
type Break struct{ StatementAt }

// Continue begins the next turn of the innermost WHILE. Page: language-elements/continue-transact-sql.
type Continue struct{ StatementAt }

// Goto jumps to a label of its batch or body. Page: language-elements/goto-transact-sql.
type Goto struct {
	StatementAt
	Label string
}

// Label is a place to which GOTO jumps. Page: language-elements/goto-transact-sql.
type Label struct {
	StatementAt
	Name string
}

// Return ends a batch, a procedure or a function. Page: language-elements/return-transact-sql.
type Return struct {
	StatementAt
	Value Expression // or nil
}

// TryCatch is BEGIN TRY ... END TRY BEGIN CATCH ... END CATCH. Page: language-elements/try-catch-transact-sql.
type TryCatch struct {
	StatementAt
	Try   []Statement
	Catch []Statement
}

// Throw raises an error, or raises again the one that is caught. Page: language-elements/throw-transact-sql.
type Throw struct {
	StatementAt
	Number  Expression // nil, as the others are, where the caught error is raised again
	Message Expression
	State   Expression
}

// RaiseError is RAISERROR. Page: language-elements/raiserror-transact-sql.
type RaiseError struct {
	StatementAt
	Message   Expression // a number, a text or a variable
	Severity  Expression // nil, as State is, in the old form RAISERROR 50001 'text'
	State     Expression
	Arguments []Expression
	Options   []string // LOG, NOWAIT, SETERROR
}

// Print is PRINT. Page: language-elements/print-transact-sql.
type Print struct {
	StatementAt
	Value Expression
}

// Pause is WAITFOR DELAY or WAITFOR TIME. Page: language-elements/waitfor-transact-sql.
type Pause struct {
	StatementAt
	Kind  string // DELAY or TIME
	Value Expression
}

// Execute calls a procedure, or runs a text as a batch. Page: language-elements/execute-transact-sql.
type Execute struct {
	StatementAt
	HasWord   bool   // EXEC or EXECUTE is written; it may be left out at the beginning of a batch
	Result    string // the variable that takes the return code, with its @, or empty
	Procedure Name
	Number    string     // ;number of a grouped procedure, or empty
	Variable  string     // @name that holds the procedure's name, in place of it
	Text      Expression // EXEC ('text'), in place of a procedure
	Arguments []*Argument
	AsKind    string     // EXEC ('text') AS LOGIN or USER, or empty
	AsName    Expression // whose rights the text has
	Server    string     // AT linked server, or empty
	AtSource  bool       // AT DATA_SOURCE
	Options   []string   // RECOMPILE, RESULT SETS UNDEFINED, RESULT SETS NONE
	// ResultSets are the shapes of WITH RESULT SETS ((...), (...)).
	ResultSets []*ResultSet
}

// Argument is one argument of EXECUTE.
type Argument struct {
	Place
	Name     string     // @parameter, or empty
	Value    Expression // a constant, a variable, a Keyword for a bare word, or DEFAULT
	IsOutput bool
}

// ResultSet is one shape of WITH RESULT SETS: columns, or a table, a type or FOR XML.
type ResultSet struct {
	Place
	Columns []*ColumnDefinition
	As      string // OBJECT, TYPE or FOR XML, or empty
	Object  Name
}
