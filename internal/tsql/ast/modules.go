package ast

// Parameter is a parameter of a procedure or a function. Page: statements/create-procedure-transact-sql.
type Parameter struct {
	Place
	Name     string // with its @
	HasAs    bool
	Type     DataType
	Varying  bool       // of CURSOR VARYING
	Nullable string     // NULL, NOT NULL, or empty
	Default  Expression // or nil
	Output   bool
	ReadOnly bool
}

// Module has what procedures, functions, triggers and views share.
type Module struct {
	Verb string // CREATE, ALTER or CREATE OR ALTER
	Name Name
	Text string // from the verb to the end of the module, as the batch has it
	// Options are ENCRYPTION, RECOMPILE, SCHEMABINDING, EXECUTE AS and others, in upper case.
	Options []*ModuleOption
}

// ModuleOption is an element of WITH of a module.
type ModuleOption struct {
	Place
	Words string     // ENCRYPTION, SCHEMABINDING, RETURNS NULL ON NULL INPUT, EXECUTE AS CALLER
	Value Expression // the user of EXECUTE AS, ON or OFF of INLINE, or nil
}

// External is EXTERNAL NAME assembly.class.method.
type External struct {
	Place
	Name Name
}

// Procedure is CREATE PROCEDURE: it takes the rest of its batch. Page: statements/create-procedure-transact-sql.
type Procedure struct {
	StatementAt
	Module
	Number         string // ;number of a grouped procedure, or empty
	Parameters     []*Parameter
	Parens         bool // the parameters stand in parentheses
	ForReplication bool
	Body           []Statement
	Atomic         *Block    // BEGIN ATOMIC of a natively compiled procedure
	AtomicOptions  []*Option // its WITH
	External       *External
}

// Function is CREATE FUNCTION. Page: statements/create-function-transact-sql.
type Function struct {
	StatementAt
	Module
	Parameters []*Parameter
	// Returns is the type of a scalar function. Table is set for a function of several statements, Query for one that is
	// a single query; IsTable is true for both.
	Returns       DataType
	IsTable       bool
	Variable      string // that RETURNS @t TABLE names, with its @
	Table         *TableDefinition
	With          *With
	Query         *Query
	QueryInParens bool
	Body          *Block
	Order         []*KeyColumn // ORDER of a CLR function
	External      *External
}

// View is CREATE VIEW. Page: statements/create-view-transact-sql.
type View struct {
	StatementAt
	Module
	Columns     []string
	With        *With
	Query       *Query
	CheckOption bool
}

// Trigger is CREATE TRIGGER, of DML, DDL or logon. Page: statements/create-trigger-transact-sql.
type Trigger struct {
	StatementAt
	Module
	On                string // TABLE, DATABASE or ALL SERVER
	Table             Name
	Timing            string   // FOR, AFTER or INSTEAD OF
	Events            []string // INSERT, UPDATE, DELETE, or names of events
	WithAppend        bool
	NotForReplication bool
	Body              []Statement
	External          *External
}

// SwitchTrigger is ENABLE or DISABLE TRIGGER. Page: statements/enable-trigger-transact-sql.
type SwitchTrigger struct {
	StatementAt
	Enable bool
	All    bool
	Names  []Name
	On     string // TABLE, DATABASE or ALL SERVER
	Table  Name
}

// CreateType is CREATE TYPE. Page: statements/create-type-transact-sql.
type CreateType struct {
	StatementAt
	Name     Name
	Base     DataType // of an alias type
	Nullable string   // NULL, NOT NULL, or empty
	Table    *TableDefinition
	Options  []*Option // WITH (MEMORY_OPTIMIZED = ON)
	External *External
	Text     string // of the whole statement
}

// CreateSchema is CREATE SCHEMA, perhaps with objects and rights. Page: statements/create-schema-transact-sql.
type CreateSchema struct {
	StatementAt
	Name     string
	Owner    string
	Elements []Statement // CREATE TABLE, CREATE VIEW, GRANT, REVOKE, DENY
}

// AlterSchema is ALTER SCHEMA ... TRANSFER. Page: statements/alter-schema-transact-sql.
type AlterSchema struct {
	StatementAt
	Name   string
	Class  string // OBJECT, TYPE, XML SCHEMA COLLECTION, or empty
	Object Name
}

// Sequence is CREATE or ALTER SEQUENCE. Page: statements/create-sequence-transact-sql.
type Sequence struct {
	StatementAt
	Verb    string // CREATE or ALTER
	Name    Name
	HasType bool
	Type    DataType
	Options []*Option // START WITH, RESTART WITH, INCREMENT BY, MINVALUE, NO MINVALUE, CYCLE, CACHE and others
}

// Synonym is CREATE SYNONYM. Page: statements/create-synonym-transact-sql.
type Synonym struct {
	StatementAt
	Name Name
	For  Name
}
