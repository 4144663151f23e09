package flatfile_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

func TestAnyNewlineTakesWhatGitMakesOfLineEnds(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{AnyNewline: true})
	want := ""
	for _, end := range []string{"\r\n", "\n", "\r"} {
		c, _, err := disassembled(t, s, "1;A;2026-11-28"+end+"2;B;2026-11-28"+end, flatfile.ReadSettings{})
		if err != nil {
			t.Fatalf("%q: %v", end, err)
		}
		if want == "" {
			want = c.messages[0]
		}
		if c.messages[0] != want {
			t.Errorf("%q gives %s", end, c.messages[0])
		}
	}
	if _, _, err := disassembled(t, compiled(t, lines, flatfile.Settings{}), "1;A;2026-11-28\n2;B;2026-11-28\n", flatfile.ReadSettings{}); err == nil {
		t.Error("without it, lines that end with LF alone are read where the schema says CR LF")
	}
}

func TestAFileIsReadTheSameByteByByte(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{})
	file := strings.Repeat("12;Märy\r;2026-11-28\r\n", 50)
	want, _, err := disassembled(t, s, file, flatfile.ReadSettings{})
	if err != nil {
		t.Fatal(err)
	}
	got := &collected{}
	if _, err := s.Disassemble(t.Context(), iotest.OneByteReader(strings.NewReader(file)), flatfile.ReadSettings{}, got); err != nil {
		t.Fatal(err)
	}
	if got.messages[0] != want.messages[0] || !strings.Contains(want.messages[0], "Märy&#xD;") {
		t.Errorf("byte by byte it is %s", got.messages[0])
	}
}

func TestCodePagesAndMarksDecideTheCharset(t *testing.T) {
	t.Parallel()
	row := `<xs:element name="Row"><b:recordInfo child_delimiter_type="char" child_delimiter="¤"/><xs:complexType><xs:sequence>
<xs:element name="A" type="xs:string"/><xs:element name="B" type="xs:string"/></xs:sequence></xs:complexType></xs:element>`
	latin := compiled(t, `<b:schemaInfo codepage="28591"/>`+row, flatfile.Settings{})
	const want = "<Row><A>José</A><B>€</B></Row>"
	units := utf16.Encode([]rune("\uFEFFJosé¤€"))
	var wide []byte
	for _, u := range units {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for name, c := range map[string]struct {
		file    string
		charset string
		message string
		says    string
	}{
		"code page":           {"Jos\xe9\xa4x", "", "<Row><A>José</A><B>x</B></Row>", ""},
		"setting":             {"Jos\xe9\xa4\x80", "windows-1252", want, ""},
		"mark of UTF-8":       {"\xef\xbb\xbfJosé¤€", "", want, "byte-order mark"},
		"mark of UTF-16":      {string(wide), "", want, "byte-order mark"},
		"mark before setting": {"\xef\xbb\xbfJosé¤€", "1252", want, "the setting says 1252"},
	} {
		got, summary, err := disassembled(t, latin, c.file, flatfile.ReadSettings{Charset: c.charset})
		if err != nil || plain(got.messages[0]) != c.message || !strings.Contains(summary.Disagreement, c.says) || c.says == "" && summary.Disagreement != "" {
			t.Errorf("%s: %q, %q, %v", name, got.messages, summary.Disagreement, err)
		}
	}
	out, err := assembled(t, latin, flatfile.WriteSettings{}, named("<Row><A>José</A><B>x</B></Row>"))
	if err != nil || out != "Jos\xe9\xa4x" {
		t.Errorf("it is written as %q, %v", out, err)
	}
	_, err = assembled(t, latin, flatfile.WriteSettings{}, named(want))
	if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, "'€'") {
		t.Errorf("a character that the code page does not have is refused as %v", err)
	}
}

func TestPlacesCountTheBytesOfTheFileAndNotOfItsText(t *testing.T) {
	t.Parallel()
	s := compiled(t, `<b:schemaInfo codepage="1252"/>`+lines, flatfile.Settings{})
	file := strings.Repeat("1;\xe4\xf6\xfc;2026-11-28\r\n", 4000) + "2;\xe4\xf6\r\n"
	_, _, err := disassembled(t, s, file, flatfile.ReadSettings{})
	f, ok := fault.Of(err)
	if !ok || f.Place.Byte != int64(len(file)-2) || f.Place.Line != 4001 || f.Place.Column != 5 {
		t.Errorf("the place is %+v", f)
	}
}

func TestBytesThatAreNoCharactersAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	_, _, err := disassembled(t, compiled(t, lines, flatfile.Settings{}), "1;A;2026-11-28\r\n2;\xe4;2026-11-28\r\n", flatfile.ReadSettings{})
	f, ok := fault.Of(err)
	if !ok || f.Place != (fault.Place{Byte: 18, Line: 2, Column: 3}) || !strings.Contains(f.Remedy, "windows-1252") {
		t.Errorf("they are refused as %+v", err)
	}
}

func TestASchemaInUTF16IsRead(t *testing.T) {
	t.Parallel()
	text := strings.Replace(frame(lines), "utf-8", "utf-16", 1)
	var wide bytes.Buffer
	wide.Write([]byte{0xff, 0xfe})
	for _, u := range utf16.Encode([]rune(text)) {
		wide.Write([]byte{byte(u), byte(u >> 8)})
	}
	for name, body := range map[string][]byte{"UTF-16 with a mark": wide.Bytes(), "declared as UTF-16 and written in UTF-8": []byte(text)} {
		source, err := xsd.Parse("wide.xsd", body, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := flatfile.Compile(source, flatfile.Settings{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMissingLastDelimiterIsAllowedUnlessItIsRequired(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{})
	file := "1;A;2026-11-28\r\n2;B;2026-11-28"
	if c, _, err := disassembled(t, s, file, flatfile.ReadSettings{}); err != nil || strings.Count(c.messages[0], "<Line>") != 2 {
		t.Errorf("it gives %q, %v", c.messages, err)
	}
	if _, _, err := disassembled(t, s, file, flatfile.ReadSettings{RequireFinalDelimiter: true}); err == nil || !strings.Contains(err.Error(), "the end of the file") {
		t.Errorf("where it is required the file ends with %v", err)
	}
}

func TestAnEmptyFileAndABrokenReaderAreErrors(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{})
	if _, _, err := disassembled(t, s, "", flatfile.ReadSettings{}); err == nil || !strings.Contains(err.Error(), "the file is empty") {
		t.Errorf("an empty file ends with %v", err)
	}
	gone := errors.New("the network is gone")
	for _, recovery := range []interchange.Recovery{interchange.Nothing, interchange.Messages, interchange.Records} {
		c := &collected{}
		r := io.MultiReader(strings.NewReader("1;A;2026-11-28\r\n2;B;20"), iotest.ErrReader(gone))
		if _, err := s.Disassemble(t.Context(), r, flatfile.ReadSettings{Recover: recovery}, c); !errors.Is(err, gone) || len(c.messages) > 0 {
			t.Errorf("%q: a reader that breaks gives %d messages and %v", recovery, len(c.messages), err)
		}
	}
}

func TestAWrappedValueThatIsNotClosedSaysWhereItOpened(t *testing.T) {
	t.Parallel()
	s := compiled(t, `<xs:element name="Row"><b:recordInfo child_delimiter_type="char" child_delimiter=","/><xs:complexType><xs:sequence>
<xs:element name="A" type="xs:string"><b:fieldInfo wrap_char_type="char" wrap_char="'"/></xs:element><xs:element name="B" type="xs:string"/></xs:sequence></xs:complexType></xs:element>`, flatfile.Settings{})
	for file, want := range map[string]string{"'abc,d": "opened at line 1, column 1", "'a'b,c": "a delimiter behind the closing '"} {
		if _, _, err := disassembled(t, s, file, flatfile.ReadSettings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q ends with %v", file, err)
		}
	}
}
