package flatfile

import (
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// order is where the delimiter of a record stands: before, between or behind its children.
type order uint8

const (
	infix order = iota
	prefix
	postfix
)

func (o order) String() string { return [...]string{"infix", "prefix", "postfix"}[o] }

// A definition is a record or a field, compiled.
type definition struct {
	name    xsd.Name
	path    string // names of the records to it, with slashes
	place   fault.Place
	isField bool
	isAttr  bool
	index   int // of the element or attribute in the order of the XML document

	// How it is written as XML.
	open, end, empty []byte

	// A record.
	isPositional     bool
	tag              []byte
	tagOffset        int
	delimiter        *delimiter // of the children; nil: none
	repeating        *delimiter // between repetitions of one child; nil: the delimiter
	order            order
	escape           []byte
	content          *group
	attributes       []*definition
	isReordered      bool // the order in the flat file is not that in XML
	suppressTrailing bool
	preserveEmpty    bool
	streams          bool // its children are given out one by one
	outer            *stops
	longerTags       [][]byte // of siblings, which begin with its tag
	children         map[xsd.Name]child

	// A field.
	stops          *stops
	wrap           []byte
	pad            []byte
	isRight        bool // justification
	keepsOnePad    bool // a number padded with zeros is never empty
	length, offset int
	minPadded      int
	dates          *dateFormat
	simple         *xsd.SimpleType
	fallback       *string // default
	fixed          *string
}

// A child says in which part of a record an element belongs.
type child struct {
	definition *definition
	part       int
}

// kind is the word for it in messages.
func (d *definition) kind() string {
	if d.isField {
		return "field"
	}
	return "record"
}

// A group is the children of a record, or some of them, in the order of the flat file.
type group struct {
	order xsd.Order
	parts []*part
	tries []*part // of a choice: in which order the alternatives are tried
}

// A part is a child or a group of them, as often as it occurs; either is nil.
type part struct {
	definition    *definition
	group         *group
	min, max      int
	laterTags     []*definition // records that may come next when this part does not, and have a tag
	afterOptional bool          // a sibling before it may be absent
}

func (p *part) mayRepeat(count int) bool { return p.max == xsd.Unbounded || count < p.max }

// A delimiter is a text that separates.
type delimiter struct {
	text       []byte
	anyNewline bool // CR, LF and CR LF are the same
}

// isNewline reports whether the delimiter ends lines.
func (d *delimiter) isNewline() bool {
	if d == nil {
		return false
	}
	for _, b := range d.text {
		if b == '\r' || b == '\n' {
			return true
		}
	}
	return false
}

// stops is the texts that end a value.
type stops struct {
	delimiters []*delimiter
	first      [256]bool // bytes with which one begins, or the escape character
	sure       [256]bool // bytes that are a delimiter each, alone, and begin no other text
	only       int       // the one first byte, or -1
	escape     []byte
}

func newStops(delimiters []*delimiter, escape []byte) *stops {
	s := &stops{only: -1, escape: escape}
	count := 0
	mark := func(b byte) {
		if !s.first[b] {
			s.first[b] = true
			s.only = int(b)
			count++
		}
	}
	for _, d := range delimiters {
		if d == nil || len(d.text) == 0 {
			continue
		}
		s.delimiters = append(s.delimiters, d)
		if d.anyNewline {
			mark('\r')
			mark('\n')
		} else {
			mark(d.text[0])
		}
	}
	if len(escape) > 0 {
		mark(escape[0])
	}
	if count != 1 {
		s.only = -1
	}
	for _, d := range s.delimiters {
		if len(d.text) == 1 && !d.anyNewline {
			s.sure[d.text[0]] = true
		}
	}
	for _, d := range s.delimiters {
		if len(d.text) > 1 || d.anyNewline {
			s.sure[d.text[0]] = false
		}
		if d.anyNewline {
			s.sure['\r'], s.sure['\n'] = false, false
		}
	}
	if len(escape) > 0 {
		s.sure[escape[0]] = false
	}
	return s
}
