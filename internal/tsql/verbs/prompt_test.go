package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The history outlives the prompt, but for lines with a password, and its file is the user's alone.
func TestTheHistoryIsKeptWithoutPasswords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "history")
	h := readHistory(path)
	for _, line := range []string{"SELECT 1", "SELECT 1", "  ", "CREATE LOGIN a WITH PASSWORD = 'b'", "GO"} {
		h.Add(line)
	}
	if h.Len() != 3 || h.At(0) != "GO" || h.At(2) != "SELECT 1" {
		t.Errorf("%q", h.lines)
	}
	if again := readHistory(path); strings.Join(again.lines, "|") != "SELECT 1|GO" {
		t.Errorf("the file has %q", again.lines)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A file that grows is cut to its last lines.
func TestALongHistoryIsCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(path, []byte(strings.Repeat("x\n", 2*keptLines)+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := readHistory(path)
	content, err := os.ReadFile(path)
	if err != nil || h.Len() != keptLines || h.At(0) != "last" || strings.Count(string(content), "\n") != keptLines {
		t.Errorf("%d lines, %v", h.Len(), err)
	}
}
