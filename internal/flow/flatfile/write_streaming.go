package flatfile

import (
	"context"
	"fmt"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// A course is how far the parts of a record that streams are written.
type course struct {
	units *units
	place fault.Place // of the record
	at    int         // index of the part
	count int         // elements of it
}

// advance goes on to a part, and writes what stands for those before it that are not there.
func (c *course) advance(until int) error {
	for ; c.at < until; c.at++ {
		if err := c.units.missing(c.units.record.content.parts[c.at], c.count, c.place); err != nil {
			return err
		}
		c.count = 0
	}
	return nil
}

// attributes writes the attributes of the record.
func (c *course) attributes(attrs []*tree) error {
	for i, p := range c.units.record.content.parts {
		if p.definition == nil || !p.definition.isAttr {
			continue
		}
		for _, attr := range attrs {
			if attr.definition != p.definition {
				continue
			}
			if err := c.advance(i); err != nil {
				return err
			}
			c.count = 1
			if err := c.units.add(p, attr); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream writes a record of which parts may come without a limit, part by part.
func (w *writer) stream(ctx context.Context, d *definition) error {
	t := &tree{definition: d, place: w.scanner.Place()}
	if err := w.readAttributes(t); err != nil {
		return err
	}
	w.buf = append(w.buf, d.tag...)
	u := &units{writer: w, record: d, to: w.buf}
	c := &course{units: u, place: t.place}
	if err := c.attributes(t.children); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind, err := w.next()
		if err != nil {
			return err
		}
		switch kind {
		case xmlscan.EndElement:
			if err := c.advance(len(d.content.parts)); err != nil {
				return err
			}
			u.close()
			w.buf = u.to
			return w.spill(emitBytes)
		case xmlscan.StartElement:
			if err := w.streamElement(ctx, c); err != nil {
				return err
			}
		case xmlscan.Text, xmlscan.CDATA:
			if err := w.onlyBlank(d); err != nil {
				return err
			}
		case xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

// streamElement finds the part of an element, whose start tag was read, and writes it there.
func (w *writer) streamElement(ctx context.Context, c *course) error {
	d := c.units.record
	found, err := w.childOf(d)
	if err != nil {
		return err
	}
	if found.part < c.at {
		return w.broken(fmt.Sprintf("element %s of record %s stands behind what follows it", found.definition.name.Local, d.path),
			"write the elements in the order of the schema")
	}
	if err := c.advance(found.part); err != nil {
		return err
	}
	if err := w.streamChild(ctx, c.units, d.content.parts[found.part], found.definition, c.count); err != nil {
		return err
	}
	c.count++
	return nil
}

// streamChild writes one element of a record that streams.
func (w *writer) streamChild(ctx context.Context, u *units, p *part, d *definition, count int) error {
	if p.definition != nil && !p.mayRepeat(count) {
		return w.broken(fmt.Sprintf("more than %d of element %s", p.max, d.path), "split the document, or raise maxOccurs")
	}
	if d.streams {
		u.before(d)
		w.buf = u.to
		if err := w.stream(ctx, d); err != nil {
			return err
		}
		u.to = w.buf
		u.after()
		return nil
	}
	w.trees = 0
	t, err := w.read(d)
	if err != nil {
		return err
	}
	if err := u.add(p, t); err != nil {
		return err
	}
	w.buf = u.to
	err = w.spill(emitBytes)
	u.to = w.buf
	return err
}
