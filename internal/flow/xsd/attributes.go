package xsd

import (
	"slices"
	"strings"
)

// attributesOf adds the attributes of a group.
func (b *builder) attributesOf(e *Element, n *node) error {
	found, err := b.global(b.set.attrGroups, n, n.attrs["ref"], "attribute group")
	if err != nil {
		return err
	}
	if slices.Contains(b.open, found.node) {
		return n.broken("an attribute group contains itself", "leave the reference out")
	}
	b.open = append(b.open, found.node)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	for _, c := range found.node.children {
		e.HasAnyAttribute = e.HasAnyAttribute || c.is("anyAttribute")
		if c.is("attribute") || c.is("attributeGroup") {
			if err := b.attribute(e, c, found.document); err != nil {
				return err
			}
		}
	}
	return nil
}

// attribute adds an attribute, or those of a group.
func (b *builder) attribute(e *Element, n *node, d *document) error {
	if n.is("attributeGroup") {
		return b.attributesOf(e, n)
	}
	if n.attrs["use"] == "prohibited" {
		return nil
	}
	a := &Attribute{Required: n.attrs["use"] == "required", Field: n.annotation("fieldInfo"), Place: n.place, File: n.file}
	declared, in := n, d
	if ref := n.attrs["ref"]; ref != "" {
		name, err := n.qname(ref)
		if err != nil {
			return err
		}
		if name.Space == "http://www.w3.org/XML/1998/namespace" {
			return nil
		}
		found, err := b.global(b.set.attributes, n, ref, "attribute")
		if err != nil {
			return err
		}
		declared, in = found.node, found.document
		if a.Field == nil {
			a.Field = declared.annotation("fieldInfo")
		}
	}
	a.Name = Name{Local: declared.attrs["name"]}
	if b.isGlobal(declared, in, b.set.attributes) || qualified(declared, in.qualifiedAttribute) {
		a.Name.Space = in.space
	}
	a.Default, a.Fixed = optional(declared, "default"), optional(declared, "fixed")
	var err error
	if own := declared.child("simpleType"); own != nil {
		a.Simple, err = b.simpleType(own)
	} else {
		a.Simple, err = b.namedSimple(declared, declared.attrs["type"])
	}
	e.Attributes = append(e.Attributes, a)
	return err
}

// properties reads what the annotation of a root promotes.
func properties(n *node) []Property {
	info := n.appinfo("properties")
	if info == nil {
		return nil
	}
	var all []Property
	for _, c := range info.children {
		if c.name.Local != "property" {
			continue
		}
		p := Property{XPath: c.attrs["xpath"], Distinguished: c.attrs["distinguished"] == "true", Place: c.place}
		if written := c.attrs["name"]; written != "" {
			prefix, local, has := strings.Cut(written, ":")
			if !has {
				prefix, local = "", written
			}
			p.Name, p.Namespace = local, c.bindings[prefix]
		}
		all = append(all, p)
	}
	return all
}
