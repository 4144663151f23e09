package flatfile

import (
	"bytes"
	"fmt"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// units writes the children of a delimited record with their delimiters. An empty or absent child waits until it is known whether something
// follows it.
type units struct {
	writer  *writer
	record  *definition
	to      []byte
	count   int         // children written
	last    *definition // written last
	waiting []*definition
	absent  []bool // of those that wait, which are not there at all
}

// add writes a child that is there.
func (u *units) add(p *part, t *tree) error {
	if u.record.isPositional {
		var err error
		u.to, err = u.writer.appendPositional(u.to, t)
		return err
	}
	from := len(u.to)
	unit, err := u.writer.appendTree(u.to, t)
	if err != nil {
		return err
	}
	if err := u.writer.checkTags(p, t, unit[from:]); err != nil {
		return err
	}
	if len(unit) == from {
		u.waiting, u.absent = append(u.waiting, t.definition), append(u.absent, false)
		return nil
	}
	text := bytes.Clone(unit[from:])
	u.to = unit[:from]
	u.before(t.definition)
	u.to = append(u.to, text...)
	u.after()
	return nil
}

// missing writes what stands for a part that is not there: its default or fixed value, or nothing.
func (u *units) missing(p *part, count int, place fault.Place) error {
	if count >= max(p.min, 1) {
		return nil
	}
	d := p.definition
	if d == nil {
		if p.min > 0 && count == 0 && !mayBeEmpty(p.group) {
			return &fault.Fault{
				Message: "a group of elements is missing", Record: u.record.path, Place: place,
				Remedy: "add its elements to the document",
			}
		}
		return nil
	}
	value := d.fixed
	if value == nil {
		value = d.fallback
	}
	switch {
	case d.isField && value != nil && count == 0:
		return u.add(p, &tree{definition: d, value: *value, place: place})
	case count < p.min:
		return &fault.Fault{
			Message: fmt.Sprintf("%s %s is missing: there are %d of at least %d", d.kind(), d.name.Local, count, p.min),
			Record:  u.record.path, Place: place,
			Remedy: "add it to the document, or give it a default value or minOccurs=\"0\" in the schema",
		}
	case count == 0 && d.isField && u.record.isPositional:
		return u.add(p, &tree{definition: d, place: place})
	case count == 0 && !u.record.isPositional:
		u.waiting, u.absent = append(u.waiting, d), append(u.absent, true)
	}
	return nil
}

func mayBeEmpty(g *group) bool {
	for _, p := range g.parts {
		empty := p.min == 0 || p.group != nil && mayBeEmpty(p.group)
		if g.order == xsd.Choice && empty {
			return true
		}
		if g.order != xsd.Choice && !empty {
			return false
		}
	}
	return g.order != xsd.Choice || len(g.parts) == 0
}

// before writes what waits, and the delimiter that stands before a child.
func (u *units) before(d *definition) {
	for i, w := range u.waiting {
		switch {
		case u.absent[i] && !w.isField, u.absent[i] && len(d.tag) > 0: // a tag shows that nothing was left out
		case !u.absent[i] && !u.record.preserveEmpty:
		default:
			u.open(w)
			u.after()
		}
	}
	u.waiting, u.absent = u.waiting[:0], u.absent[:0]
	u.open(d)
}

func (u *units) open(d *definition) {
	r := u.record
	separator := r.delimiter
	if r.repeating != nil && u.last == d {
		separator = r.repeating
	}
	if separator != nil && r.order == postfix && u.last == d && r.repeating != nil {
		u.to = append(u.to[:len(u.to)-len(r.delimiter.text)], r.repeating.text...)
	} else if separator != nil && (r.order == prefix || r.order == infix && u.count > 0) {
		u.to = append(u.to, separator.text...)
	}
	u.count++
	u.last = d
}

func (u *units) after() {
	if r := u.record; r.order == postfix && r.delimiter != nil {
		u.to = append(u.to, r.delimiter.text...)
	}
}

// close writes the empty children at the end of a record, unless they are suppressed. An absent one is left away.
func (u *units) close() {
	last := len(u.waiting)
	for last > 0 && u.absent[last-1] {
		last--
	}
	if u.record.suppressTrailing {
		last = 0
	}
	for i, w := range u.waiting[:last] {
		if !u.absent[i] || w.isField {
			u.open(w)
			u.after()
		}
	}
}

// appendTree appends the text of a record or field.
func (w *writer) appendTree(to []byte, t *tree) ([]byte, error) {
	d := t.definition
	switch {
	case d.isField:
		return w.appendField(to, t)
	case d.isPositional:
		return w.appendPositional(to, t)
	}
	u := &units{writer: w, record: d, to: append(to, d.tag...)}
	if err := w.parts(u, d.content, t.children, t.place); err != nil {
		return to, err
	}
	u.close()
	return u.to, nil
}

// parts writes children in the order of the flat file.
func (w *writer) parts(u *units, g *group, children []*tree, place fault.Place) error {
	for _, p := range g.parts {
		if p.group != nil {
			if err := w.repetitions(u, p, children, place); err != nil {
				return err
			}
			continue
		}
		count := 0
		for _, t := range children {
			if t.definition != p.definition {
				continue
			}
			if !p.mayRepeat(count) {
				return &fault.Fault{
					Message: fmt.Sprintf("more than %d of %s %s", p.max, t.definition.kind(), t.definition.name.Local),
					Record:  u.record.path, Place: t.place,
					Remedy: "split the document, or raise maxOccurs",
				}
			}
			if err := u.add(p, t); err != nil {
				return err
			}
			count++
		}
		if g.order == xsd.Sequence || p.min > 0 && g.order == xsd.All {
			if err := u.missing(p, count, place); err != nil {
				return err
			}
		}
	}
	return nil
}

// repetitions writes the occurrences of a group: in each of a sequence its parts in order, of a choice what is there.
func (w *writer) repetitions(u *units, p *part, children []*tree, place fault.Place) error {
	in := map[*definition]int{}
	for i := range p.group.parts {
		(&group{parts: p.group.parts[i : i+1]}).each(func(d *definition) { in[d] = i })
	}
	var occurrence []*tree
	count, last := 0, -1
	flush := func() error {
		if len(occurrence) == 0 {
			return nil
		}
		count++
		err := w.parts(u, p.group, occurrence, occurrence[0].place)
		occurrence = occurrence[:0]
		return err
	}
	for _, t := range children {
		index, ok := in[t.definition]
		if !ok {
			continue
		}
		isSingle := p.group.parts[index].max == 1
		isNew := index < last || index == last && isSingle
		if p.group.order == xsd.Choice {
			isNew = last >= 0 && (index != last || isSingle)
		}
		if p.max == 1 && p.group.order != xsd.Choice {
			isNew = false
		}
		if isNew {
			if err := flush(); err != nil {
				return err
			}
		}
		occurrence = append(occurrence, t)
		last = index
	}
	if err := flush(); err != nil {
		return err
	}
	return u.missing(p, count, place)
}
