package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

func (p *parser) createDatabase(start int) ast.Statement {
	p.expect("DATABASE")
	node := &ast.Database{Name: p.identifier("a database")}
	if p.accept("CONTAINMENT") {
		p.expect("=")
		node.Containment = p.expectOne("NONE", "PARTIAL")
	}
	if p.accept("ON") {
		node.HasOn = true
		node.Files = p.files()
	}
	if p.accept("LOG", "ON") {
		node.Log = p.files()
	}
	if p.accept("COLLATE") {
		node.Collation = p.collation()
	}
	switch {
	case p.accept("AS", "SNAPSHOT", "OF"):
		node.SnapshotOf = p.identifier("a database")
	case p.accept("AS", "COPY", "OF"):
		node.CopyOf = p.name("a database")
	case p.accept("FOR"):
		node.For = p.expectOne("ATTACH", "ATTACH_REBUILD_LOG", "ATTACH_FORCE_REBUILD_LOG")
	}
	if p.accept("WITH") {
		p.list(func() { node.Options = append(node.Options, p.databaseOption()) })
	}
	node.Place = p.since(start)
	return node
}

// databaseOption takes NAME = value, NAME ON, or NAME of a database.
func (p *parser) databaseOption() *ast.Option {
	start := p.at
	option := p.option()
	if !option.Equals && !option.Parens {
		switch {
		case p.isOne("ON", "OFF"), p.isOne("SIMPLE", "FULL", "BULK_LOGGED", "NONE", "PARTIAL", "AUTO"),
			p.isOne("LOCAL", "GLOBAL", "CHECKSUM", "TORN_PAGE_DETECTION", "DISABLED", "ALLOWED", "FORCED"):
			option.Value = p.keyword()
		case p.current().Kind == token.Integer:
			option.Value = p.constant()
		}
		if p.is("(") {
			option.Parens = true
			option.List = p.optionsInParens()
		}
	} else if p.is("(") && !option.Parens {
		option.Parens = true
		option.List = p.optionsInParens()
	}
	option.Place = p.since(start)
	return option
}

// files takes file specifications with the filegroups between them.
func (p *parser) files() (all []*ast.File) {
	p.list(func() {
		start := p.at
		file := &ast.File{}
		switch {
		case p.accept("PRIMARY"):
			file.Filegroup = "PRIMARY"
		case p.accept("FILEGROUP"):
			file.Filegroup = p.identifier("a filegroup")
			file.Words = p.acceptPhrase("CONTAINS FILESTREAM DEFAULT", "CONTAINS FILESTREAM", "CONTAINS MEMORY_OPTIMIZED_DATA", "DEFAULT")
		}
		file.Options = p.optionsInParens()
		file.Place = p.since(start)
		all = append(all, file)
	})
	return all
}

func (p *parser) alterDatabase(start int) ast.Statement {
	p.expect("DATABASE")
	if p.is("SCOPED") || p.is("ENCRYPTION", "KEY") || p.is("AUDIT", "SPECIFICATION") {
		p.at = start
		return p.foreign(start)
	}
	node := &ast.AlterDatabase{}
	if p.accept("CURRENT") {
		node.Current = true
	} else {
		node.Name = p.identifier("a database")
	}
	switch {
	case p.accept("SET"):
		node.Action = "SET"
		p.list(func() { node.Options = append(node.Options, p.databaseOption()) })
		p.termination(node)
	case p.accept("COLLATE"):
		node.Action = "COLLATE"
		node.NewName = p.collation()
	case p.accept("MODIFY", "NAME"):
		node.Action = "MODIFY NAME"
		p.expect("=")
		node.NewName = p.identifier("a database")
	case p.isOne("ADD", "REMOVE", "MODIFY", "REBUILD"):
		node.Action = p.take().Upper
		for !p.endsForeign() {
			node.Rest = append(node.Rest, p.raw())
		}
	default:
		p.fail("SET", "COLLATE", "MODIFY", "ADD", "REMOVE")
	}
	node.Place = p.since(start)
	return node
}

// termination takes what ALTER DATABASE does with transactions that are open.
func (p *parser) termination(node *ast.AlterDatabase) {
	if !p.accept("WITH") {
		return
	}
	node.Termination = p.expectPhrase("ROLLBACK IMMEDIATE", "ROLLBACK AFTER", "NO_WAIT")
	if node.Termination == "ROLLBACK AFTER" {
		node.After = p.constant()
		node.HasSeconds = p.accept("SECONDS")
	}
}
