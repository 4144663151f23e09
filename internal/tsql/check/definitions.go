package check

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// table has the statements on tables and indexes.
func (v *visitor) table(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.CreateTable:
		if strings.HasPrefix(n.Name.Object(), "#") {
			v.use(n, "CREATE TABLE #temporary")
		} else {
			v.use(n, "CREATE TABLE")
		}
		v.when(n.AsFile, n, "FILETABLE")
		v.when(n.AsKind != "", n, "AS "+n.AsKind)
		v.when(len(n.Options) > 0, n, "option of a table")
	case *ast.AlterTable:
		v.alterTable(n)
	case *ast.CreateIndex:
		v.index(n)
	case *ast.AlterIndex:
		v.use(n, "ALTER INDEX")
	case *ast.CreateStatistics:
		v.use(n, "CREATE STATISTICS")
	case *ast.UpdateStatistics:
		v.use(n, "UPDATE STATISTICS")
	default:
		return false
	}
	return true
}

func (v *visitor) alterTable(n *ast.AlterTable) {
	switch {
	case n.Action == "SWITCH", n.Action == "REBUILD", n.Action == "SET":
		v.use(n, "ALTER TABLE "+n.Action)
	case strings.HasSuffix(n.Action, "CHANGE_TRACKING"):
		v.use(n, "CHANGE_TRACKING")
	default:
		v.use(n, "ALTER TABLE")
	}
	for _, drop := range n.Drops {
		v.when(drop.Kind == "PERIOD", drop, "PERIOD FOR SYSTEM_TIME")
	}
}

func (v *visitor) index(n *ast.CreateIndex) {
	switch {
	case strings.Contains(n.Cluster, "COLUMNSTORE"):
		v.use(n, "COLUMNSTORE INDEX")
	case strings.HasSuffix(n.Kind, "XML"):
		v.use(n, "XML INDEX")
	case n.Kind != "":
		v.use(n, n.Kind+" INDEX")
	default:
		v.use(n, "CREATE INDEX")
		v.when(n.Cluster != "", n, strings.TrimSuffix(n.Cluster, " HASH"))
	}
	v.when(len(n.Options) > 0, n, "option of an index")
}

// tablePart has columns and constraints.
func (v *visitor) tablePart(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.TableDefinition:
		v.when(len(n.Period) > 0, n, "PERIOD FOR SYSTEM_TIME")
	case *ast.Storage:
		if n.Kind == "ON" {
			v.use(n, "ON filegroup")
		} else {
			v.use(n, n.Kind)
		}
	case *ast.ColumnDefinition:
		v.when(n.Computed != nil, n, "computed column")
	case *ast.ColumnClause:
		v.columnClause(n)
	case *ast.Constraint:
		if n.Kind == "DEFAULT" {
			v.use(n, "DEFAULT constraint")
		} else {
			v.use(n, n.Kind)
		}
		v.when(n.Cluster != "", n, strings.TrimSuffix(n.Cluster, " HASH"))
		v.when(len(n.Options) > 0 || n.OldFill != nil, n, "option of an index")
		v.when(n.NotForReplication, n, "NOT FOR REPLICATION")
	default:
		return false
	}
	return true
}

func (v *visitor) columnClause(n *ast.ColumnClause) {
	switch n.Kind {
	case "NULL", "NOT NULL", "CONSTRAINT", "INDEX", "PERSISTED":
	case "COLLATE":
		v.use(n, "COLLATE of a column")
	case "IDENTITY":
		v.use(n, "IDENTITY column")
	case "GENERATED", "HIDDEN":
		v.use(n, "GENERATED ALWAYS")
	case "COLUMN_SET FOR ALL_SPARSE_COLUMNS":
		v.use(n, "SPARSE")
	default:
		v.use(n, n.Kind)
	}
}

// module has procedures, functions, views, triggers and the objects of a schema.
func (v *visitor) module(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Procedure:
		if strings.HasPrefix(n.Name.Object(), "#") {
			v.use(n, "CREATE PROCEDURE #temporary")
		} else {
			v.use(n, n.Verb+" PROCEDURE")
		}
		v.when(n.Number != "", n, "procedure;number")
		v.when(n.ForReplication, n, "FOR REPLICATION")
		v.when(n.Atomic != nil, n, "BEGIN ATOMIC")
	case *ast.Function:
		if n.IsTable {
			v.use(n, n.Verb+" FUNCTION of a table")
		} else {
			v.use(n, n.Verb+" FUNCTION")
		}
	case *ast.View:
		v.use(n, n.Verb+" VIEW")
	case *ast.Trigger:
		if n.On == "TABLE" {
			v.use(n, n.Verb+" TRIGGER")
		} else {
			v.use(n, "CREATE TRIGGER ON "+n.On)
		}
		v.when(n.NotForReplication, n, "NOT FOR REPLICATION")
	case *ast.ModuleOption:
		v.moduleOption(n)
	case *ast.External:
		v.use(n, "EXTERNAL NAME")
	case *ast.SwitchTrigger:
		v.when(n.Enable, n, "ENABLE TRIGGER")
		v.when(!n.Enable, n, "DISABLE TRIGGER")
	default:
		return v.schemaObject(node)
	}
	return true
}

func (v *visitor) moduleOption(n *ast.ModuleOption) {
	switch {
	case strings.HasPrefix(n.Words, "EXECUTE AS"):
		v.use(n, "module WITH EXECUTE AS")
	case n.Words == "RECOMPILE":
		v.use(n, "WITH RECOMPILE")
	case strings.HasSuffix(n.Words, "NULL INPUT"):
	default:
		v.use(n, n.Words)
	}
}

func (v *visitor) schemaObject(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.CreateType:
		if n.Table != nil {
			v.use(n, "CREATE TYPE AS TABLE")
		} else {
			v.use(n, "CREATE TYPE")
		}
	case *ast.CreateSchema:
		v.use(n, "CREATE SCHEMA")
		v.when(len(n.Elements) > 0, n, "CREATE SCHEMA with objects")
	case *ast.AlterSchema:
		v.use(n, "ALTER SCHEMA")
	case *ast.Sequence:
		v.use(n, n.Verb+" SEQUENCE")
	case *ast.Synonym:
		v.use(n, "CREATE SYNONYM")
		v.when(n.For.Server() != "", n, "name with a server")
	default:
		return false
	}
	return true
}

// database has databases, DROP, and the statements that are kept as tokens.
func (v *visitor) database(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Database:
		v.use(n, "CREATE DATABASE")
		v.when(n.For != "", n, "CREATE DATABASE FOR ATTACH")
		v.when(n.SnapshotOf != "", n, "CREATE DATABASE AS SNAPSHOT")
		v.when(!n.CopyOf.IsEmpty(), n, "CREATE DATABASE AS COPY")
		v.when(n.HasOn || len(n.Log) > 0, n, "CREATE DATABASE ON files")
		v.when(n.Collation != "", n, "CREATE DATABASE COLLATE")
		for _, option := range n.Options {
			v.use(option, "ALTER DATABASE SET "+option.Name)
		}
	case *ast.AlterDatabase:
		v.alterDatabase(n)
	case *ast.Drop:
		v.use(n, "DROP "+n.Kind)
	case *ast.Foreign:
		v.use(n, n.Construct)
	default:
		return false
	}
	return true
}

func (v *visitor) alterDatabase(n *ast.AlterDatabase) {
	switch n.Action {
	case "SET":
		v.use(n, "ALTER DATABASE SET")
		for _, option := range n.Options {
			v.use(option, "ALTER DATABASE SET "+option.Name)
		}
		v.when(strings.HasPrefix(n.Termination, "ROLLBACK"), n, "ALTER DATABASE WITH ROLLBACK")
		v.when(n.Termination == "NO_WAIT", n, "ALTER DATABASE WITH NO_WAIT")
	case "COLLATE", "MODIFY NAME":
		v.use(n, "ALTER DATABASE "+n.Action)
	default:
		v.use(n, "ALTER DATABASE files")
	}
}

// grantable are the classes of objects on which rights are granted; the empty one is that of a database, a table, a queue or a procedure.
var grantable = map[string]bool{
	"": true, "OBJECT": true, "DATABASE": true, "ENDPOINT": true, "SERVICE": true, "CONTRACT": true, "MESSAGE TYPE": true, "ROUTE": true,
	"REMOTE SERVICE BINDING": true, "CERTIFICATE": true, "SCHEMA": true, "TYPE": true,
}

// security has rights, users and keys.
func (v *visitor) security(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Permission:
		v.use(n, n.Verb)
		v.when(n.OptionFor, n, "GRANT OPTION FOR")
		v.when(n.Class == "ENDPOINT", n, "rights ON ENDPOINT")
		v.when(!grantable[n.Class], n, "rights ON a class")
		v.when(len(n.OnColumns) > 0, n, "rights on columns")
	case *ast.PermissionItem:
		v.when(len(n.Columns) > 0, n, "rights on columns")
	case *ast.Authorization:
		v.authorization(n)
	case *ast.Principal:
		v.use(n, n.Verb+" "+n.Kind)
		isOfServer := n.Kind == "LOGIN" && n.From == "CERTIFICATE"
		v.when(isOfServer, n, "LOGIN FROM CERTIFICATE")
		v.when(n.From != "" && n.From != "LOGIN" && !isOfServer, n, "principal FROM "+n.From)
	case *ast.Certificate:
		v.use(n, n.Verb+" CERTIFICATE")
		v.when(n.From != "" && n.From != "FILE", n, "CERTIFICATE FROM "+n.From)
		v.when(n.Verb == "CREATE" && len(n.PrivateKey) > 0 || n.Removes != "", n, "PRIVATE KEY of a certificate")
		v.when(n.Encryption != nil, n, "ENCRYPTION BY PASSWORD")
	case *ast.BackupCertificate:
		v.use(n, "BACKUP CERTIFICATE")
		v.when(len(n.PrivateKey) > 0, n, "PRIVATE KEY of a certificate")
	case *ast.Key:
		v.use(n, n.Verb+" "+n.Kind)
	case *ast.Signature:
		v.use(n, n.Verb+" SIGNATURE")
	default:
		return false
	}
	return true
}

// inSchemas are the classes of what has an owner and is in a schema, ownedAlone those of what is in none.
var (
	inSchemas  = map[string]bool{"": true, "OBJECT": true, "TYPE": true}
	ownedAlone = map[string]bool{
		"SCHEMA": true, "DATABASE": true, "SERVICE": true, "CONTRACT": true, "MESSAGE TYPE": true, "ROUTE": true,
		"REMOTE SERVICE BINDING": true, "CERTIFICATE": true,
	}
)

func (v *visitor) authorization(n *ast.Authorization) {
	v.use(n, "ALTER AUTHORIZATION")
	v.when(!inSchemas[n.Class] && !ownedAlone[n.Class], n, "ALTER AUTHORIZATION of what has no owner in PostgreSQL")
	v.when(n.IsSchemaOwner && ownedAlone[n.Class], n, "ALTER AUTHORIZATION to SCHEMA OWNER of what is in no schema")
}
