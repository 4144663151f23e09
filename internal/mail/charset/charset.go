// Package charset finds charsets by the names that mail programs write: those of the Internet's registry and of browsers, and the common
// ones of Windows and of Python.
package charset

import (
	"regexp"
	"strings"

	"golang.org/x/net/html/charset"
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

// longestName is more than any name has, in bytes.
const longestName = 64

// UTF8 is the charset that [Lookup] gives for UTF-8 and for ASCII.
var UTF8 = unicode.UTF8

// byName has the names that no registry has, and those whose meaning in mail is another there. Names are as plain gives them.
var byName = map[string]encoding.Encoding{
	"utf7": utf7{}, "unicode11utf7": utf7{}, "unicode20utf7": utf7{}, "u7": utf7{}, "cp65000": utf7{},
	"utf16": bigUTF16, "ucs2": bigUTF16, "iso10646ucs2": bigUTF16, "u16": bigUTF16,
	"cp1200": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"cp1201": bigUTF16, "utf16le": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "utf16be": bigUTF16,
	"utf32": utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "utf32be": utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
	"utf32le": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "cp65001": unicode.UTF8, "u8": unicode.UTF8, "utf": unicode.UTF8,
	"utf8": unicode.UTF8, "utf8mb4": unicode.UTF8,
	"646": unicode.UTF8, "usascii": unicode.UTF8, "ansix341968": unicode.UTF8, "isoir6": unicode.UTF8, "ascii": unicode.UTF8,
	"default": unicode.UTF8, "binary": unicode.UTF8, "cp20127": unicode.UTF8, "iso646us": unicode.UTF8,
	"latin": charmap.Windows1252, "l1": charmap.Windows1252, "8859": charmap.Windows1252, "ansi": charmap.Windows1252,
	"cp28591": charmap.Windows1252,
	"iso8859": charmap.Windows1252, "iso88598e": charmap.ISO8859_8E, "cp819": charmap.Windows1252, "cp28605": charmap.ISO8859_15,
	"latin9": charmap.ISO8859_15, "l9": charmap.ISO8859_15,
	"latin10": charmap.ISO8859_16, "cp858": charmap.CodePage858,
	"cp1047": charmap.CodePage1047, "cp037": charmap.CodePage037, "cp1140": charmap.CodePage1140,
	"cp10000": charmap.Macintosh, "macroman": charmap.Macintosh, "maccyrillic": charmap.MacintoshCyrillic,
	"cp932": japanese.ShiftJIS, "ms932": japanese.ShiftJIS, "sjis": japanese.ShiftJIS, "shiftjis": japanese.ShiftJIS,
	"mskanji":    japanese.ShiftJIS,
	"windows31j": japanese.ShiftJIS, "shiftjis2004": japanese.ShiftJIS, "shiftjisx0213": japanese.ShiftJIS,
	"eucjp": japanese.EUCJP, "ujis": japanese.EUCJP, "cp51932": japanese.EUCJP, "cp20932": japanese.EUCJP, "eucjpms": japanese.EUCJP,
	"iso2022jp": japanese.ISO2022JP, "cp50220": japanese.ISO2022JP, "cp50221": japanese.ISO2022JP, "cp50222": japanese.ISO2022JP,
	"iso2022jpms": japanese.ISO2022JP, "iso2022jp1": japanese.ISO2022JP, "iso2022jpext": japanese.ISO2022JP,
	"cp936": simplifiedchinese.GBK, "ms936": simplifiedchinese.GBK, "gb": simplifiedchinese.GBK, "euccn": simplifiedchinese.GBK,
	"eucgb2312cn": simplifiedchinese.GBK, "gb2312": simplifiedchinese.GBK, "gb231280": simplifiedchinese.GBK,
	"cp20936": simplifiedchinese.GBK,
	"gbk":     simplifiedchinese.GB18030, "cp54936": simplifiedchinese.GB18030, "hz": simplifiedchinese.HZGB2312,
	"hzgb":     simplifiedchinese.HZGB2312,
	"hzgb2312": simplifiedchinese.HZGB2312, "cp52936": simplifiedchinese.HZGB2312,
	"cp950": traditionalchinese.Big5, "ms950": traditionalchinese.Big5, "big5tw": traditionalchinese.Big5, "cp951": traditionalchinese.Big5,
	"cp949": korean.EUCKR, "ms949": korean.EUCKR, "uhc": korean.EUCKR, "cp51949": korean.EUCKR, "ksx1001": korean.EUCKR,
	"ksc5601": korean.EUCKR,
	"korean":  korean.EUCKR, "iso2022kr": iso2022kr{}, "cp50225": iso2022kr{},
	"u32": utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "utf8sig": unicode.UTF8, "iso646irv1991": unicode.UTF8,
	"88591": charmap.Windows1252, "885915": charmap.ISO8859_15,
	"latin7": charmap.ISO8859_13, "l7": charmap.ISO8859_13, "elot928": charmap.ISO8859_7,
	"thai": charmap.Windows874, "tis620": charmap.Windows874, "isoir166": charmap.Windows874,
	"sjis2004": japanese.ShiftJIS, "sjisx0213": japanese.ShiftJIS,
	"eucjis2004": japanese.EUCJP, "eucjisx0213": japanese.EUCJP,
	"iso2022jp2": japanese.ISO2022JP, "iso2022jp3": japanese.ISO2022JP, "iso2022jp2004": japanese.ISO2022JP,
	"gb180302000": simplifiedchinese.GB18030, "gb23121980": simplifiedchinese.GBK,
	"big5hkscs": traditionalchinese.Big5, "hkscs": traditionalchinese.Big5,
}

var bigUTF16 = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)

// codePage is a number of a code page as Windows, IBM and Python write it.
var codePage = regexp.MustCompile(`^(?:x)?(?:cp|ibm|windows|win|codepage|dos|ms|mswin|microsoftcp|cswindows)?(\d{3,5})$`)

// ofYear is the name of a part of ISO 8859 with the year of its edition, such as iso88592 1987.
var ofYear = regexp.MustCompile(`^(iso8859\d{1,2})(?:19|20)\d\d$`)

// Lookup gives a charset by any of its names; nil where nobody knows it.
func Lookup(name string) encoding.Encoding {
	name = strings.Trim(name, " \t\"'")
	if name == "" || len(name) > longestName {
		return nil
	}
	short := plain(name)
	for _, written := range []string{short, strings.TrimPrefix(short, "x"), strings.TrimPrefix(short, "cs")} {
		if found := byName[written]; found != nil {
			return found
		}
	}
	if part := ofYear.FindStringSubmatch(short); part != nil {
		return Lookup("iso-8859-" + strings.TrimPrefix(part[1], "iso8859"))
	}
	if page := codePage.FindStringSubmatch(short); page != nil {
		if found := byName["cp"+page[1]]; found != nil {
			return found
		}
		for _, written := range []string{"windows-" + page[1], "ibm" + page[1]} {
			if found := registered(written); found != nil {
				return found
			}
		}
	}
	hyphens := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, written := range []string{
		name, hyphens, strings.ReplaceAll(hyphens, "iso-8859", "iso8859"), strings.Replace(hyphens, "iso8859", "iso-8859", 1),
		strings.TrimPrefix(hyphens, "x-"), "cs" + short, short,
	} {
		if found := registered(written); found != nil {
			return found
		}
	}
	return nil
}

// registered gives a charset by a name of browsers or of the registry. Browsers read ISO-8859-1 as windows-1252, which is what is meant.
func registered(name string) encoding.Encoding {
	// A replacement stands for a charset that browsers refuse to read.
	if found, canonical := charset.Lookup(name); found != nil && canonical != "replacement" {
		return found
	}
	if found, err := ianaindex.IANA.Encoding(name); err == nil && found != nil {
		return found
	}
	return nil
}

// plain gives a name in lower case, without what its writings differ in.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		default:
			return -1
		}
	}, name)
}
