package mapping_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/mapping"
)

// xalanVariable names a clone of apache/xalan-test, whose tests of XSLT 1.0 are counted.
const xalanVariable = "PARLEY_TEST_XALAN"

// The conformance tests of Apache Xalan say how far the worker is XSLT 1.0. A result is right where it is that of Xalan, as XML or without
// white space at its ends.
//
//	PARLEY_TEST_XALAN=~/xalan-test go test -v -run Conformance ./internal/flow/mapping
func TestConformance(t *testing.T) {
	folder := os.Getenv(xalanVariable)
	if folder == "" {
		t.Skipf("%s names no clone of apache/xalan-test", xalanVariable)
	}
	pool := poolOf(t)
	sheets, err := filepath.Glob(filepath.Join(folder, "tests", "conf", "*", "*.xsl"))
	if err != nil {
		t.Fatal(err)
	}
	type score struct{ right, other, refused int }
	scores := map[string]score{}
	var all score
	for _, name := range sheets {
		group := filepath.Base(filepath.Dir(name))
		gold, err := os.ReadFile(filepath.Join(folder, "tests", "conf-gold", group, strings.TrimSuffix(filepath.Base(name), ".xsl")+".out"))
		if err != nil {
			continue // another one includes it
		}
		document, err := os.ReadFile(strings.TrimSuffix(name, ".xsl") + ".xml")
		if err != nil {
			continue
		}
		s := scores[group]
		switch right, why := conforms(t, pool, name, string(document), gold); {
		case right:
			s.right, all.right = s.right+1, all.right+1
		case why != nil:
			s.refused, all.refused = s.refused+1, all.refused+1
			t.Logf("%s: %v", filepath.Base(name), why)
		default:
			s.other, all.other = s.other+1, all.other+1
			t.Logf("%s: another result", filepath.Base(name))
		}
		scores[group] = s
	}
	for _, group := range slices.Sorted(maps.Keys(scores)) {
		t.Logf("%-16s %+v", group, scores[group])
	}
	t.Logf("%d right, %d with another result, %d refused", all.right, all.other, all.refused)
	if all.right < 1000 {
		t.Errorf("only %d are right", all.right)
	}
}

func conforms(t *testing.T, pool *mapping.Pool, name, document string, gold []byte) (right bool, why error) {
	t.Helper()
	program, err := mapping.Read(os.DirFS(filepath.Dir(filepath.Dir(name))), filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name))
	if err != nil {
		return false, err
	}
	written, err := json.Marshal(settings{"M": mapping.Definition{Language: "xslt", Program: *program}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := mapping.New(written, pool)
	if err != nil {
		t.Fatal(err)
	}
	out, err := made.Run(t.Context(), "M", []mapping.Input{input(document)})
	if err != nil {
		return false, err
	}
	defer out.Body.Close()
	got, err := out.Body.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	got, gold = bytes.TrimSpace(got), bytes.TrimSpace(gold)
	if bytes.Equal(got, gold) {
		return true, nil
	}
	differences, err := mapping.Compare(got, gold, "application/xml")
	return err == nil && len(differences) == 0, nil
}
