package message

import (
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// Limits of an address in octets, of the specification (section 6.1).
const (
	AddressMax = 571
	LocalMax   = 315
	DomainMax  = 255
)

// ErrAddress is returned for text that is no address.
var ErrAddress = errors.New("not a mail address: write local-part@domain")

// Address is a mailbox of an envelope. The zero Address is the null sender.
type Address struct {
	Local  string // without the quotes that it may need on the way
	Domain string // a domain, or an address literal with its brackets
}

// IsNull reports whether this is the null sender, as reports have it.
func (a Address) IsNull() bool { return a.Local == "" && a.Domain == "" }

// String gives the address as it stands in a path, with quotes where the local part needs them, and nothing for the null sender.
func (a Address) String() string {
	if a.IsNull() {
		return ""
	}
	if a.Domain == "" {
		return quoteLocal(a.Local)
	}
	return quoteLocal(a.Local) + "@" + a.Domain
}

// hasReturnPaths reports whether a return path can be made that says behind its first + who the recipient is. The database asks again
// (parley_mail._p_require_return_paths); here who submits gets an answer before the message is stored.
func (a Address) hasReturnPaths() bool {
	return !a.IsNull() && len(a.Local) <= 58 && quoteLocal(a.Local) == a.Local && !strings.Contains(a.Local, "+")
}

// IsASCII reports whether the address can travel without SMTPUTF8.
func (a Address) IsASCII() bool { return isASCII(a.Local) && isASCII(a.Domain) }

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ParseAddress reads an address without angle brackets.
func ParseAddress(text string) (Address, error) {
	address, rest, err := parseMailbox(text)
	if err != nil || rest != "" {
		return Address{}, ErrAddress
	}
	return address, nil
}

// ParsePath reads a path of the envelope, <local-part@domain>, which may begin with a source route, that nobody follows. It returns what
// comes behind the path. The null path gives the zero Address. <Postmaster> has no domain.
func ParsePath(text string) (address Address, rest string, err error) {
	text, found := strings.CutPrefix(text, "<")
	if !found {
		return Address{}, "", ErrAddress
	}
	if rest, isNull := strings.CutPrefix(text, ">"); isNull {
		return Address{}, rest, nil
	}
	if strings.HasPrefix(text, "@") {
		route, mailbox, isRoute := strings.Cut(text, ":")
		if !isRoute || strings.ContainsAny(route, "<>\" ") {
			return Address{}, "", ErrAddress
		}
		text = mailbox
	}
	if len(text) > len("postmaster") && strings.EqualFold(text[:len("postmaster>")], "postmaster>") {
		return Address{Local: text[:len("postmaster")]}, text[len("postmaster>"):], nil
	}
	address, rest, err = parseMailbox(text)
	if err != nil {
		return Address{}, "", err
	}
	rest, found = strings.CutPrefix(rest, ">")
	if !found {
		return Address{}, "", ErrAddress
	}
	return address, rest, nil
}

func parseMailbox(text string) (address Address, rest string, err error) {
	address.Local, rest, err = parseLocal(text)
	if err != nil {
		return Address{}, "", err
	}
	rest, found := strings.CutPrefix(rest, "@")
	if !found {
		return Address{}, "", ErrAddress
	}
	end := strings.IndexAny(rest, "> \t")
	if end < 0 {
		end = len(rest)
	}
	address.Domain, rest = rest[:end], rest[end:]
	isTooLong := len(address.Local) > LocalMax || len(address.Local)+1+len(address.Domain) > AddressMax
	if isTooLong || !IsDomain(address.Domain) && !isLiteral(address.Domain) {
		return Address{}, "", ErrAddress
	}
	return address, rest, nil
}

func parseLocal(text string) (local, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		return parseQuoted(text[1:])
	}
	end := strings.IndexByte(text, '@')
	if end <= 0 || !isDotAtom(text[:end]) {
		return "", "", ErrAddress
	}
	return text[:end], text[end:], nil
}

// parseQuoted reads a quoted local part behind its first quote.
func parseQuoted(text string) (local, rest string, err error) {
	var unquoted strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			if unquoted.Len() == 0 || !utf8.ValidString(unquoted.String()) {
				return "", "", ErrAddress
			}
			return unquoted.String(), text[i+1:], nil
		}
		if c == '\\' {
			i++
			if i == len(text) {
				break
			}
			c = text[i]
		}
		if c < ' ' || c == 0x7f {
			break
		}
		unquoted.WriteByte(c)
	}
	return "", "", ErrAddress
}

func quoteLocal(local string) string {
	if isDotAtom(local) {
		return local
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(local) + `"`
}

// isDotAtom reports whether text needs no quotes. Dots at the ends or in a row, which some providers give out, are borne.
func isDotAtom(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c <= ' ' || c == 0x7f || strings.IndexByte(`()<>[]:;\,"@`, c) >= 0 {
			return false
		}
	}
	return text != "" && utf8.ValidString(text)
}

// IsDomain reports whether text can be the name of a domain: labels of letters, digits, hyphens and underscores, or of Unicode.
func IsDomain(text string) bool {
	if text == "" || len(text) > DomainMax || !utf8.ValidString(text) {
		return false
	}
	label := 0
	for i := range len(text) {
		c := text[i]
		switch {
		case c == '.':
			if label == 0 || text[i-1] == '-' {
				return false
			}
			label = 0
			continue
		case c == '-' && label == 0:
			return false
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c >= utf8.RuneSelf:
		default:
			return false
		}
		label++
		if label > 63 && isASCII(text) {
			return false
		}
	}
	return label > 0 && text[len(text)-1] != '-'
}

// isLiteral reports whether text is an address literal, [192.0.2.1] or [IPv6:2001:db8::1].
func isLiteral(text string) bool {
	inner, hasBegin := strings.CutPrefix(text, "[")
	inner, hasEnd := strings.CutSuffix(inner, "]")
	if !hasBegin || !hasEnd {
		return false
	}
	if len(inner) > 5 && strings.EqualFold(inner[:5], "IPv6:") {
		ip, err := netip.ParseAddr(inner[5:])
		return err == nil && ip.Is6() && ip.Zone() == ""
	}
	ip, err := netip.ParseAddr(inner)
	return err == nil && ip.Is4()
}

// IsHello reports whether text can be the argument of HELO or EHLO: a domain or an address literal. Names that break the rules of DNS but
// can harm nobody are borne, because many printers and scanners have such.
func IsHello(text string) bool {
	if isLiteral(text) {
		return true
	}
	if text == "" || len(text) > DomainMax || !utf8.ValidString(text) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`()<>\,;"@`, c) >= 0 {
			return false
		}
	}
	return true
}
