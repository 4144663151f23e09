// Package text reads bodies in their charset as UTF-8 and writes them in the charset that a setting names.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// A Charset is how the characters of a body are written as bytes.
type Charset struct {
	Name     string
	encoding encoding.Encoding // nil: UTF-8
	unit     int               // bytes of each character where all have the same; 0 otherwise
	mark     []byte
}

// The charsets of Unicode.
var (
	UTF8    = &Charset{Name: "utf-8", mark: []byte{0xef, 0xbb, 0xbf}}
	UTF16LE = &Charset{Name: "utf-16le", encoding: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), mark: []byte{0xff, 0xfe}}
	UTF16BE = &Charset{Name: "utf-16be", encoding: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), mark: []byte{0xfe, 0xff}}
	utf32LE = &Charset{
		Name: "utf-32le", encoding: utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), unit: 4,
		mark: []byte{0xff, 0xfe, 0, 0},
	}
	utf32BE = &Charset{
		Name: "utf-32be", encoding: utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), unit: 4,
		mark: []byte{0, 0, 0xfe, 0xff},
	}
)

// codePages has the charsets by the numbers that Windows gives them. Numbers stand for the charset itself, not for a superset as in mail
// and on the web: 28591 is ISO 8859-1, and its bytes from 0x80 to 0x9F are controls.
var codePages = map[int]encoding.Encoding{
	37: charmap.CodePage037, 437: charmap.CodePage437, 850: charmap.CodePage850, 852: charmap.CodePage852, 855: charmap.CodePage855,
	858: charmap.CodePage858, 860: charmap.CodePage860, 862: charmap.CodePage862, 863: charmap.CodePage863, 865: charmap.CodePage865,
	866: charmap.CodePage866, 874: charmap.Windows874, 1047: charmap.CodePage1047, 1140: charmap.CodePage1140,
	1250: charmap.Windows1250, 1251: charmap.Windows1251, 1252: charmap.Windows1252, 1253: charmap.Windows1253, 1254: charmap.Windows1254,
	1255: charmap.Windows1255, 1256: charmap.Windows1256, 1257: charmap.Windows1257, 1258: charmap.Windows1258,
	10000: charmap.Macintosh, 10007: charmap.MacintoshCyrillic, 20866: charmap.KOI8R, 21866: charmap.KOI8U,
	28591: charmap.ISO8859_1, 28592: charmap.ISO8859_2, 28593: charmap.ISO8859_3, 28594: charmap.ISO8859_4, 28595: charmap.ISO8859_5,
	28596: charmap.ISO8859_6, 28597: charmap.ISO8859_7, 28598: charmap.ISO8859_8, 28599: charmap.ISO8859_9, 28600: charmap.ISO8859_10,
	28603: charmap.ISO8859_13, 28604: charmap.ISO8859_14, 28605: charmap.ISO8859_15, 28606: charmap.ISO8859_16,
	932: japanese.ShiftJIS, 936: simplifiedchinese.GBK, 949: korean.EUCKR, 950: traditionalchinese.Big5,
	20932: japanese.EUCJP, 51932: japanese.EUCJP, 51949: korean.EUCKR, 54936: simplifiedchinese.GB18030,
}

// Lookup finds a charset by its name in the Internet's registry or by the number of its code page.
func Lookup(name string) (*Charset, error) {
	plain := strings.ToLower(strings.TrimSpace(name))
	number := plain
	for _, prefix := range []string{"windows-", "cp"} {
		number = strings.TrimPrefix(number, prefix)
	}
	switch plain {
	case "utf-8", "utf8", "65001", "us-ascii", "ascii", "20127":
		return UTF8, nil
	case "utf-16", "utf-16le", "utf16", "unicode", "1200":
		return UTF16LE, nil
	case "utf-16be", "1201":
		return UTF16BE, nil
	case "utf-32", "utf-32le", "12000":
		return utf32LE, nil
	case "utf-32be", "12001":
		return utf32BE, nil
	}
	if page, err := strconv.Atoi(number); err == nil {
		if found, ok := codePages[page]; ok {
			return charsetOf(plain, found), nil
		}
		return nil, fmt.Errorf("code page %d is not known", page)
	}
	found, err := ianaindex.IANA.Encoding(plain)
	if err != nil || found == nil {
		return nil, fmt.Errorf("charset %q is not known", name)
	}
	return charsetOf(plain, found), nil
}

func charsetOf(name string, e encoding.Encoding) *Charset {
	c := &Charset{Name: name, encoding: e}
	if _, ok := e.(*charmap.Charmap); ok {
		c.unit = 1
	}
	return c
}

// IsUTF8 reports whether the bytes of the body are those of its text.
func (c *Charset) IsUTF8() bool { return c.encoding == nil }

// Width is how many bytes a text has in the charset.
func (c *Charset) Width(text []byte) int {
	switch {
	case c.encoding == nil:
		return len(text)
	case c.unit > 0:
		return c.unit * utf8.RuneCount(text)
	case c == UTF16LE || c == UTF16BE:
		n := 0
		for len(text) > 0 {
			r, size := utf8.DecodeRune(text)
			n += 2
			if r > 0xffff {
				n += 2
			}
			text = text[size:]
		}
		return n
	}
	encoder := c.encoding.NewEncoder()
	if encoded, err := encoder.Bytes(text); err == nil {
		return len(encoded)
	}
	n := 0
	for _, r := range string(text) {
		encoded, err := encoder.Bytes([]byte(string(r)))
		n += len(encoded)
		if err != nil {
			n++ // it is read from a byte that stands for no character, and has none itself
		}
	}
	return n
}
