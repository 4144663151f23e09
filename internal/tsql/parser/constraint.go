package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// tableConstraint takes a constraint of a table, where keys have columns.
func (p *parser) tableConstraint() *ast.Constraint { return p.constraint(true) }

// columnConstraint takes a constraint of a column.
func (p *parser) columnConstraint() *ast.Constraint { return p.constraint(false) }

func (p *parser) constraint(ofTable bool) *ast.Constraint {
	start := p.at
	node := &ast.Constraint{}
	if p.accept("CONSTRAINT") {
		node.Name = p.identifier("a constraint")
	}
	switch {
	case p.accept("PRIMARY", "KEY"):
		node.Kind = "PRIMARY KEY"
		p.keyConstraint(node, ofTable)
	case p.accept("UNIQUE"):
		node.Kind = "UNIQUE"
		p.keyConstraint(node, ofTable)
	case p.accept("FOREIGN", "KEY"):
		node.Kind = "FOREIGN KEY"
		node.HasForeign = true
		if p.is("(") {
			node.Columns = p.keyColumns()
		}
		p.references(node)
	case p.is("REFERENCES") && !ofTable:
		node.Kind = "FOREIGN KEY"
		p.references(node)
	case p.accept("CHECK"):
		node.Kind = "CHECK"
		node.NotForReplication = p.accept("NOT", "FOR", "REPLICATION")
		p.inParens(func() { node.Check = p.condition() })
	case p.accept("DEFAULT"):
		node.Kind = "DEFAULT"
		node.Default = p.expression()
		if p.accept("FOR") {
			node.ForColumn = p.identifier("a column")
		}
		node.WithValues = p.accept("WITH", "VALUES")
	case ofTable && p.accept("CONNECTION"):
		node.Kind = "CONNECTION"
		p.connections(node)
	default:
		p.fail("PRIMARY KEY", "UNIQUE", "FOREIGN KEY", "CHECK", "DEFAULT")
	}
	node.Place = p.since(start)
	return node
}

// keyConstraint takes what follows PRIMARY KEY and UNIQUE.
func (p *parser) keyConstraint(node *ast.Constraint, ofTable bool) {
	node.Cluster = p.acceptPhrase("CLUSTERED", "NONCLUSTERED HASH", "NONCLUSTERED", "HASH")
	if p.is("(") {
		node.Columns = p.keyColumns()
	} else if ofTable {
		p.fail("(")
	}
	switch {
	case p.is("WITH", "("):
		p.at++
		node.Options = p.optionsInParens()
	case p.accept("WITH", "FILLFACTOR", "="):
		node.OldFill = p.constant()
	}
	if p.is("ON") && !p.ahead(1).Is("DELETE") && !p.ahead(1).Is("UPDATE") {
		node.Storage = p.storage()
	}
	node.NoEnforce = p.accept("NOT", "ENFORCED")
}

// references takes REFERENCES with its actions.
func (p *parser) references(node *ast.Constraint) {
	p.expect("REFERENCES")
	node.References = p.name("a table")
	node.ForeignColumns = p.columnList()
	for {
		switch {
		case p.accept("ON", "DELETE"):
			node.OnDelete = p.expectPhrase("NO ACTION", "CASCADE", "SET NULL", "SET DEFAULT")
		case p.accept("ON", "UPDATE"):
			node.OnUpdate = p.expectPhrase("NO ACTION", "CASCADE", "SET NULL", "SET DEFAULT")
		case p.accept("NOT", "FOR", "REPLICATION"):
			node.NotForReplication = true
		default:
			return
		}
	}
}

func (p *parser) connections(node *ast.Constraint) {
	p.inParens(func() {
		p.list(func() {
			start := p.at
			connection := &ast.EdgeConnection{From: p.name("a table")}
			p.expect("TO")
			connection.To = p.name("a table")
			connection.Place = p.since(start)
			node.Connections = append(node.Connections, connection)
		})
	})
	if p.accept("ON", "DELETE") {
		node.OnDelete = p.expectPhrase("NO ACTION", "CASCADE")
	}
}
