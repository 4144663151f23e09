package flatfile

import (
	"bytes"
	"slices"

	"github.com/parley-broker/parley/internal/flow/xsd"
)

// laterTags says for each part which tags may come next when the part does not. behind are those of what follows the group.
func (c *compiler) laterTags(g *group, behind []*definition) {
	if g.order != xsd.Sequence {
		for _, p := range g.parts {
			p.laterTags = behind
			if g.order == xsd.All {
				for _, other := range g.parts {
					if other != p {
						p.laterTags = append(slices.Clone(p.laterTags), firstTags(other)...)
					}
				}
			}
			if p.group != nil {
				c.laterTags(p.group, p.laterTags)
			}
		}
		return
	}
	optionalBefore := false
	for i, p := range g.parts {
		p.afterOptional = optionalBefore
		optionalBefore = optionalBefore || p.min == 0
		later := []*definition{}
		open := true
		for _, next := range g.parts[i+1:] {
			later = append(later, firstTags(next)...)
			if next.min > 0 {
				open = false
				break
			}
		}
		if open {
			later = append(later, behind...)
		}
		p.laterTags = later
		if p.group != nil {
			c.laterTags(p.group, later)
		}
	}
}

// firstTags gives the tagged records with which a part may begin.
func firstTags(p *part) []*definition {
	if p.definition != nil {
		if len(p.definition.tag) > 0 {
			return []*definition{p.definition}
		}
		return nil
	}
	var tags []*definition
	for _, inner := range p.group.parts {
		tags = append(tags, firstTags(inner)...)
		if p.group.order == xsd.Sequence && inner.min > 0 {
			break
		}
	}
	return tags
}

// setStops gives each field the texts that end its value. In the last child of an infix or prefix record the delimiter of the record is
// data, as nothing can follow; but not if it ends lines.
func (c *compiler) setStops(d *definition, g *group, around []*delimiter, isLast bool) {
	for i, p := range g.parts {
		last := isLast && p.max == 1 && (g.order != xsd.Sequence || i == len(g.parts)-1) && g.order != xsd.All
		if p.group != nil {
			c.setStops(d, p.group, around, last)
			continue
		}
		if !p.definition.isField {
			continue
		}
		ends := slices.Clone(around)
		if !last || d.order == postfix || d.delimiter.isNewline() {
			ends = append(ends, d.delimiter, d.repeating)
		}
		p.definition.stops = newStops(ends, d.escape)
	}
}

// nameTags tells records of one parent whose tags begin alike from each other, and names what every definition is in XML.
func (c *compiler) nameTags(root *definition) {
	c.nameSpaces(root)
	var walk func(d *definition)
	walk = func(d *definition) {
		c.xmlNames(d)
		if d.isField {
			return
		}
		for _, a := range d.attributes {
			c.xmlNames(a)
		}
		var records []*definition
		var collect func(g *group)
		collect = func(g *group) {
			for _, p := range g.parts {
				switch {
				case p.group != nil:
					collect(p.group)
				case !p.definition.isAttr:
					records = append(records, p.definition)
				}
			}
		}
		collect(d.content)
		d.children = map[xsd.Name]child{}
		for i, p := range d.content.parts {
			(&group{parts: []*part{p}}).each(func(inner *definition) {
				if _, has := d.children[inner.name]; !has && !inner.isAttr {
					d.children[inner.name] = child{inner, i}
				}
			})
		}
		for _, r := range records {
			for _, other := range records {
				if len(r.tag) > 0 && len(other.tag) > len(r.tag) && bytes.HasPrefix(other.tag, r.tag) && r.tagOffset == other.tagOffset {
					r.longerTags = append(r.longerTags, other.tag)
				}
			}
			walk(r)
		}
	}
	walk(root)
}

// markStreams marks the records whose children can be given out before the record ends: those that contain something without a limit, and
// whose attributes all come first.
func (d *definition) markStreams(isComplex bool) bool {
	if d.isField {
		return false
	}
	hasUnbounded := false
	sawElement, inOrder := false, !d.isReordered
	for _, p := range d.content.parts {
		if p.definition != nil && p.definition.isAttr {
			inOrder = inOrder && !sawElement
			continue
		}
		sawElement = true
		if p.max == xsd.Unbounded {
			hasUnbounded = true
		}
		if p.definition != nil && p.definition.markStreams(isComplex) && p.max == 1 {
			hasUnbounded = true
		}
	}
	d.streams = hasUnbounded && inOrder && !d.isPositional && (!isComplex || len(d.content.parts) == 1)
	return d.streams
}
