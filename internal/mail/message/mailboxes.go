package message

import (
	"slices"
	"strings"
)

// Mailbox is an address with the name that stands at it in a field.
type Mailbox struct {
	Name    string // decoded; nothing where there is none
	Address Address
}

// Mailboxes is the content of a field of addresses.
type Mailboxes struct {
	List []Mailbox
	// Unread are entries in which no address can be read, each without its comments.
	Unread []string
	// IsOdd says that something is not as RFC 5322 has it, not even among its old forms, and was read all the same.
	IsOdd bool
	// HasUnknownCharset says that a name has an encoded word in a charset that nobody knows.
	HasUnknownCharset bool
}

// ParseMailboxes reads a list of addresses, its groups and its old forms (RFC 5322 sections 3.4 and 4.4), and what real programs write
// beside these. One odd entry never takes the others: whatever can be read is read. An address is what [ParseAddress] takes, so that the
// payload, pickup and SMTP agree on what one is. The value is UTF-8 and unfolded.
func ParseMailboxes(value string) Mailboxes {
	tokens, isWhole := lex(value)
	list := mailboxReader{read: Mailboxes{IsOdd: !isWhole}}
	for _, one := range tokens {
		list.take(one)
	}
	if list.isInBrackets {
		list.closeBrackets()
	}
	list.endEntry()
	list.endSurname()
	list.read.IsOdd = list.read.IsOdd || list.isInGroup
	return list.read
}

// mailboxReader goes through the tokens of a list.
type mailboxReader struct {
	read         Mailboxes
	entry        []token
	surname      []token // words in front of a comma, which may belong to the name that follows: Miller, Eva <...>
	hasName      bool    // the entry has a word
	hasPath      bool    // the entry has an @ or a bracket
	isInBrackets bool
	isFirst      bool // nothing but comments was in the brackets yet
	isInRoute    bool // an old route is being read, in which commas stand: <@a,@b:c@d>
	isInGroup    bool
}

func (r *mailboxReader) take(one token) {
	switch {
	case r.isInBrackets && one.kind == '>':
		r.isInBrackets = false
		r.append(one)
	case r.isInBrackets && (one.kind == ',' && !r.isInRoute || one.kind == ';'):
		r.closeBrackets()
		r.endEntry()
	case r.isInBrackets:
		r.append(one)
		if one.kind != comment {
			r.isInRoute = r.isInRoute && one.kind != ':' || r.isFirst && one.kind == '@'
			r.isFirst = false
		}
	case one.kind == ',' && r.hasName && !r.hasPath:
		r.surname = append(r.surname, append(dropComments(r.entry), one)...)
		r.begin()
	case one.kind == ',':
		r.endEntry()
	case one.kind == ';':
		r.endEntry()
		r.endSurname()
		r.read.IsOdd = r.read.IsOdd || !r.isInGroup
		r.isInGroup = false
	case one.kind == ':' && r.hasName && !r.hasPath:
		r.read.IsOdd = r.read.IsOdd || r.isInGroup
		r.isInGroup = true
		r.begin()
		r.endSurname()
	default:
		r.isInBrackets, r.isFirst, r.isInRoute = one.kind == '<', true, false
		r.append(one)
	}
}

func (r *mailboxReader) append(one token) {
	r.entry = append(r.entry, one)
	r.hasName = r.hasName || one.kind == atom || one.kind == quotedString
	r.hasPath = r.hasPath || one.kind == '@' || one.kind == '<'
}

// begin begins another entry.
func (r *mailboxReader) begin() { r.entry, r.hasName, r.hasPath = nil, false, false }

// closeBrackets puts the bracket where it is missing.
func (r *mailboxReader) closeBrackets() {
	r.append(token{kind: '>', text: ">"})
	r.isInBrackets, r.read.IsOdd = false, true
}

func (r *mailboxReader) endEntry() {
	tokens := dropComments(r.entry)
	remark := ""
	if at := slices.IndexFunc(r.entry, func(one token) bool { return one.kind == comment }); at >= 0 {
		remark = r.entry[at].text
	}
	r.begin()
	if len(tokens) == 0 {
		return
	}
	open := slices.IndexFunc(tokens, func(one token) bool { return one.kind == '<' })
	if open < 0 {
		r.endSurname()
		r.bare(tokens, remark)
		return
	}
	end := slices.IndexFunc(tokens, func(one token) bool { return one.kind == '>' })
	isEntry := end > open && !isAny(tokens[open+1:], "<") && !isAny(tokens[end+1:], "@")
	address, isOdd, is := Address{}, false, false
	if isEntry {
		address, isOdd, is = addressOf(tokens[open+1 : end])
	}
	if !is {
		r.endSurname()
		r.unread(tokens)
		return
	}
	name := tokens[:open]
	if r.surname != nil {
		name = append(r.surname, name...)
		r.surname, r.read.IsOdd = nil, true
	}
	r.read.IsOdd = r.read.IsOdd || isOdd || end+1 < len(tokens) || isAny(name, `@:;\[]>)(`)
	if len(name) > 0 {
		remark = joined(name)
	}
	r.add(remark, address)
}

// endSurname ends words that belong to no name.
func (r *mailboxReader) endSurname() {
	if r.surname != nil {
		r.unread(r.surname[:len(r.surname)-1])
	}
	r.surname = nil
}

// bare reads an entry without brackets. A comment is its name, by an old convention.
func (r *mailboxReader) bare(tokens []token, remark string) {
	if address, isOdd, is := addressOf(tokens); is {
		r.read.IsOdd = r.read.IsOdd || isOdd
		r.add(remark, address)
		return
	}
	var pieces [][]token
	for i, one := range tokens {
		if i == 0 || one.isApart {
			pieces = append(pieces, nil)
		}
		pieces[len(pieces)-1] = append(pieces[len(pieces)-1], one)
	}
	addresses := make([]Address, 0, len(pieces))
	for _, piece := range slices.Backward(pieces) {
		address, _, is := addressOf(piece)
		if !is {
			break
		}
		addresses = append(addresses, address)
	}
	name := tokens[:0:0]
	for _, piece := range pieces[:len(pieces)-len(addresses)] {
		name = append(name, piece...)
	}
	switch {
	case len(addresses) == 0 || isAny(name, "@<>") || len(name) > 0 && len(addresses) > 1:
		r.unread(tokens)
		return
	case len(name) > 0: // a name, and an address without brackets
		remark = joined(name)
	}
	r.read.IsOdd = true
	for _, address := range slices.Backward(addresses) { // without commas between
		r.add(remark, address)
	}
}

func (r *mailboxReader) unread(tokens []token) {
	r.read.IsOdd = true
	r.read.Unread = append(r.read.Unread, withoutControls(joined(tokens)))
}

func (r *mailboxReader) add(name string, address Address) {
	name, isKnown := DecodeWords(name)
	r.read.HasUnknownCharset = r.read.HasUnknownCharset || !isKnown
	r.read.List = append(r.read.List, Mailbox{Name: strings.TrimSpace(name), Address: address})
}

func dropComments(tokens []token) []token {
	return slices.DeleteFunc(slices.Clone(tokens), func(one token) bool { return one.kind == comment })
}

// addressOf reads local-part@domain, with blanks around dots as old programs write them, behind an old route if there is one.
func addressOf(tokens []token) (address Address, isOdd, is bool) {
	at := slices.IndexFunc(tokens, func(one token) bool { return one.kind == ':' })
	switch {
	case at < 0:
	case tokens[0].kind == '@':
		tokens = tokens[at+1:]
	case at == 1 && strings.EqualFold(tokens[0].text, "mailto"):
		tokens, isOdd = tokens[2:], true
	}
	at = slices.IndexFunc(tokens, func(one token) bool { return one.kind == '@' })
	if at < 1 {
		return Address{}, false, false
	}
	address.Local, is = dotted(tokens[:at], `a".`)
	if !is {
		return Address{}, false, false
	}
	address.Domain, is = dotted(tokens[at+1:], "a.[")
	if !is {
		return Address{}, false, false
	}
	if domain, hasDot := strings.CutSuffix(address.Domain, "."); hasDot {
		address.Domain, isOdd = domain, true
	}
	if strings.HasPrefix(address.Local, "'") && strings.HasSuffix(address.Domain, "'") {
		address.Local, address.Domain, isOdd = address.Local[1:], strings.TrimSuffix(address.Domain, "'"), true
	}
	checked, err := ParseAddress(address.String())
	return checked, isOdd, err == nil
}

// dotted joins words with dots between them, of some kinds. Blanks stand at dots only, and dots may stand at the ends and in a row, as
// some providers give them out.
func dotted(tokens []token, kinds string) (string, bool) {
	var out strings.Builder
	for i, one := range tokens {
		isWord := one.kind != '.'
		if strings.IndexByte(kinds, one.kind) < 0 || i > 0 && isWord && tokens[i-1].kind != '.' {
			return "", false
		}
		out.WriteString(one.text)
	}
	return out.String(), true
}
