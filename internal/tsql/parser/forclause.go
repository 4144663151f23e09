package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// forClause takes FOR BROWSE, FOR XML and FOR JSON.
func (p *parser) forClause() *ast.For {
	start := p.at
	p.expect("FOR")
	node := &ast.For{Kind: p.expectOne("XML", "JSON", "BROWSE")}
	if node.Kind == "BROWSE" {
		node.Place = p.since(start)
		return node
	}
	if node.Kind == "XML" {
		node.Mode = p.expectOne("RAW", "AUTO", "EXPLICIT", "PATH")
	} else {
		node.Mode = p.expectOne("AUTO", "PATH")
	}
	if p.accept("(") {
		node.ElementName = p.textValue()
		p.expect(")")
	}
	for p.accept(",") {
		node.Options = append(node.Options, p.forOption(node.Kind))
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) forOption(kind string) *ast.Option {
	start := p.at
	option := &ast.Option{}
	if kind == "JSON" {
		option.Name = p.expectOne("ROOT", "INCLUDE_NULL_VALUES", "WITHOUT_ARRAY_WRAPPER")
	} else {
		option.Name = p.expectPhrase("BINARY BASE64", "TYPE", "ROOT", "ELEMENTS XSINIL", "ELEMENTS ABSENT", "ELEMENTS", "XMLDATA", "XMLSCHEMA")
	}
	if (option.Name == "ROOT" || option.Name == "XMLSCHEMA") && p.accept("(") {
		option.Value = p.textValue()
		p.expect(")")
	}
	option.Place = p.since(start)
	return option
}

// with takes common table expressions and XML namespaces.
func (p *parser) with() *ast.With {
	start := p.at
	p.expect("WITH")
	node := &ast.With{}
	switch {
	case p.accept("XMLNAMESPACES"):
		p.inParens(func() {
			p.list(func() { node.Namespaces = append(node.Namespaces, p.namespace()) })
		})
		if p.accept(",") {
			p.list(func() { node.Tables = append(node.Tables, p.commonTable()) })
		}
	case p.accept("CHANGE_TRACKING_CONTEXT"):
		p.inParens(func() { node.ChangeContext = p.constant() })
		if p.accept(",") {
			p.list(func() { node.Tables = append(node.Tables, p.commonTable()) })
		}
	default:
		p.list(func() { node.Tables = append(node.Tables, p.commonTable()) })
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) namespace() *ast.XMLNamespace {
	start := p.at
	node := &ast.XMLNamespace{}
	if p.accept("DEFAULT") {
		node.Default = true
		node.URI = p.textValue()
	} else {
		node.URI = p.textValue()
		p.expect("AS")
		node.Prefix = p.identifier("a prefix")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) commonTable() *ast.CommonTable {
	start := p.at
	node := &ast.CommonTable{Name: p.identifier("the name of a common table expression"), Columns: p.columnList()}
	p.expect("AS")
	p.inParens(func() { node.Query = p.query() })
	node.Place = p.since(start)
	return node
}
