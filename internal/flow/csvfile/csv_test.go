package csvfile_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/csvfile"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

type collected struct {
	messages []string
	types    []string
	bad      []interchange.Bad
	current  bytes.Buffer
	aborted  int
}

func (c *collected) Begin(int64) (io.Writer, error) { c.current.Reset(); return &c.current, nil }

func (c *collected) End(m interchange.Message) error {
	c.messages, c.types = append(c.messages, c.current.String()), append(c.types, m.Type)
	return nil
}

func (c *collected) Abort(int64) error { c.aborted++; return nil }

func (c *collected) Bad(bad interchange.Bad) error { c.bad = append(c.bad, bad); return nil }

func read(t testing.TB, file string, settings csvfile.Settings) (*collected, csvfile.Summary, error) {
	t.Helper()
	c := &collected{}
	summary, err := csvfile.Read(t.Context(), strings.NewReader(file), settings, c)
	return c, summary, err
}

func TestRowsBecomeXMLOrJSONInOneMessageOrEachInItsOwn(t *testing.T) {
	t.Parallel()
	file := "id;\"full name\"\r\n1;\"Smith; \"\"Ann\"\"\"\r\n2;\r\n"
	for want, settings := range map[string]csvfile.Settings{
		`<Rows><Row><id>1</id><full_x0020_name>Smith; &#34;Ann&#34;</full_x0020_name></Row><Row><id>2</id><full_x0020_name/></Row></Rows>`: {Delimiter: ';'},
		`[{"id":"1","full name":"Smith; \"Ann\""},{"id":"2","full name":""}]`:                                                              {Delimiter: ';', AsJSON: true},
		`{"id":"1","full name":"Smith; \"Ann\""}|{"id":"2","full name":""}`:                                                                {Delimiter: ';', AsJSON: true, Split: true},
		`<ns0:P xmlns:ns0="urn:p"><L><id>1</id><full_x0020_name>Smith; &#34;Ann&#34;</full_x0020_name></L></ns0:P>|<ns0:P xmlns:ns0="urn:p"><L><id>2</id><full_x0020_name/></L></ns0:P>`: {
			Delimiter: ';', Split: true, Root: "P", Row: "L", Namespace: "urn:p",
		},
	} {
		c, summary, err := read(t, file, settings)
		if got := strings.Join(c.messages, "|"); err != nil || got != want || summary.Rows != 2 {
			t.Errorf("%+v gives\n%s\nand not\n%s, %v", settings, got, want, err)
		}
	}
}

func TestABadLineIsReportedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	file := "a,b\n1,2\n3\n4,5\n6,\x01\n"
	_, _, err := read(t, file, csvfile.Settings{})
	if f, ok := fault.Of(err); !ok || f.Place.Line != 3 || f.Expected != "2 values" || f.Remedy == "" {
		t.Errorf("it ends with %v", err)
	}
	c, summary, err := read(t, file, csvfile.Settings{Recover: interchange.Records})
	if err != nil || summary.Rows != 2 || summary.Bad != 2 || len(c.messages) != 1 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if got := file[c.bad[0].From:c.bad[0].To]; got != "3\n" {
		t.Errorf("the bad line is %q", got)
	}
	if f := c.bad[1].Fault; f.Field != "b" || f.Place.Line != 5 || f.Place.Column != 3 {
		t.Errorf("the control character is reported as %+v", f)
	}
	c, _, err = read(t, "a,b\n1,2\n\"x\" y,2\n", csvfile.Settings{Recover: interchange.Records})
	if f, ok := fault.Of(err); !ok || f.Place.Line != 3 || c.aborted != 1 {
		t.Errorf("a quote that does not match ends with %v, %d messages taken back", err, c.aborted)
	}
}

func TestAHeaderLineThatCannotNameColumnsIsRefused(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"": "empty", "a,,b\n": "column 2 has no name", "a,b,a\n": "two columns"} {
		if _, _, err := read(t, file, csvfile.Settings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q ends with %v", file, err)
		}
	}
}

func TestTheCharsetOfAFileIsThatOfItsMarkOrTheSetting(t *testing.T) {
	t.Parallel()
	for file, charset := range map[string]string{"\xef\xbb\xbfn\né\n": "", "n\n\xe9\n": "windows-1252", "\xff\xfen\x00\n\x00\xe9\x00": "1252"} {
		c, _, err := read(t, file, csvfile.Settings{Charset: charset})
		if err != nil || c.messages[0] != "<Rows><Row><n>é</n></Row></Rows>" {
			t.Errorf("%q gives %q, %v", file, c.messages, err)
		}
	}
}

func TestNamesOfColumnsComeBackFromTheNamesOfElements(t *testing.T) {
	t.Parallel()
	columns := []string{"a b", "_x0020_", "a_x0020_b", "1st", "é", "_", "x-1.y", "<&>", "_x00"}
	document := rowsXML(columns, [][]string{{"1", "2", "3", "4", "5", "6", "7", "8", "9"}})
	var file bytes.Buffer
	w, err := csvfile.NewWriter(&file, 0, false, nil, text.Output{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteXML(strings.NewReader(document)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || file.String() != strings.Join(columns, ",")+"\n1,2,3,4,5,6,7,8,9\n" {
		t.Errorf("the file is %q, %v", file.String(), err)
	}
}

func TestRowsOfJSONAreWrittenAsTheyAre(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := csvfile.NewWriter(&out, ';', true, []string{"id", "name", "ok"}, text.Output{Charset: "1252"})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{`{"name":"é","id":1}`, `[{"id":12345678901234567890,"ok":true},{"name":null}]`} {
		if err := w.WriteJSON(strings.NewReader(document)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || out.String() != "id;name;ok\r\n1;\xe9;\r\n12345678901234567890;;true\r\n;;\r\n" {
		t.Errorf("it is %q, %v", out.String(), err)
	}
	for document, want := range map[string]string{`{"other":1}`: "not in the header line", `{"id":{}}`: "object or array", `[1]`: "no object", `{`: "no JSON"} {
		if err := w.WriteJSON(strings.NewReader(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s ends with %v", document, err)
		}
	}
}

// Rows that are written are read as the same, whatever their columns and values. The columns are told, as those of one column whose name
// and values have another usual delimiter in them have to be.
func TestWhatIsWrittenIsReadAsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		value := rapid.StringOf(rapid.RuneFrom([]rune("ab _x0020_é\",;\n<&")))
		columns := rapid.SliceOfNDistinct(value.Filter(func(s string) bool { return s != "" && !strings.HasPrefix(s, "\ufeff") }), 1, 4, rapid.ID[string]).Draw(r, "columns")
		rows := rapid.SliceOfN(rapid.SliceOfN(value, len(columns), len(columns)), 1, 4).Draw(r, "rows")
		var file bytes.Buffer
		w, err := csvfile.NewWriter(&file, 0, false, columns, text.Output{})
		if err != nil {
			r.Fatal(err)
		}
		document := rowsXML(columns, rows)
		if err := w.WriteXML(strings.NewReader(document)); err != nil {
			r.Fatal(err)
		}
		if err := w.Close(); err != nil {
			r.Fatal(err)
		}
		c, _, err := read(t, file.String(), csvfile.Settings{Columns: columns})
		if err != nil {
			r.Fatalf("%q: %v", file.String(), err)
		}
		if len(c.messages) != 1 || c.messages[0] != document {
			r.Fatalf("%s\nis written as %q and read as\n%s", document, file.String(), c.messages)
		}
	})
}

func TestADelimiterThatCannotBeOneIsRefused(t *testing.T) {
	t.Parallel()
	for _, delimiter := range []rune{'"', '\n', '\r', utf8.RuneError, -1, 0x110000} {
		_, _, err := read(t, "a,b\n", csvfile.Settings{Delimiter: delimiter})
		_, writeErr := csvfile.NewWriter(&bytes.Buffer{}, delimiter, false, nil, text.Output{})
		for _, err := range []error{err, writeErr} {
			if f, is := fault.Of(err); !is || f.Remedy == "" {
				t.Errorf("%q is refused as %v", delimiter, err)
			}
		}
	}
	if _, _, err := read(t, "a,b\n", csvfile.Settings{Comment: ','}); err == nil {
		t.Error("the delimiter begins comments")
	}
}

func TestColumnsThatAreKnownHaveTheirHeaderLineWithoutARow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := csvfile.NewWriter(&out, 0, false, []string{"a", "b"}, text.Output{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteXML(strings.NewReader("<Rows/>")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || out.String() != "a,b\n" {
		t.Errorf("it is %q, %v", out.String(), err)
	}
}

func TestAByteThatIsNoCharacterEndsTheReadingAlsoWhereBadLinesArePassedOver(t *testing.T) {
	t.Parallel()
	c, _, err := read(t, "a\n1\n\xa7\n2\n", csvfile.Settings{Split: true, Recover: interchange.Records})
	if f, is := fault.Of(err); !is || f.Place.Line != 3 || len(c.bad) != 0 || len(c.messages) != 1 {
		t.Errorf("it ends with %v behind %d messages, %d bad", err, len(c.messages), len(c.bad))
	}
}

func TestNamesOfColumnsBecomeNamesOfElementsAndComeBack(t *testing.T) {
	t.Parallel()
	for column, want := range map[string]string{
		"Größe": "Größe", "Nº": "N_x00BA_", "1st": "_x0031_st", "a b": "a_x0020_b", "_x0041_": "_x005F_x0041_", "_x0020 0": "_x005F_x0020_x0020_0",
		"a:b": "a_x003A_b", "a_b": "a_b", "x": "x", "-": "_x002D_", "😀": "😀",
	} {
		c, _, err := read(t, `"`+column+`"`+"\n1\n", csvfile.Settings{})
		if err != nil || c.messages[0] != "<Rows><Row><"+want+">1</"+want+"></Row></Rows>" {
			t.Fatalf("%q becomes %q, %v", column, c.messages, err)
		}
		var out bytes.Buffer
		w, err := csvfile.NewWriter(&out, 0, false, nil, text.Output{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteXML(strings.NewReader(c.messages[0])); err != nil {
			t.Fatalf("%q: %v", column, err)
		}
		if err := w.Close(); err != nil || out.String() != column+"\n1\n" && out.String() != `"`+column+"\"\n1\n" {
			t.Errorf("%q comes back as %q, %v", column, out.String(), err)
		}
	}
}

// A line that has more values than the header line is most often one of another delimiter, and the remedy says which.
func TestRemedyNamesTheDelimiterOfTheFile(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"a;b\n1;2,5\n":   `set the delimiter: the header line is one name with ";" in it`,
		"a\tb\n1\t2,5\n": `set the delimiter: the header line is one name with a tab ("\t") in it`,
		"a\n1,2\n":       "add the missing values",
		"a;b,c\n1\n":     "add the missing values",
	} {
		_, _, err := read(t, file, csvfile.Settings{})
		if err == nil || !strings.Contains(remedyOf(t, err), want) {
			t.Errorf("%q gives %v", file, err)
		}
	}
}

func remedyOf(t *testing.T, err error) string {
	t.Helper()
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		t.Fatalf("%v has no remedy", err)
	}
	return f.Remedy
}
