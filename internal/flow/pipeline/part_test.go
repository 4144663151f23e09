package pipeline_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// again is a bad part of an input as an operator resubmits it, mended: a new body has no charset and no content type.
func again(bad taken, content string) pipeline.Source {
	s := body(content)
	s.Type, s.Promoted, s.Written = bad.Type, bad.Promoted, bad.Written
	return s
}

// A part of an input that was bad goes through the pipeline when it is mended: from the stage that found it bad, in the charset in which it
// was suspended, and with what is needed to read it.
func TestBadPartsGoThroughThePipelineWhenTheyAreMended(t *testing.T) {
	t.Parallel()
	rows := map[string]any{"row": map[string]any{
		"format": "json", "promotions": map[string]string{"urn:p#Id": "/id"},
		"schema": schema("row.json", `{"properties": {"amount": {"pattern": "^[0-9]+$"}}}`),
	}}
	p, err := pipeline.CompileReceive(defined(t, "receive", `{"decode": [{"component": "gzip-decoder"}], "disassemble": [{"component": "csv-disassembler",
		"settings": {"delimiter": ";", "charset": "windows-1252", "as": "json", "type": "row", "split": true, "recoverable": true}}],
		"validate": [{"component": "json-validator", "settings": {"recoverable": true}}]}`), types(t, rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := run(t, p, body(packedBy(t, "id;amount\r\nK\xf6ln;1\r\nD\xfcren;x\r\nM\xfcnchen;2;3\r\n")))
	if err != nil || len(c.good) != 1 || len(c.bad) != 2 {
		t.Fatalf("%d are good and %d bad, %v", len(c.good), len(c.bad), err)
	}
	requireBad(t, c, 0, `{"id":"Düren","amount":"x"}`, "receive.validate", "amount")
	requireBad(t, c, 1, "id;amount\r\nMünchen;2;3\r\n", "receive.record", "another number of values")
	for i, mended := range []string{`{"id":"Düren","amount":"7"}`, "id;amount\r\nMünchen;23\r\n"} {
		got, err := run(t, p, again(c.bad[i], mended))
		if err != nil || len(got.good) != 1 || len(got.bad) != 0 {
			t.Fatalf("part %d, mended, gives %d good messages and %d bad, %v", i, len(got.good), len(got.bad), err)
		}
		m := got.good[0]
		if want := []string{"Düren", "München"}[i]; m.Type != "row" || m.Promoted["urn:p#Id"] != want || m.Written[pipeline.StageProperty] != nil {
			t.Errorf("part %d has become %+v", i, m.Message)
		}
	}
	// One that is still not valid is bad again, and can be mended again.
	got, err := run(t, p, again(c.bad[0], `{"id":"Düren","amount":"y"}`))
	if err != nil || len(got.bad) != 1 || got.bad[0].Written[pipeline.StageProperty] == nil {
		t.Errorf("what is not valid still gives %+v, %v", got.bad, err)
	}
}

// A bad member of an array is mended as it was suspended, without the array.
func TestBadMembersOfAnArrayGoThroughThePipelineAlone(t *testing.T) {
	t.Parallel()
	p := receive(t, `{"disassemble": [{"component": "json-disassembler", "settings": {"type": "order", "path": "/orders", "recoverable": true}}]}`)
	c, err := run(t, p, body(`{"orders": [{"id": 1}, {"id": "x"}]}`))
	if err != nil || len(c.good) != 1 || len(c.bad) != 1 {
		t.Fatalf("%d are good and %d bad, %v", len(c.good), len(c.bad), err)
	}
	if got, err := run(t, p, again(c.bad[0], `{"id": 2}`)); err != nil || len(got.good) != 1 || got.good[0].Promoted["urn:p#Id"] != "2" {
		t.Errorf("mended it gives %+v, %v", got.good, err)
	}
}
