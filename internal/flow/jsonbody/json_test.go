package jsonbody_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/text"
)

const orderSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:orders:order","type":"object","required":["id"],
"properties":{"id":{"type":"integer"},"mail":{"type":"string","format":"email"},"lines":{"type":"array","items":{"$ref":"line.json"}}}}`

func schema(t *testing.T, assertFormat bool) *jsonbody.Schema {
	t.Helper()
	folder := t.TempDir()
	for name, body := range map[string]string{"order.json": strings.Replace(orderSchema, `"$id":"urn:orders:order",`, "", 1), "line.json": `{"type":"object","properties":{"part":{"type":"string"}}}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := jsonbody.Load(filepath.Join(folder, "order.json"), assertFormat)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type collected struct {
	messages, types []string
	bad             []interchange.Bad
	current         bytes.Buffer
}

func (c *collected) Begin(int64) (io.Writer, error) { c.current.Reset(); return &c.current, nil }

func (c *collected) End(m interchange.Message) error {
	c.messages, c.types = append(c.messages, c.current.String()), append(c.types, m.Type)
	return nil
}

func (c *collected) Abort(int64) error { return nil }

func (c *collected) Bad(bad interchange.Bad) error {
	bad.Raw = bytes.Clone(bad.Raw)
	c.bad = append(c.bad, bad)
	return nil
}

func split(t *testing.T, body string, settings jsonbody.Settings) (*collected, jsonbody.Summary, error) {
	t.Helper()
	c := &collected{}
	summary, err := jsonbody.Split(t.Context(), strings.NewReader(body), settings, c)
	return c, summary, err
}

func TestDocumentsAndMembersAreMessagesWithTheBytesThatTheyHave(t *testing.T) {
	t.Parallel()
	for body, c := range map[string]struct {
		split bool
		want  string
	}{
		`{"b":1.50, "a":2}`:      {false, `{"b":1.50, "a":2}`},
		"{\"a\":1}\n{\"a\":2}\n": {false, `{"a":1}|{"a":2}`},
		`[{"a":1.0},[2] , 3]`:    {true, `{"a":1.0}|[2]|3`},
		`[{"a":1}]`:              {false, `[{"a":1}]`},
		" \n[]":                  {true, ``},
		`{"a":1}`:                {true, `{"a":1}`},
		"\ufeff{\"a\":\"é\"}":    {false, `{"a":"é"}`},
	} {
		got, _, err := split(t, body, jsonbody.Settings{Split: c.split, Type: "t"})
		if err != nil || strings.Join(got.messages, "|") != c.want {
			t.Errorf("%q gives %q, %v", body, got.messages, err)
		}
	}
}

func TestAMessageIsHeldAgainstItsSchemaAndTheFaultNamesTheValue(t *testing.T) {
	t.Parallel()
	s := schema(t, false)
	for body, want := range map[string]struct {
		field   string
		message string
		place   fault.Place
	}{
		"{\"id\":1,\n \"lines\":[{\"part\":\"x\"},{\"part\":7}]}": {"/lines/1/part", "want string", fault.Place{Byte: 40, Line: 2, Column: 32}},
		`{"id":"x"}`: {"/id", "want integer", fault.Place{Byte: 6, Line: 1, Column: 7}},
		`{}`:         {"/", "missing propert", fault.Place{Line: 1, Column: 1}},
	} {
		f := s.Check([]byte(body))
		if f == nil || f.Field != want.field || !strings.Contains(f.Message, want.message) || f.Place != want.place || f.Remedy == "" {
			t.Errorf("%s is refused as %+v, want %+v", body, f, want)
		}
	}
	if f := s.Check([]byte(`{"id":1,`)); f == nil || !strings.Contains(f.Message, "no JSON") {
		t.Errorf("what is no JSON is refused as %v", f)
	}
}

func TestFormatIsANoteUnlessItIsMadeARule(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":1,"mail":"nobody"}`)
	if f := schema(t, false).Check(body); f != nil {
		t.Errorf("as a note it refuses: %v", f)
	}
	if f := schema(t, true).Check(body); f == nil || f.Field != "/mail" {
		t.Errorf("as a rule it gives %v", f)
	}
}

func TestABadMemberIsReportedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	body := `[{"id":1},{"id":"x"},{"id":3}]`
	settings := jsonbody.Settings{Schema: schema(t, false), Split: true, Recover: interchange.Messages}
	c, summary, err := split(t, body, settings)
	if err != nil || summary.Messages != 2 || len(c.bad) != 1 || body[c.bad[0].From:c.bad[0].To] != `{"id":"x"}` {
		t.Errorf("%+v, bad %+v, %v", summary, c.bad, err)
	}
	settings.Recover = interchange.Nothing
	if _, _, err := split(t, body, settings); err == nil || !strings.Contains(err.Error(), "want integer") {
		t.Errorf("without a recovery it ends with %v", err)
	}
	for bad, want := range map[string]string{`[{"id":1},`: "no JSON", "": "empty", `[1] 2`: "follows the array"} {
		if _, _, err := split(t, bad, jsonbody.Settings{Split: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q ends with %v", bad, err)
		}
	}
}

func TestAMessageThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	body := `[{"a":1},"` + strings.Repeat("x", 100_000) + `"]`
	if _, _, err := split(t, body, jsonbody.Settings{Split: true, MostBytes: 10_000}); err == nil || !strings.Contains(err.Error(), "more than 10000 bytes") {
		t.Errorf("it ends with %v", err)
	}
	many := "[" + strings.Repeat(`{"a":1},`, 50_000) + "1]"
	if _, summary, err := split(t, many, jsonbody.Settings{Split: true, MostBytes: 10_000}); err != nil || summary.Messages != 50_001 {
		t.Errorf("many short ones: %+v, %v", summary, err)
	}
}

func TestMessagesAreJoinedIntoOneArray(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := jsonbody.Join(&out, [][]byte{[]byte(` {"b":1.50} `), []byte("2")}, text.Output{}); err != nil || out.String() != `[{"b":1.50},2]` {
		t.Errorf("they are %s, %v", out.String(), err)
	}
	if err := jsonbody.Join(io.Discard, [][]byte{[]byte("{")}, text.Output{}); err == nil {
		t.Error("what is no JSON was joined")
	}
}
