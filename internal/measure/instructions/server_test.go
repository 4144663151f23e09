package instructions

import (
	"os"
	"path/filepath"
	"testing"
)

// A file of callgrind says the total last: one that is being written has none yet.
func TestCountOfAProcessIsItsTotal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1")
	for text, want := range map[string]struct {
		total int64
		ok    bool
	}{
		"": {}, "events: Ir\nfn=(1) main\n1 2\n": {}, "events: Ir\n1 2\n\ntotals: 38244847\n": {38244847, true},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if total, ok, err := readTotal(path); total != want.total || ok != want.ok || err != nil {
			t.Errorf("%q gives %d, %v, %v", text, total, ok, err)
		}
	}
	if _, ok, err := readTotal(path + "0"); ok || err != nil {
		t.Errorf("no file gives %v, %v", ok, err)
	}
}

// All variants are divided by a bare INSERT.
func TestABareInsertIsAlwaysCounted(t *testing.T) {
	t.Parallel()
	chosen, err := choose([]string{"life", "insert"})
	if err != nil || len(chosen) != 2 || chosen[0].Name != "insert" || chosen[1].Name != "life" {
		t.Errorf("got %v, %v", chosen, err)
	}
	if _, err := choose([]string{"lives"}); err == nil {
		t.Error("an unknown variant is chosen")
	}
}
