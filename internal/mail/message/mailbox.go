package message

import (
	"strings"
	"unicode"
)

// ParseMailbox reads one mailbox that a program gives, Name <local-part@domain> or an address alone. A name is whatever stands in front of
// the last <, with a comma in it too; comments and blanks are legal between the parts of an address, and a comment behind an address alone
// is the name. The database reads the same (parley_mail._p_parsed_mailbox).
func ParseMailbox(written string) (Mailbox, error) {
	if strings.ContainsFunc(written, unicode.IsControl) {
		return Mailbox{}, ErrAddress
	}
	written = strings.Trim(written, " ")
	name, path, hasBrackets := "", written, false
	if strings.HasSuffix(written, ">") {
		if at := strings.LastIndexByte(written, '<'); at >= 0 {
			name, path, hasBrackets = strings.Trim(written[:at], " "), written[at+1:len(written)-1], true
		}
	}
	if len(name) > 1 && strings.HasPrefix(name, `"`) && strings.HasSuffix(name, `"`) {
		name = withoutBackslashes(name[1 : len(name)-1])
	}
	address, err := ParseAddress(path)
	if err == nil {
		return Mailbox{Name: name, Address: address}, nil
	}
	tokens, _ := lex(path)
	bare := dropComments(tokens)
	address, isOdd, is := addressOf(bare)
	if !is || isOdd || !strings.ContainsAny(path, " (") {
		return Mailbox{}, ErrAddress
	}
	for _, one := range tokens {
		if one.kind == comment && !hasBrackets && name == "" {
			name = one.text
		}
	}
	return Mailbox{Name: name, Address: address}, nil
}

func withoutBackslashes(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// longName is how long a name is that stands as it is, in bytes.
const longName = 250

// String gives the mailbox as a field has it: a name that is long or not ASCII as encoded words.
func (m Mailbox) String() string {
	switch {
	case m.Name == "":
		return m.Address.String()
	case isASCII(m.Name) && len(m.Name) <= longName:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(m.Name) + `" <` + m.Address.String() + ">"
	default:
		return EncodedWords(m.Name) + " <" + m.Address.String() + ">"
	}
}
