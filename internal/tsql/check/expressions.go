package check

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// expression has the values that are no calls.
func (v *visitor) expression(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.SystemVariable:
		v.use(n, n.Name)
	case *ast.ColumnReference:
		v.when(len(n.Name.Parts) > 3, n, "name with a server")
	case *ast.PseudoColumn:
		v.pseudoColumn(n)
	case *ast.Collate:
		v.use(n, "COLLATE")
	case *ast.AtTimeZone:
		v.use(n, "AT TIME ZONE")
	case *ast.Subquery:
		v.use(n, "subquery")
	case *ast.SimpleCase, *ast.SearchedCase:
		v.use(n, "CASE")
	case *ast.Iif:
		v.use(n, "IIF")
	case *ast.DataType:
		v.dataType(n)
	default:
		return false
	}
	return true
}

func (v *visitor) pseudoColumn(n *ast.PseudoColumn) {
	switch n.Name {
	case "$ACTION", "$IDENTITY", "$ROWGUID":
		v.use(n, n.Name)
	case "IDENTITYCOL":
		v.use(n, "$IDENTITY")
	case "ROWGUIDCOL":
		v.use(n, "$ROWGUID")
	default:
		v.use(n, "pseudo column of a graph")
	}
}

// synonyms are names of types in the words of the standard. Page: data-types/data-type-synonyms-transact-sql.
var synonyms = map[string]string{
	"binary varying": "varbinary", "char varying": "varchar", "character": "char", "character varying": "varchar", "dec": "decimal",
	"double precision": "float", "integer": "int", "national character": "nchar", "national char": "nchar", "national text": "ntext",
	"national character varying": "nvarchar", "national char varying": "nvarchar",
}

// dataType adds a type: those of SQL Server are in the table, others are the user's. A type without a name is none: it
// stands where a definition has a query in its place.
func (v *visitor) dataType(n *ast.DataType) {
	v.when(!n.Collection.IsEmpty(), n, "xml with a schema collection")
	name := strings.ToLower(n.Name.Object())
	if name == "" || name == "cursor" {
		return
	}
	if other := synonyms[name]; other != "" {
		name = other
	}
	schema := n.Name.Schema()
	if (schema == "" || strings.EqualFold(schema, "sys")) && Find("type "+name).Reason != unknown {
		v.use(n, "type "+name)
	} else {
		v.use(n, "type of the user's")
	}
}

// xmlMethods are the methods that have a row of the table.
var xmlMethods = []string{"value", "query", "exist", "nodes", "modify"}

// call has functions and methods.
func (v *visitor) call(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Call:
		v.function(n)
	case *ast.Niladic:
		v.use(n, "function "+n.Name)
	case *ast.Cast:
		v.use(n, tried(n.Try)+"CAST")
	case *ast.Convert:
		v.use(n, tried(n.Try)+"CONVERT")
	case *ast.Parse:
		v.use(n, tried(n.Try)+"PARSE")
	case *ast.Trim:
		v.use(n, "function TRIM")
	case *ast.NextValue:
		v.use(n, "NEXT VALUE FOR")
	case *ast.IdentityColumn:
		v.use(n, "IDENTITY function")
	case *ast.MethodCall:
		switch {
		case slices.Contains(xmlMethods, n.Method):
			v.use(n, "."+n.Method+"()")
		case strings.EqualFold(n.Method, "WRITE"):
			v.use(n, ".WRITE()")
		default:
			v.use(n, "method of a CLR type")
		}
	case *ast.PropertyAccess:
		v.use(n, "method of a CLR type")
	case *ast.StaticCall:
		v.use(n, "method of a CLR type")
	case *ast.JSONObject:
		v.use(n, "JSON_OBJECT")
	case *ast.JSONArray:
		v.use(n, "JSON_ARRAY")
	case *ast.OdbcEscape:
		v.use(n, "escape of ODBC")
	default:
		return false
	}
	return true
}

func tried(try bool) string {
	if try {
		return "TRY_"
	}
	return ""
}

// function adds a function: one with a schema is the user's, one without is of the table or unknown.
func (v *visitor) function(n *ast.Call) {
	name := strings.ToUpper(n.Name.Object())
	v.when(n.WithinGroup != nil, n, "WITHIN GROUP")
	switch {
	case slices.Contains(n.Name.Parts, "$PARTITION"):
		v.use(n, "function $PARTITION")
	case ownTables[name] && len(n.Name.Parts) == 1:
		v.use(n, name)
	case len(n.Name.Parts) == 1 && (!v.tables[n] || Find("function "+name).Reason != unknown):
		v.use(n, "function "+name)
	}
}
