package message

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parameters of the envelope are coded, so that they have no space, no = and nothing beyond ASCII: as xtext (RFC 3461 section 4), and
// addresses beyond ASCII as utf-8-addr-xtext (RFC 6533 section 3). We keep what they mean, as who speaks SMTP does.

var (
	xtextForm = regexp.MustCompile(`^(?:[\x21-\x2a\x2c-\x3c\x3e-\x7e]|\+[0-9A-F]{2})+$`)
	// An address of the type utf-8 may have its characters as they are, too (utf-8-addr-unitext). No other form of a character is allowed
	// than the shortest, and none of one that can stand by itself.
	unicodeForm = regexp.MustCompile(`^(?:[\x21-\x2a\x2c-\x3c\x3e-\x5b\x5d-\x7e]|[^\x00-\x7f]|` +
		`\\x\{(?:[01][1-9]|10|20|2B|3D|5C|7F|[89A-F][0-9A-F]|[1-9A-F][0-9A-F]{2}|` +
		`[1-9A-CEF][0-9A-F]{3}|D[0-7][0-9A-F]{2}|[1-9A-F][0-9A-F]{4}|10[0-9A-F]{4})\})+$`)
	unicodePoint = regexp.MustCompile(`\\x\{[0-9A-F]+\}`)
	addressType  = regexp.MustCompile(`^[0-9A-Za-z-]+$`)
)

// DecodeXText reads xtext (RFC 3461 section 4), also where it is written with lower case or has characters that were to be coded.
func DecodeXText(text string) (decoded string, isValid bool) {
	if !strings.Contains(text, "+") {
		return text, !strings.ContainsAny(text, "\x00\r\n")
	}
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '+' {
			out = append(out, text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		value, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out = append(out, byte(value))
		i += 2
	}
	return string(out), !slices.ContainsFunc(out, func(b byte) bool { return b < ' ' || b == 0x7f })
}

// ParseXText reads a parameter whose value is printable ASCII, such as ENVID (RFC 3461 section 4.4).
func ParseXText(text string) (string, error) {
	decoded, isValid := DecodeXText(text)
	if !isValid || !xtextForm.MatchString(text) || !isASCII(decoded) {
		return "", fmt.Errorf("%q is not xtext: write printable ASCII, with +2B for +, +3D for = and +20 for a space", text)
	}
	return decoded, nil
}

// ParseOriginalRecipient reads an original recipient, and gives it with its type. Without one it has that of its address.
func ParseOriginalRecipient(text string) (string, error) {
	kind, address, isTyped := strings.Cut(text, ";")
	if !isTyped {
		kind, address, _ = strings.Cut(OriginalRecipient(text), ";")
	}
	if !addressType.MatchString(kind) {
		return "", errors.New("an original recipient begins with its type, such as rfc822;")
	}
	if !strings.EqualFold(kind, "utf-8") {
		decoded, err := ParseXText(address)
		return kind + ";" + decoded, err
	}
	if !unicodeForm.MatchString(address) {
		return "", fmt.Errorf(`%q is no address of type utf-8: write \x{2B} for +, \x{3D} for =, \x{5C} for \ and \x{20} for a space`, address)
	}
	return kind + ";" + unicodePoint.ReplaceAllStringFunc(address, func(point string) string {
		value, _ := strconv.ParseUint(point[3:len(point)-1], 16, 32) // the form has only what is a character
		return string(rune(value))
	}), nil
}
