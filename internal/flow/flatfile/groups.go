package flatfile

import (
	"github.com/parley-broker/parley/internal/flow/fault"
)

// choice reads the first alternative that fits: those with tags first, the longest tag before shorter ones.
func (p *parser) choice(g *group, s *state) bool {
	mayBeEmpty := len(g.tries) == 0
	single := group{parts: []*part{nil}}
	for _, pt := range g.tries {
		mayBeEmpty = mayBeEmpty || pt.min == 0
		if pt.definition != nil && len(pt.definition.tag) > 0 && p.isAbsent(pt, s, 0) {
			p.fail(p.pos, pt.definition, nil, "tag "+string(pt.definition.tag)+" of record "+pt.definition.name.Local)
			continue
		}
		m := p.mark(s)
		single.parts[0] = pt
		if p.part(&single, 0, s) && p.pos > m.pos {
			return true
		}
		if p.hard != nil {
			return false
		}
		p.restore(m, s)
	}
	return mayBeEmpty
}

// all reads each part at most as often as it may occur, in any order.
func (p *parser) all(g *group, s *state) bool {
	done := make([]bool, len(g.parts))
	single := group{parts: []*part{nil}}
	for progress := true; progress; {
		progress = false
		for i, pt := range g.parts {
			if done[i] || p.isAbsent(pt, s, 0) {
				continue
			}
			m := p.mark(s)
			single.parts[0] = pt
			if p.part(&single, 0, s) && p.pos > m.pos {
				done[i], progress = true, true
				continue
			}
			if p.hard != nil {
				return false
			}
			p.restore(m, s)
		}
	}
	for i, pt := range g.parts {
		if !done[i] && pt.min > 0 {
			if d := pt.definition; d != nil {
				p.fail(p.pos, d, s.definition, d.kind()+" "+d.name.Local)
			}
			return false
		}
	}
	return true
}

// stepsMost bounds how long the search for a reading of one file may go on taking choices back.
const stepsMost = 1 << 24

// backtracking reads a sequence from a part on. It takes choices back, the last one first, until the rest fits: at most lookahead_depth
// of them since the reading last got further.
func (p *parser) backtracking(g *group, s *state, index, count int) bool {
	if index == len(g.parts) {
		return p.endsWell(s)
	}
	pt := g.parts[index]
	if pt.mayRepeat(count) && (count < pt.min || !p.isAbsent(pt, s, count)) {
		m := p.mark(s)
		if p.instance(pt, s, count, count < pt.min) && (p.pos > m.pos || count < pt.min) {
			if p.pos > p.furthest {
				p.furthest, p.unwound = p.pos, 0
			}
			if p.backtracking(g, s, index, count+1) {
				return true
			}
		}
		if p.hard != nil {
			return false
		}
		p.restore(m, s)
		if count < pt.min {
			return false
		}
		p.unwound++
		if p.unwound > stepsMost {
			p.hard = &fault.Fault{
				Message: "the file fits the schema in too many ways", Place: p.placeOf(p.pos),
				Remedy: "give the records tags, set lookahead_depth, or set parser_optimization to speed",
			}
			return false
		}
		if p.schema.lookahead > 0 && p.unwound > p.schema.lookahead {
			return false
		}
	}
	return p.backtracking(g, s, index+1, 0)
}

// endsWell reports whether a record may end here: at the end of the file or at a delimiter of a record around it.
func (p *parser) endsWell(s *state) bool {
	d := s.definition
	if d.outer == nil || len(d.outer.delimiters) == 0 || d.isPositional || p.atEnd() || p.matchAny(d.outer, p.pos) > 0 || d.order == postfix {
		return true
	}
	return p.fail(p.pos, d, nil, "the end of record "+d.name.Local)
}
