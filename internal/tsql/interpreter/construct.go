package interpreter

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// constructs has the names of nodes whose type does not say them.
var constructs = map[string]string{
	"Foreign": "", "Pause": "WAITFOR", "Select": "SELECT ... FROM", "Subquery": "a subquery", "Exists": "EXISTS (subquery)",
	"In": "IN (subquery)", "Quantified": "ALL, ANY and SOME (subquery)", "MethodCall": "a method of a value", "Call": "a function",
	"Star": "*", "JSONObject": "JSON_OBJECT", "JSONArray": "JSON_ARRAY", "NextValue": "NEXT VALUE FOR",
	"CheckIdentity": "DBCC CHECKIDENT", "AtTimeZone": "AT TIME ZONE",
}

// Construct names what a node is, in the words of T-SQL.
func Construct(node ast.Node) string {
	switch node := node.(type) {
	case *ast.Foreign:
		return node.Construct
	case *ast.MethodCall:
		return "." + node.Method + "()"
	case *ast.Call:
		return node.Name.String() + "()"
	case *ast.Key:
		return node.Verb + " " + node.Kind
	case *ast.Signature:
		return node.Verb + " SIGNATURE"
	case *ast.Procedure:
		return node.Verb + " PROCEDURE"
	case *ast.Function:
		return node.Verb + " FUNCTION"
	case *ast.View:
		return node.Verb + " VIEW"
	case *ast.Trigger:
		return node.Verb + " TRIGGER"
	}
	name := strings.TrimPrefix(fmt.Sprintf("%T", node), "*ast.")
	if known, is := constructs[name]; is {
		return known
	}
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}
