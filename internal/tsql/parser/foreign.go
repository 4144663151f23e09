package parser

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// foreignObjects are kinds of objects that Parley has nothing for; behind CREATE, ALTER or DROP. Longer names come first.
// Page: statements/statements.
var foreignObjects = []string{
	"ASSEMBLY", "AGGREGATE", "AVAILABILITY GROUP", "COLUMN ENCRYPTION KEY", "COLUMN MASTER KEY", "CREDENTIAL", "CRYPTOGRAPHIC PROVIDER",
	"DATABASE AUDIT SPECIFICATION", "DATABASE ENCRYPTION KEY", "DATABASE SCOPED CREDENTIAL", "DATABASE SCOPED CONFIGURATION", "DEFAULT",
	"EVENT SESSION", "EXTERNAL DATA SOURCE", "EXTERNAL FILE FORMAT", "EXTERNAL LANGUAGE", "EXTERNAL LIBRARY", "EXTERNAL MODEL",
	"EXTERNAL RESOURCE POOL", "EXTERNAL TABLE", "EXTERNAL STREAMING JOB", "EXTERNAL STREAM", "FULLTEXT CATALOG", "FULLTEXT INDEX",
	"FULLTEXT STOPLIST", "JSON INDEX", "VECTOR INDEX", "MATERIALIZED VIEW", "PARTITION FUNCTION", "PARTITION SCHEME", "REMOTE TABLE",
	"RESOURCE GOVERNOR", "RESOURCE POOL", "RULE", "SEARCH PROPERTY LIST", "SECURITY POLICY", "SERVER AUDIT SPECIFICATION", "SERVER AUDIT",
	"SERVER CONFIGURATION", "SENSITIVITY CLASSIFICATION", "WORKLOAD CLASSIFIER", "WORKLOAD GROUP", "XML SCHEMA COLLECTION",
}

// isForeign says that CREATE, ALTER or DROP is about an object of the list.
func (p *parser) isForeign() bool {
	for _, object := range foreignObjects {
		words := strings.Fields(object)
		matches := true
		for i, word := range words {
			matches = matches && p.ahead(i+1).Is(word)
		}
		// DROP DEFAULT and DROP RULE have no tokens of their own; DROP takes them as it takes others.
		plain := object == "DEFAULT" || object == "RULE"
		if matches && (!p.is("DROP") || !plain) {
			return true
		}
	}
	return false
}

// foreign takes a statement with its tokens as they are, up to a semicolon or to a word that begins a statement.
func (p *parser) foreign(start int) ast.Statement {
	node := &ast.Foreign{Construct: p.construct()}
	actions := p.isOne("ALTER", "CREATE")
	node.Tokens = append(node.Tokens, p.raw())
	if node.Construct == "BULK INSERT" && p.is("INSERT") || node.Construct == "INSERT BULK" && p.is("BULK") {
		node.Tokens = append(node.Tokens, p.raw())
	}
	for !p.endsForeign() || actions && p.isAction(start) {
		if p.is("(") {
			for end := p.closing(p.at); p.at < end; {
				node.Tokens = append(node.Tokens, p.raw())
			}
			if p.atEnd() {
				p.fail(")")
			}
		}
		node.Tokens = append(node.Tokens, p.raw())
	}
	node.Place = p.since(start)
	return node
}

// isAction says that a word which begins statements goes on with ALTER of an object: SET (, DROP FILE, GRANT CREATE ANY.
func (p *parser) isAction(start int) bool {
	next := p.ahead(1)
	switch {
	case p.isOne("SET", "DROP", "ADD", "ALTER") && (next.Is("(") || next.Is("EVENT") || next.Is("TARGET") || next.Is("FILE")):
		return true
	case p.isOne("SET", "DROP", "ADD", "ALTER", "RECONFIGURE", "REVOKE", "DENY", "GRANT"):
		return p.ahead(-1).Line == p.current().Line && p.ahead(-1).Kind != token.EOF && p.at-start < 8
	case p.isOne("DATABASE", "FOR"):
		return true
	default:
		return false
	}
}

// construct gives the first words of a statement that say which one it is.
func (p *parser) construct() string {
	for _, object := range foreignObjects {
		words := strings.Fields(object)
		matches := true
		for i, word := range words {
			matches = matches && p.ahead(i+1).Is(word)
		}
		if matches && p.isOne("CREATE", "ALTER", "DROP") {
			return p.current().Upper + " " + object
		}
	}
	first := p.current().Upper
	switch first {
	case "BULK":
		return "BULK INSERT"
	case "INSERT":
		return "INSERT BULK"
	case "ADD":
		return "ADD SENSITIVITY CLASSIFICATION"
	case "BACKUP", "RESTORE":
		if p.ahead(1).Kind == token.Word && !starters[p.ahead(1).Upper] {
			return first + " " + p.ahead(1).Upper
		}
	case "KILL":
		return "KILL " + p.ahead(1).Upper
	}
	return first
}

// starters are the reserved words that begin a statement, and stand inside no other but in parentheses.
var starters = map[string]bool{
	"SELECT": true, "INSERT": true, "UPDATE": true, "DELETE": true, "MERGE": true, "TRUNCATE": true, "CREATE": true, "ALTER": true,
	"DROP": true, "EXEC": true, "EXECUTE": true, "DECLARE": true, "SET": true, "IF": true, "WHILE": true, "BEGIN": true, "END": true,
	"ELSE": true, "PRINT": true, "RETURN": true, "USE": true, "GRANT": true, "DENY": true, "REVOKE": true, "BACKUP": true, "RESTORE": true,
	"DBCC": true, "COMMIT": true, "ROLLBACK": true, "SAVE": true, "OPEN": true, "CLOSE": true, "FETCH": true, "DEALLOCATE": true,
	"WAITFOR": true, "GOTO": true, "BREAK": true, "CONTINUE": true, "RAISERROR": true, "RECONFIGURE": true, "KILL": true, "REVERT": true,
	"BULK": true, "CHECKPOINT": true,
}

// endsForeign says that the tokens of a statement end: at a semicolon, or where another statement begins.
func (p *parser) endsForeign() bool {
	t := p.current()
	return t.Kind == token.EOF || t.Is(";") || t.Kind == token.Word && t.Reserved && starters[t.Upper] || p.opensStatement(p.at) ||
		p.isLabel() && p.ahead(-1).LastLine < t.Line
}
