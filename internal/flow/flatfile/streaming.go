package flatfile

import (
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

// giveOut writes the part that was just read of a record that streams, and forgets it. It reports whether reading goes on.
func (p *parser) giveOut(pt *part, s *state, from int) bool {
	written, opens := len(p.out.buf), p.writtenOpens()
	err := p.flush(s.node)
	if err == nil {
		p.forget()
		return true
	}
	f, isFault := fault.Of(err)
	switch {
	case isFault && p.recovers(pt, s):
		p.out.buf = p.out.buf[:written]
		for i := opens; i < len(p.opens); i++ {
			p.opens[i].isWritten = false // their start tags were taken back with the record
		}
		p.drop(s.node)
		f.End = p.byteOf(p.pos)
		if err := p.bad(interchange.Bad{Fault: f, From: p.byteOf(from), To: f.End, Raw: p.buf[from:p.pos]}); err != nil {
			p.hard = err
			return false
		}
	default:
		p.hard = err
		return false
	}
	p.forget()
	return true
}

// forget frees the window up to where reading stands.
func (p *parser) forget() {
	if p.pos >= windowBytes/2 {
		p.discard()
		p.failure = failure{expected: p.failure.expected[:0]}
		p.furthest = 0
		if p.settings.Progress != nil {
			p.settings.Progress(p.gone)
		}
	}
	p.scratch = p.scratch[:0]
}

// flush writes the elements that were read of the innermost open record. Attributes wait for the first of them.
func (p *parser) flush(node int32) error {
	hasElements := false
	for child := p.instances[node].first; child != 0 && !hasElements; child = p.instances[child].next {
		hasElements = !p.instances[child].definition.isAttr
	}
	if !hasElements {
		return nil
	}
	if err := p.writeOpens(); err != nil {
		return err
	}
	if _, err := p.emitElements(node); err != nil {
		return err
	}
	p.drop(node)
	if len(p.out.buf) >= emitBytes {
		return p.out.spill()
	}
	return nil
}

// writtenOpens counts the open records whose start tags are written: the outer ones.
func (p *parser) writtenOpens() int {
	n := 0
	for n < len(p.opens) && p.opens[n].isWritten {
		n++
	}
	return n
}

// writeOpens writes the start tags that wait.
func (p *parser) writeOpens() error {
	for i := range p.opens {
		if p.opens[i].isWritten {
			continue
		}
		if err := p.emitStart(p.opens[i].node); err != nil {
			return err
		}
		p.opens[i].isWritten = true
	}
	return nil
}

// drop forgets the elements of a record; its attributes too, once its start tag is written.
func (p *parser) drop(node int32) {
	keep, last := node+1, int32(0)
	if !p.opens[len(p.opens)-1].isWritten {
		for child := p.instances[node].first; child != 0 && p.instances[child].definition.isAttr; child = p.instances[child].next {
			keep, last = child+1, child
		}
	}
	p.instances = p.instances[:keep]
	p.instances[node].last = last
	if last == 0 {
		p.instances[node].first = 0
	} else {
		p.instances[last].next = 0
	}
}

// stream reads a record within one that streams, and gives its children out one by one.
func (p *parser) stream(d *definition, s *state) bool {
	if !p.takeTag(d) {
		return false
	}
	n := p.add(s.node, instance{definition: d, start: p.pos})
	p.opens = append(p.opens, open{node: n})
	inner := state{definition: d, node: n, streams: true}
	ok := p.group(d.content, &inner)
	if ok {
		p.hard = p.closeOpen()
		ok = p.hard == nil
	} else if p.hard == nil && p.opens[len(p.opens)-1].isWritten {
		p.hard = p.fault() // what was given out cannot be taken back
	}
	p.opens = p.opens[:len(p.opens)-1]
	if ok {
		p.drop(s.node)
	}
	return ok
}

// closeOpen writes what is left of the innermost open record, and its end tag.
func (p *parser) closeOpen() error {
	top := p.opens[len(p.opens)-1]
	if err := p.flush(top.node); err != nil {
		return err
	}
	if err := p.writeOpens(); err != nil {
		return err
	}
	p.out.buf = append(p.out.buf, p.instances[top.node].definition.end...)
	return nil
}

// recovers reports whether a bad occurrence of a part can be passed over, so that the record goes on.
func (p *parser) recovers(pt *part, s *state) bool {
	return p.settings.Recover == interchange.Records && s.streams && pt.max != 1 &&
		s.definition.delimiter != nil && p.bad != nil
}

// restMatches reports whether what follows a part stands here, in the record or behind it.
func (p *parser) restMatches(g *group, from int, s *state) bool {
	before := p.failure
	before.expected = append([]string(nil), before.expected...)
	defer func() { p.failure = before }()
	m := p.mark(s)
	defer func() { p.restore(m, s) }()
	if s.definition.outer != nil && p.matchAny(s.definition.outer, p.pos) > 0 {
		return true
	}
	whole := *s
	whole.streams = false
	for i := from; i < len(g.parts); i++ {
		if !p.part(g, i, &whole) {
			return false
		}
		if p.pos > m.pos {
			return true
		}
	}
	if len(p.opens) > 1 {
		return false
	}
	return p.follows != nil && p.follows()
}

// passOver reports an occurrence that could not be read, and goes on behind the next delimiter of the record.
func (p *parser) passOver(f *fault.Fault, s *state, from int) bool {
	d := s.definition
	if err := p.broken(); err != nil {
		p.hard = err
		return false
	}
	at := from
	if d.order != postfix {
		at += p.match(d.delimiter, at)
	}
	begin := at
	end, _ := p.stop(at, newStops(append([]*delimiter{d.delimiter}, d.outer.delimiters...), d.escape))
	if err := p.broken(); err != nil {
		p.hard = err
		return false
	}
	p.pos = end
	if d.order == postfix {
		p.pos += p.match(d.delimiter, end)
	}
	f.End = p.byteOf(p.pos)
	if err := p.bad(interchange.Bad{Fault: f, From: p.byteOf(begin), To: f.End, Raw: p.buf[begin:p.pos]}); err != nil {
		p.hard = err
		return false
	}
	s.count++
	p.failure = failure{expected: p.failure.expected[:0]}
	p.forget()
	return p.pos > 0 || end > from || !p.atEnd()
}
