package parser

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// permission takes GRANT, DENY and REVOKE.
func (p *parser) permission(start int) ast.Statement {
	node := &ast.Permission{Verb: p.take().Upper}
	if node.Verb == "REVOKE" {
		node.OptionFor = p.accept("GRANT", "OPTION", "FOR")
	}
	p.list(func() { node.Permissions = append(node.Permissions, p.permissionItem()) })
	if p.accept("ON") {
		node.Class = p.classOf()
		node.On = p.name("an object")
		node.OnColumns = p.columnList()
	}
	if node.Verb == "REVOKE" && p.accept("FROM") {
		node.HasFrom = true
	} else {
		p.expect("TO")
	}
	p.list(func() { node.Principals = append(node.Principals, p.principal()) })
	node.GrantOption = node.Verb == "GRANT" && p.accept("WITH", "GRANT", "OPTION")
	node.Cascade = node.Verb != "GRANT" && p.accept("CASCADE")
	if p.accept("AS") {
		node.As = p.principal()
	}
	node.Place = p.since(start)
	return node
}

// permissionItem takes a right of several words, perhaps with columns.
func (p *parser) permissionItem() *ast.PermissionItem {
	start := p.at
	var words []string
	for p.current().Kind == token.Word && !p.isOne("ON", "TO", "FROM") {
		words = append(words, p.take().Upper)
	}
	if len(words) == 0 {
		p.fail("a permission")
	}
	node := &ast.PermissionItem{Name: strings.Join(words, " "), Columns: p.columnList()}
	node.Place = p.since(start)
	return node
}

// classOf takes the words before :: that say of which kind a name is.
func (p *parser) classOf() string {
	count := 0
	for next := p.ahead(0); next.Kind == token.Word && !next.Is("TO") && !next.Is("FROM"); next = p.ahead(count) {
		count++
	}
	if count == 0 || !p.ahead(count).Is("::") {
		return ""
	}
	words := make([]string, 0, count)
	for range count {
		words = append(words, p.take().Upper)
	}
	p.expect("::")
	return strings.Join(words, " ")
}

func (p *parser) authorization(start int) ast.Statement {
	p.expect("AUTHORIZATION", "ON")
	node := &ast.Authorization{Class: p.classOf(), On: p.name("an object")}
	p.expect("TO")
	if p.accept("SCHEMA", "OWNER") {
		node.IsSchemaOwner = true
	} else {
		node.Owner = p.principal()
	}
	node.Place = p.since(start)
	return node
}

// principalStatement takes CREATE and ALTER of users, logins and roles.
func (p *parser) principalStatement(start int, verb string) ast.Statement {
	node := &ast.Principal{Verb: verb, Kind: p.expectPhrase("USER", "LOGIN", "ROLE", "SERVER ROLE", "APPLICATION ROLE")}
	node.Name = p.identifier("a name")
	node.Owner = p.owner()
	if p.isOne("FROM", "FOR") {
		p.principalSource(node)
	}
	node.Without = p.accept("WITHOUT", "LOGIN")
	if verb == "ALTER" {
		node.Change = p.acceptPhrase("ADD MEMBER", "DROP MEMBER", "ENABLE", "DISABLE", "ADD CREDENTIAL", "DROP CREDENTIAL")
		if node.Change != "" && node.Change != "ENABLE" && node.Change != "DISABLE" {
			node.Member = p.principal()
		}
	}
	if p.accept("WITH") {
		node.Options = p.optionList()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) principalSource(node *ast.Principal) {
	node.FromFor = p.take().Upper == "FOR"
	node.From = p.expectPhrase("LOGIN", "CERTIFICATE", "ASYMMETRIC KEY", "WINDOWS", "EXTERNAL PROVIDER")
	if node.From != "WINDOWS" && node.From != "EXTERNAL PROVIDER" {
		node.Source = p.identifier("a name")
	}
}

func (p *parser) certificate(start int, verb string) ast.Statement {
	p.expect("CERTIFICATE")
	node := &ast.Certificate{Verb: verb, Name: p.identifier("a certificate"), Owner: p.owner()}
	switch {
	case p.accept("FROM"):
		p.certificateSource(node)
	case verb == "ALTER" && p.accept("REMOVE"):
		node.Removes = p.expectPhrase("PRIVATE KEY", "ATTESTED OPTION")
	case p.accept("ENCRYPTION", "BY", "PASSWORD"):
		p.expect("=")
		node.Encryption = p.textValue()
	}
	if p.is("WITH") {
		p.at++
		if p.accept("PRIVATE", "KEY") {
			node.PrivateKey = p.optionsInParens()
			if p.accept(",") {
				node.Options = p.optionList()
			}
		} else if !p.is("ACTIVE") {
			node.Options = p.optionList()
		}
	}
	if p.accept("ACTIVE", "FOR", "BEGIN_DIALOG") {
		p.expect("=")
		node.ActiveFor = p.expectOne("ON", "OFF")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) certificateSource(node *ast.Certificate) {
	switch {
	case p.accept("ASSEMBLY"):
		node.From = "ASSEMBLY"
		start := p.at
		name := p.name("an assembly")
		column := &ast.ColumnReference{Name: name}
		column.Place = p.since(start)
		node.Source = column
	case p.accept("BINARY"):
		node.From = "BINARY"
		p.expect("=")
		node.Source = p.constant()
	default:
		node.From = p.expectPhrase("EXECUTABLE FILE", "FILE")
		p.expect("=")
		node.Source = p.textValue()
	}
}

// keyKinds are the keys of cryptography, longer names first.
var keyKinds = []string{"SERVICE MASTER KEY", "MASTER KEY", "ALL SYMMETRIC KEYS", "SYMMETRIC KEY", "ASYMMETRIC KEY"}

// key takes a statement about a key: its clauses are kept as options in their order.
func (p *parser) key(start int) ast.Statement {
	node := &ast.Key{Verb: p.take().Upper}
	node.Kind = p.expectPhrase(keyKinds...)
	if node.Kind == "SYMMETRIC KEY" || node.Kind == "ASYMMETRIC KEY" {
		node.Name = p.identifier("a key")
	}
	for !p.endsForeign() {
		node.Clauses = append(node.Clauses, p.keyClause())
	}
	node.Place = p.since(start)
	return node
}

// keyClause takes words, a value behind a sign of equality, or a comma.
func (p *parser) keyClause() *ast.Option {
	start := p.at
	var words []string
	for p.current().Kind == token.Word && !p.endsForeign() {
		words = append(words, p.take().Upper)
	}
	option := &ast.Option{Name: strings.Join(words, " ")}
	switch {
	case p.accept("="):
		option.Equals = true
		option.Value = p.optionValue(option)
		p.unit(option)
	case p.isName():
		option.Value = p.optionValue(option)
	case p.is("("):
		option.Parens = true
		option.List = p.optionsInParens()
	case p.accept(","):
		option.Unit = ","
	case len(words) == 0:
		p.fail("a clause")
	}
	option.Place = p.since(start)
	return option
}

// backup takes BACKUP and RESTORE: those of certificates and keys have nodes of their own.
func (p *parser) backup(start int) ast.Statement {
	for ahead := 1; ahead <= 2; ahead++ {
		if p.ahead(ahead).Is("KEY") || p.ahead(ahead).Is("MASTER") || p.ahead(ahead).Is("SYMMETRIC") {
			return p.key(start)
		}
	}
	if !p.is("BACKUP", "CERTIFICATE") {
		return p.foreign(start)
	}
	p.at += 2
	node := &ast.BackupCertificate{Name: p.identifier("a certificate")}
	p.expect("TO", "FILE", "=")
	node.File = p.textValue()
	if p.accept("WITH") {
		if p.accept("PRIVATE", "KEY") {
			node.PrivateKey = p.optionsInParens()
		} else {
			node.Options = p.optionList()
		}
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) signature(start int) ast.Statement {
	node := &ast.Signature{Verb: p.expectOne("ADD", "DROP"), Counter: p.accept("COUNTER")}
	p.expect("SIGNATURE")
	p.expectOne("TO", "FROM")
	node.Class = p.classOf()
	node.Module = p.name("a module")
	p.expect("BY")
	p.list(func() {
		from := p.at
		kind := p.expectPhrase("CERTIFICATE", "ASYMMETRIC KEY")
		key := &ast.Option{Name: kind}
		name := p.name("a key")
		reference := &ast.ColumnReference{Name: name}
		reference.Place = name.Place
		key.Value = reference
		if p.accept("WITH") {
			key.List = p.optionList()
		}
		key.Place = p.since(from)
		node.Keys = append(node.Keys, key)
	})
	node.Place = p.since(start)
	return node
}
