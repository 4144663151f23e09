package flatfile

import (
	"fmt"
	"slices"
	"strings"
)

// nameSpaces gives each namespace a prefix. Where all elements are in one namespace, it is the default one.
func (c *compiler) nameSpaces(root *definition) {
	var elements, attributes []string
	var walk func(d *definition)
	add := func(to *[]string, space string) {
		if !slices.Contains(*to, space) {
			*to = append(*to, space)
		}
	}
	walk = func(d *definition) {
		add(&elements, d.name.Space)
		for _, a := range d.attributes {
			if a.name.Space != "" {
				add(&attributes, a.name.Space)
			}
		}
		if d.isField {
			return
		}
		d.content.each(func(child *definition) {
			if !child.isAttr {
				walk(child)
			}
		})
	}
	walk(root)
	isDefault := len(elements) == 1 && len(attributes) == 0
	for _, space := range append(elements, attributes...) {
		if space == "" || slices.ContainsFunc(c.schema.namespace, func(n namespace) bool { return n.space == space }) {
			continue
		}
		n := namespace{space: space, prefix: fmt.Sprintf("ns%d", len(c.schema.namespace))}
		if isDefault {
			n.prefix = ""
		}
		c.schema.namespace = append(c.schema.namespace, n)
	}
}

// each visits the children of a group and of the groups in it.
func (g *group) each(visit func(*definition)) {
	for _, p := range g.parts {
		if p.group != nil {
			p.group.each(visit)
			continue
		}
		visit(p.definition)
	}
}

// xmlNames composes the tags of a definition.
func (c *compiler) xmlNames(d *definition) {
	name := d.name.Local
	for _, n := range c.schema.namespace {
		if n.space == d.name.Space && n.prefix != "" {
			name = n.prefix + ":" + name
		}
	}
	if d.isAttr {
		d.open, d.end = []byte(" "+name+`="`), []byte(`"`)
		return
	}
	var declarations strings.Builder
	if !strings.Contains(d.path, "/") {
		for _, n := range c.schema.namespace {
			if n.prefix == "" {
				declarations.WriteString(` xmlns="` + escaped(n.space) + `"`)
			} else {
				declarations.WriteString(" xmlns:" + n.prefix + `="` + escaped(n.space) + `"`)
			}
		}
	}
	d.end = []byte("</" + name + ">")
	if d.isField {
		d.open, d.empty = []byte("<"+name+">"), []byte("<"+name+"/>")
		return
	}
	d.open = []byte("<" + name + declarations.String())
}

func escaped(value string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;").Replace(value)
}
