package text_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

func TestAMarkDecidesBeforeADeclarationBeforeASetting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, setting, want, says string
		by                        text.Decision
	}{
		"nothing":                          {"<a>é</a>", "", "<a>é</a>", "", text.ByDefault},
		"setting":                          {"<a>\xe9</a>", "1252", "<a>é</a>", "", text.BySetting},
		"declaration":                      {"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>", "", "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>", "", text.ByDeclaration},
		"declaration before setting":       {"<?xml version='1.0' encoding='windows-1252'?><a>\x80</a>", "utf-8", "<?xml version='1.0' encoding='windows-1252'?><a>€</a>", "the setting says utf-8", text.ByDeclaration},
		"mark before declaration":          {"\xef\xbb\xbf<?xml version='1.0' encoding='windows-1252'?><a>é</a>", "", "<?xml version='1.0' encoding='windows-1252'?><a>é</a>", "the declaration says windows-1252", text.ByMark},
		"UTF-16 with a mark":               {"\xff\xfe<\x00a\x00/\x00>\x00", "1252", "<a/>", "the setting says 1252", text.ByMark},
		"UTF-16 without a mark":            {"\x00<\x00a\x00/\x00>", "", "<a/>", "", text.ByDeclaration},
		"UTF-16 declared and UTF-8 sent":   {"<?xml version='1.0' encoding='utf-16'?><a>é</a>", "", "<?xml version='1.0' encoding='utf-16'?><a>é</a>", "the declaration says utf-16", text.ByDefault},
		"UTF-16 declared, and its mark":    {"\xfe\xff\x00<\x00a\x00/\x00>", "utf-16", "<a/>", "", text.ByMark},
		"what is bound is not a code page": {"\xff\xfe\x00\x00<\x00\x00\x00a\x00\x00\x00/\x00\x00\x00>\x00\x00\x00", "", "<a/>", "", text.ByMark},
	} {
		s, err := text.Open(strings.NewReader(c.body), c.setting, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(s)
		if err != nil || string(got) != c.want || s.By != c.by || !strings.Contains(s.Disagreement, c.says) || c.says == "" && s.Disagreement != "" {
			t.Errorf("%s: %q by %s, %q, %v", name, got, s.By, s.Disagreement, err)
		}
	}
}

func TestOnlyWholeCharactersComeOut(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("aé€😀", 1000)
	s, err := text.Open(iotest.OneByteReader(strings.NewReader(body)), "", false)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	piece := make([]byte, 7)
	for {
		n, err := s.Read(piece)
		if !utf8.Valid(piece[:n]) {
			t.Fatalf("a character was cut: %q", piece[:n])
		}
		all = append(all, piece[:n]...)
		if err != nil {
			break
		}
	}
	if string(all) != body {
		t.Errorf("%d bytes came out of %d", len(all), len(body))
	}
}

func TestWhatTheCharsetDoesNotHaveIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, setting string
		place         fault.Place
	}{
		"UTF-8":      {"ab\né\xff", "", fault.Place{Byte: 5, Line: 2, Column: 2}},
		"cut off":    {"ab\xe2\x82", "", fault.Place{Byte: 2, Line: 1, Column: 3}},
		"UTF-16":     {"a\x00\n\x00b\x00\x00\xd8c\x00", "utf-16le", fault.Place{Byte: 6, Line: 2, Column: 2}},
		"code page":  {"ab\xff", "874", fault.Place{Byte: 2, Line: 1, Column: 3}},
		"Shift JIS":  {"\x82\xa0\x81\x01", "932", fault.Place{Byte: 2, Line: 1, Column: 2}},
		"code point": {"\xed\xa0\x80", "", fault.Place{Byte: 0, Line: 1, Column: 1}},
	} {
		s, err := text.Open(strings.NewReader(c.body), c.setting, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(s)
		if f, ok := fault.Of(err); !ok || f.Place != c.place || f.Remedy == "" {
			t.Errorf("%s is refused as %v, want %+v", name, err, c.place)
		}
	}
}

func TestWidthIsThatOfTheEncodedText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"utf-8", "utf-16le", "1201", "12000", "1252", "932", "936", "54936", "28605", "437"} {
		charset, err := text.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		sample := "aé€"
		if name == "932" || name == "437" {
			sample = "ab"
		}
		var out bytes.Buffer
		w, err := text.Output{Charset: name}.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, sample); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := charset.Width([]byte(sample)); got != out.Len() {
			t.Errorf("%s: the width of %q is given as %d and is %d", name, sample, got, out.Len())
		}
	}
}

func TestUnknownCharsetsAndMarksThatDoNotExistAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := text.Open(strings.NewReader(""), "klingon", false); err == nil {
		t.Error("charset klingon was taken")
	}
	if _, err := (text.Output{Charset: "1252", Mark: true}).NewWriter(io.Discard); err == nil || !strings.Contains(err.Error(), "no byte-order mark") {
		t.Errorf("a mark of 1252 ends with %v", err)
	}
	w, err := text.Output{Charset: "28591"}.NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, "aé€")
	if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, "U+20AC") {
		t.Errorf("a character that ISO 8859-1 does not have is refused as %v", err)
	}
}

func TestWhoeverReadsByteByByteGetsTheSame(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		strings.Repeat("aé€\U0001F600", 50): strings.Repeat("aé€\U0001F600", 50), "aé\xffb": "aé", "é\xe2\x82": "é", "\xff": "", "": "",
	} {
		for _, size := range []int{1, 2, 3, 4, 5} {
			source, err := text.Open(strings.NewReader(body), "", false)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for buffer := make([]byte, size); err == nil; {
				var n int
				n, err = source.Read(buffer)
				got = append(got, buffer[:n]...)
			}
			if _, isFault := fault.Of(err); string(got) != want || isFault != (body != want) {
				t.Errorf("%q in pieces of %d is %q, %v", body, size, got, err)
			}
		}
	}
}
