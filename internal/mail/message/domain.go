package message

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// unmapped are characters that UTS 46 ignores, or maps otherwise than by NFKC and lower case, and those whose NFKC versions of PostgreSQL
// do not know. They are in no domain here: the database, which has the same rule (sql/mail/base/domains.sql), knows no more of Unicode than
// these two, and no name may be one domain to us and another to it.
var unmapped = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xad, 0xad, 1},
		{0x130, 0x130, 1},
		{0x345, 0x345, 1},
		{0x34f, 0x34f, 1},
		{0x37a, 0x37a, 1},
		{0x3f2, 0x3f2, 1},
		{0x13f8, 0x13fd, 1},
		{0x180b, 0x180d, 1},
		{0x180f, 0x180f, 1},
		{0x1c80, 0x1c88, 1},
		{0x1e9e, 0x1e9e, 1},
		{0x1f80, 0x1faf, 1},
		{0x1fb2, 0x1fb4, 1},
		{0x1fb7, 0x1fb7, 1},
		{0x1fbc, 0x1fbc, 1},
		{0x1fc2, 0x1fc4, 1},
		{0x1fc7, 0x1fc7, 1},
		{0x1fcc, 0x1fcc, 1},
		{0x1ff2, 0x1ff4, 1},
		{0x1ff7, 0x1ff7, 1},
		{0x1ffc, 0x1ffc, 1},
		{0x200b, 0x200d, 1},
		{0x2060, 0x2060, 1},
		{0x2064, 0x2064, 1},
		{0xa7f2, 0xa7f4, 1},
		{0xab70, 0xabbf, 1},
		{0xfe00, 0xfe0f, 1},
		{0xfeff, 0xfeff, 1},
	},
	R32: []unicode.Range32{
		{0x10780, 0x107ba, 1},
		{0x1bca0, 0x1bca3, 1},
		{0x1d6d3, 0x1d6d3, 1},
		{0x1d70d, 0x1d70d, 1},
		{0x1d747, 0x1d747, 1},
		{0x1d781, 0x1d781, 1},
		{0x1d7bb, 0x1d7bb, 1},
		{0x1e030, 0x1e06d, 1},
		{0xe0100, 0xe01ef, 1},
	},
}

// CanonicalDomain gives a domain in the form in which domains are compared: ASCII, in lower case, other letters as A-labels.
func CanonicalDomain(domain string) (string, error) {
	if isASCII(domain) {
		return strings.ToLower(domain), nil
	}
	if strings.ContainsFunc(domain, func(r rune) bool { return unicode.Is(unmapped, r) }) {
		return "", ErrAddress
	}
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil || !IsDomain(ascii) {
		return "", ErrAddress
	}
	return ascii, nil
}

// Canonical gives the address with its domain in ASCII where it has other letters.
func (a Address) Canonical() (Address, error) {
	if isASCII(a.Domain) {
		return a, nil
	}
	domain, err := CanonicalDomain(a.Domain)
	if err != nil {
		return Address{}, err
	}
	return Address{Local: a.Local, Domain: domain}, nil
}

// Fold gives an address, a domain or a pattern of either in the form in which it is compared: as [CanonicalDomain] does, and ASCII letters
// of a local part in lower case. Other letters of it stay as they are: only its host knows whether they are the same.
func Fold(written string) string {
	at := strings.LastIndexByte(written, '@') + 1
	local, domain := written[:at], written[at:]
	star := ""
	if rest, isWild := strings.CutPrefix(domain, "*."); isWild {
		star, domain = "*.", rest
	}
	canonical, err := CanonicalDomain(domain)
	if err != nil {
		canonical = lowerASCII(domain)
	}
	return lowerASCII(local) + star + canonical
}

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}
