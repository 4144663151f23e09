package charset_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/charset"
)

// Each name is one that a mail program has written; the bytes are a text in the charset that it names.
func TestCharsetsAreFoundByTheNamesThatProgramsWrite(t *testing.T) {
	t.Parallel()
	for text, ofBytes := range map[string]map[string]string{
		"ü€": {
			"\xfc\x80": "iso-8859-1 ISO8859-1 iso8859_1 iso_8859_1 latin1 latin-1 latin_1 L1 cp1252 windows-1252 windows_1252 x-cp1252 WIN1252 1252 cp-1252 ansi iso-8859 8859_1 ISO_8859-1:1987",
			"\xfc\xa4": "iso-8859-15 ISO8859-15 iso8859_15 latin9 latin-9 cp28605 8859_15",
			"ü€":       "utf-8 UTF8 utf_8 u8 cp65001 unicode-1-1-utf-8 ascii us-ascii us_ascii ansi_x3.4-1968 646 utf-8-sig utf_8_sig iso_646.irv:1991",
			"+APwgrA-": "utf-7 UTF7 unicode-1-1-utf-7 cp65000 x-unicode-2-0-utf-7",
		},
		"ü": {
			"\x81": "cp850 ibm850 CP-850 cp437 ibm437 cp858 437", "\x9f": "macintosh mac x-mac-roman mac_roman macroman",
			"\xdc": "cp037 ibm037", "\xfc": "cp1250 windows-1250 iso-8859-2 latin2 latin_2 iso8859-9 cp1254 windows-1257",
		},
		"Привет": {
			"\xcf\xf0\xe8\xe2\xe5\xf2": "cp1251 windows-1251 win-1251 x-cp1251", "\xf0\xd2\xc9\xd7\xc5\xd4": "koi8-r koi8_r KOI8R koi8-u",
			"\x8f\xe0\xa8\xa2\xa5\xe2": "cp866 ibm866", "\xbf\xe0\xd8\xd2\xd5\xe2": "iso-8859-5 iso8859_5 cyrillic",
		},
		"テスト": {
			"\x83e\x83X\x83g": "shift_jis Shift-JIS sjis x-sjis s_jis cp932 ms932 windows-31j csWindows31J ms_kanji MS932 shift_jis_2004 s_jis_2004 sjisx0213", "\xa5\xc6\xa5\xb9\xa5\xc8": "euc-jp euc_jp eucjp x-euc-jp ujis cp51932 euc_jis_2004 euc_jisx0213",
			"\x1b$B%F%9%H\x1b(B": "iso-2022-jp iso2022_jp ISO2022JP csISO2022JP iso-2022-jp-ms cp50220 iso-2022-jp-2 iso2022_jp_2004",
		},
		"你好": {
			"\xc4\xe3\xba\xc3": "gb2312 GBK gb18030 cp936 x-gbk euc-cn gb_2312-80 ms936 gb18030-2000 gb2312_1980", "\xa7\x41\xa6\x6e": "big5 Big5-HKSCS cp950 big5_hkscs x-x-big5 big5hkscs hkscs", "~{Dc:C~}": "hz hz-gb-2312 HZ-GB-2312",
		},
		"안녕": {"\xbe\xc8\xb3\xe7": "euc-kr euc_kr ks_c_5601-1987 cp949 uhc ksc5601 ks_c_5601", "\x1b$)C\x0e>H3g\x0f": "iso-2022-kr iso2022_kr csISO2022KR"},
		"Hi": {"\xff\xfeH\x00i\x00": "utf-16 UTF16 utf_16", "H\x00i\x00": "utf-16le utf_16_le cp1200", "\x00H\x00i": "utf-16be utf_16_be", "\x00\x00\x00H\x00\x00\x00i": "utf-32be u32"},
		"ก":  {"\xa1": "tis-620 tis620 thai windows-874 ms874 x-windows-874 iso-8859-11 iso_8859-11:2001"},
		"α":  {"\xe1": "iso-8859-7 greek elot_928 ISO_8859-7:1987 windows-1253"},
		"ž":  {"\xfe": "iso-8859-13 latin7 L7 windows-1257"},
		"ש":  {"\xf9": "iso-8859-8 iso-8859-8-i iso_8859-8-e cp1255 windows-1255"},
	} {
		for encoded, names := range ofBytes {
			for name := range strings.FieldsSeq(names) {
				found := charset.Lookup(name)
				if found == nil {
					t.Errorf("%s is not known", name)
					continue
				}
				got, err := io.ReadAll(found.NewDecoder().Reader(iotest.OneByteReader(strings.NewReader(encoded))))
				if err != nil || string(got) != text {
					t.Errorf("%s: %q is %q, want %q: %v", name, encoded, got, text, err)
				}
			}
		}
	}
	for _, name := range []string{"", "klingon", "x-unknown", "8bit", "1", "99999", "utf-8; format=flowed", "cp", strings.Repeat("a", 100), "\x00"} {
		if charset.Lookup(name) != nil {
			t.Errorf("%q is known", name)
		}
	}
}

// Charsets of seven bits give text for any input, and the same however it comes.
func FuzzSevenBits(f *testing.F) {
	for _, text := range []string{"Hi Mom -+Jjo--! 1 +- 1", "+", "+A", "+2D3cAA-", "\x1b$)C\x0e>H3g\x0f ok\n\x0e>", "\x1b$", strings.Repeat("+AAAAAAAA", 300)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range []string{"utf-7", "iso-2022-kr"} {
			read := func(r io.Reader) string {
				decoded, err := io.ReadAll(charset.Lookup(name).NewDecoder().Reader(r))
				if err != nil {
					t.Fatalf("%s: %q: %v", name, text, err)
				}
				return string(decoded)
			}
			whole, pieces := read(strings.NewReader(string(text))), read(iotest.OneByteReader(strings.NewReader(string(text))))
			if whole != pieces || !utf8.ValidString(whole) {
				t.Errorf("%s: %q is %q whole, %q in pieces", name, text, whole, pieces)
			}
		}
	})
}
