package check

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// query has the parts of queries.
func (v *visitor) query(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Select:
		v.use(n, "SELECT")
	case *ast.Query:
		v.when(n.OrderBy != nil, n, "ORDER BY")
		v.when(n.Offset != nil, n, "OFFSET ... FETCH")
	case *ast.SetOperation:
		v.use(n, strings.TrimSuffix(n.Operator, " ALL"))
	case *ast.Specification:
		v.when(n.Where != nil, n, "WHERE")
		v.when(n.Having != nil, n, "HAVING")
		v.when(n.Into != nil, n, "SELECT INTO")
		v.when(len(n.Windows) > 0, n, "WINDOW")
	case *ast.Top:
		v.use(n, "TOP")
	case *ast.GroupBy:
		v.use(n, "GROUP BY")
		v.when(n.With != "", n, "GROUP BY "+n.With)
	case *ast.GroupItem:
		v.when(n.Kind != "" && n.Kind != "LIST", n, "GROUP BY "+n.Kind)
	case *ast.For:
		if n.Kind == "BROWSE" {
			v.use(n, "FOR BROWSE")
		} else {
			v.use(n, "FOR "+n.Kind+" "+n.Mode)
		}
	case *ast.With:
		v.when(len(n.Namespaces) > 0, n, "WITH XMLNAMESPACES")
		v.when(n.ChangeContext != nil, n, "CHANGE_TRACKING_CONTEXT")
	case *ast.CommonTable:
		v.use(n, "common table expression")
	case *ast.QueryHint:
		v.use(n, "hint of a query")
	case *ast.Window:
		v.use(n, "OVER")
	default:
		return false
	}
	return true
}

// lockingHints are the hints of tables that change what a statement does.
var lockingHints = map[string]bool{"READPAST": true, "NOWAIT": true, "UPDLOCK": true, "XLOCK": true, "TABLOCKX": true, "HOLDLOCK": true}

// source has the sources of rows.
func (v *visitor) source(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.TableName:
		v.object(n, n.Name)
	case *ast.Temporal:
		v.use(n, "FOR SYSTEM_TIME")
	case *ast.Sample:
		v.use(n, "TABLESAMPLE")
	case *ast.TableHint:
		if lockingHints[n.Name] {
			v.use(n, n.Name)
		} else {
			v.use(n, "hint of a table")
		}
	case *ast.TableVariable:
		v.use(n, "FROM table variable")
	case *ast.DerivedTable:
		v.use(n, "derived table")
	case *ast.ValuesTable:
		v.use(n, "VALUES as a table")
	case *ast.ChangedTable:
		v.use(n, "DML in FROM")
	case *ast.FunctionTable:
		v.functionTable(n)
	case *ast.RowsetTable:
		v.use(n, n.Function)
	case *ast.Join:
		if strings.HasSuffix(n.Kind, "APPLY") {
			v.use(n, n.Kind)
		} else {
			v.use(n, "JOIN")
		}
		v.when(n.Hint != "", n, "hint of a join")
	case *ast.Pivot:
		v.use(n, "PIVOT")
	case *ast.Unpivot:
		v.use(n, "UNPIVOT")
	default:
		return false
	}
	return true
}

// ownTables are functions that yield rows and have a row of the table under their own names.
var ownTables = map[string]bool{
	"OPENJSON": true, "OPENXML": true, "CONTAINSTABLE": true, "FREETEXTTABLE": true, "SEMANTICKEYPHRASETABLE": true,
	"SEMANTICSIMILARITYTABLE": true, "SEMANTICSIMILARITYDETAILSTABLE": true,
}

func (v *visitor) functionTable(n *ast.FunctionTable) {
	if call, is := n.Function.(*ast.Call); is && len(call.Name.Parts) == 1 && ownTables[strings.ToUpper(call.Name.Object())] {
		return // the call is counted
	}
	if call, is := n.Function.(*ast.Call); is {
		v.tables[call] = true
	}
	v.use(n, "function as a table")
}

// object adds a table by its name: views of the system are in the table, others are the user's.
func (v *visitor) object(node ast.Node, name ast.Name) {
	v.when(name.Server() != "", node, "name with a server")
	schema, object := strings.ToUpper(name.Schema()), strings.ToUpper(name.Object())
	switch {
	case schema == "SYS", schema == "INFORMATION_SCHEMA":
		v.use(node, "view "+name.Schema()+"."+name.Object())
	case (schema == "DBO" || schema == "") && Find("view dbo."+object).Reason != unknown && !v.defined[object]:
		v.use(node, "view dbo."+name.Object())
	default:
		v.use(node, "FROM table")
	}
}

// change has DML.
func (v *visitor) change(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Insert:
		v.use(n, "INSERT")
		v.when(n.Execute != nil, n, "INSERT EXECUTE")
		v.when(n.IsDefault, n, "INSERT DEFAULT VALUES")
	case *ast.Update:
		v.use(n, "UPDATE")
	case *ast.Delete:
		v.use(n, "DELETE")
	case *ast.Merge:
		v.use(n, "MERGE")
	case *ast.Truncate:
		v.use(n, "TRUNCATE TABLE")
	case *ast.CheckIdentity:
		v.use(n, "DBCC CHECKIDENT")
	case *ast.Output:
		v.use(n, "OUTPUT")
	case *ast.Target:
		v.when(n.Name.Server() != "", n, "name with a server")
	default:
		return false
	}
	return true
}

// condition has the conditions.
func (v *visitor) condition(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Logical:
		v.use(n, n.Operator)
	case *ast.Not:
		v.use(n, "NOT")
	case *ast.Quantified:
		v.use(n, "ALL, ANY, SOME")
	case *ast.IsDistinct:
		v.use(n, "IS DISTINCT FROM")
	case *ast.IsNull:
		v.use(n, "IS NULL")
	case *ast.Between:
		v.use(n, "BETWEEN")
	case *ast.In:
		v.use(n, "IN")
		v.when(n.Query != nil, n, "subquery")
	case *ast.Like:
		v.use(n, "LIKE")
	case *ast.Exists:
		v.use(n, "EXISTS")
	case *ast.UpdatedColumn:
		v.use(n, "UPDATE(column)")
	case *ast.FullText:
		v.use(n, n.Function)
	case *ast.CurrentOf:
		v.use(n, "WHERE CURRENT OF")
	default:
		return false
	}
	return true
}
