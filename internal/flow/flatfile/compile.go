package flatfile

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

type compiler struct {
	schema     *Schema
	info       xsd.Annotation
	anyNewline bool
	file       string
}

func (c *compiler) broken(place fault.Place, message, remedy string) error {
	return &fault.Fault{Message: message, Remedy: remedy, File: c.file, Place: place}
}

// record compiles an element with its children. around are the delimiters of the records that contain it.
func (c *compiler) record(e *xsd.Element, path string, around []*delimiter) (*definition, error) {
	d := &definition{name: e.Name, path: path + e.Name.Local, place: e.Place, fallback: e.Default, fixed: e.Fixed}
	if e.Content == nil && len(e.Attributes) == 0 && e.Record == nil {
		d.isField = true
		return d, c.field(d, e.Field, e.Simple)
	}
	if e.IsMixed {
		return nil, c.broken(e.Place, fmt.Sprintf("element %s has text beside attributes or elements", e.Name.Local),
			"put the text into an element or attribute of its own: a record has fields only")
	}
	if err := c.structure(d, e.Record); err != nil {
		return nil, err
	}
	inner := append(slices.Clone(around), d.delimiter, d.repeating)
	if d.isPositional {
		inner = around
	}
	d.outer = newStops(around, nil)
	top, err := c.children(d, e, inner)
	if err != nil {
		return nil, err
	}
	d.content = top
	c.laterTags(top, nil)
	c.setStops(d, top, around, true)
	return d, nil
}

// structure reads recordInfo.
func (c *compiler) structure(d *definition, info xsd.Annotation) error {
	switch written := info["structure"]; written {
	case "", "delimited":
	case "positional":
		d.isPositional = true
	default:
		return c.broken(d.place, fmt.Sprintf("structure is %q", written), "write delimited or positional")
	}
	d.suppressTrailing = isTrue(info, "suppress_trailing_delimiters", false)
	d.preserveEmpty = isTrue(info, "preserve_delimiter_for_empty_data", true)
	d.tag = []byte(info["tag_name"])
	var err error
	if written, ok := info["tag_offset"]; ok {
		if d.tagOffset, err = strconv.Atoi(written); err != nil || d.tagOffset < 0 {
			return c.broken(d.place, fmt.Sprintf("tag_offset is %q", written), "write a number from 0")
		}
		if d.tagOffset > 0 && !d.isPositional {
			return c.broken(d.place, "tag_offset in a delimited record", "leave it away: the tag of a delimited record stands at its beginning")
		}
	}
	if d.isPositional {
		return nil
	}
	if d.delimiter, err = c.delimiter(d.place, info, "child_delimiter", c.info, "default_child_delimiter"); err != nil {
		return err
	}
	if d.repeating, err = c.delimiter(d.place, info, "repeating_delimiter", c.info, "default_repeating_delimiter"); err != nil {
		return err
	}
	if d.escape, err = c.character(d.place, info, "escape_char", c.info, "default_escape_char"); err != nil {
		return err
	}
	d.order, err = c.order(d, info["child_order"])
	return err
}

func (c *compiler) order(d *definition, written string) (order, error) {
	if written == "default" {
		written = c.info["default_child_order"]
	}
	switch written {
	case "infix":
		return infix, nil
	case "prefix":
		return prefix, nil
	case "postfix":
		return postfix, nil
	case "", "default", "conditional_default":
		if len(d.tag) > 0 {
			return prefix, nil
		}
		return infix, nil
	}
	return infix, c.broken(d.place, fmt.Sprintf("child_order is %q", written), "write prefix, infix, postfix or default")
}

// numbered is a child with its place in the flat file.
type numbered struct {
	part   *part
	number int
	has    bool
}

// children compiles attributes, elements and groups of a record into one group in the order of the flat file.
func (c *compiler) children(d *definition, e *xsd.Element, around []*delimiter) (*group, error) {
	var all []numbered
	index := 0
	for _, a := range e.Attributes {
		f := &definition{
			name: a.Name, path: d.path + "/@" + a.Name.Local, place: a.Place, isField: true, isAttr: true, index: index,
			fallback: a.Default, fixed: a.Fixed,
		}
		index++
		if err := c.field(f, a.Field, a.Simple); err != nil {
			return nil, err
		}
		d.attributes = append(d.attributes, f)
		p := &part{definition: f, max: 1}
		if a.Required {
			p.min = 1
		}
		number, has, err := c.sequenceNumber(a.Place, a.Field)
		if err != nil {
			return nil, err
		}
		all = append(all, numbered{p, number, has})
	}
	top := xsd.Sequence
	if e.Content != nil {
		simple := e.Content.Order == xsd.Sequence && e.Content.Min == 1 && e.Content.Max == 1
		if simple {
			parts, err := c.parts(e.Content, d, around, &index)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		} else {
			g, err := c.group(e.Content, d, around, &index)
			if err != nil {
				return nil, err
			}
			number, has, err := c.sequenceNumber(e.Content.Place, e.Content.Info)
			if err != nil {
				return nil, err
			}
			all = append(all, numbered{&part{group: g, min: e.Content.Min, max: e.Content.Max}, number, has && number > 0})
		}
	}
	g := &group{order: top}
	arrange(all, d, g)
	return g, nil
}

// arrange sorts children by sequence_number; those without one keep their places behind the others.
func arrange(all []numbered, d *definition, g *group) {
	slices.SortStableFunc(all, func(a, b numbered) int {
		switch {
		case a.has && b.has:
			return a.number - b.number
		case a.has:
			return -1
		case b.has:
			return 1
		}
		return 0
	})
	last := -1
	for _, n := range all {
		if f := n.part.definition; f != nil && !f.isAttr {
			if f.index < last {
				d.isReordered = true
			}
			last = f.index
		}
		g.parts = append(g.parts, n.part)
	}
}

func (c *compiler) sequenceNumber(place fault.Place, info xsd.Annotation) (number int, has bool, err error) {
	written, ok := info["sequence_number"]
	if !ok {
		return 0, false, nil
	}
	number, err = strconv.Atoi(written)
	if err != nil {
		return 0, false, c.broken(place, fmt.Sprintf("sequence_number is %q", written), "write a number from 1")
	}
	return number, true, nil
}

// parts compiles the parts of a group with their numbers. A sequence in it that says nothing of its own is as if it were not there.
func (c *compiler) parts(g *xsd.Group, d *definition, around []*delimiter, index *int) ([]numbered, error) {
	var all []numbered
	for _, p := range g.Parts {
		if p.Group != nil {
			inner, err := c.innerGroup(p.Group, d, around, index)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		child, err := c.record(p.Element, d.path+"/", around)
		if err != nil {
			return nil, err
		}
		child.index = *index
		*index++
		if d.isPositional && !child.isField && !child.isPositional {
			return nil, c.broken(p.Element.Place,
				fmt.Sprintf("positional record %s contains delimited record %s", d.name.Local, child.name.Local),
				"make the inner one positional too, or the outer one delimited")
		}
		info := p.Element.Field
		if !child.isField {
			info = p.Element.Record
		}
		number, has, err := c.sequenceNumber(p.Element.Place, info)
		if err != nil {
			return nil, err
		}
		if p.Element.Max == 0 {
			continue
		}
		all = append(all, numbered{&part{definition: child, min: p.Element.Min, max: p.Element.Max}, number, has})
	}
	return all, nil
}

// innerGroup compiles a group within a group: its parts where it is as if it were not there, else the group as a part.
func (c *compiler) innerGroup(g *xsd.Group, d *definition, around []*delimiter, index *int) ([]numbered, error) {
	number, has, err := c.sequenceNumber(g.Place, g.Info)
	if err != nil {
		return nil, err
	}
	if g.Order == xsd.Sequence && g.Min == 1 && g.Max == 1 && (!has || number == 0) {
		return c.parts(g, d, around, index)
	}
	inner, err := c.group(g, d, around, index)
	if err != nil {
		return nil, err
	}
	return []numbered{{&part{group: inner, min: g.Min, max: g.Max}, number, has && number > 0}}, nil
}

func (c *compiler) group(g *xsd.Group, d *definition, around []*delimiter, index *int) (*group, error) {
	parts, err := c.parts(g, d, around, index)
	if err != nil {
		return nil, err
	}
	compiled := &group{order: g.Order}
	arrange(parts, d, compiled)
	if g.Order == xsd.Choice {
		compiled.tries = slices.Clone(compiled.parts)
		slices.SortStableFunc(compiled.tries, func(a, b *part) int { return len(tagOf(b)) - len(tagOf(a)) })
	}
	return compiled, nil
}

func tagOf(p *part) []byte {
	if p.definition == nil {
		return nil
	}
	return p.definition.tag
}
