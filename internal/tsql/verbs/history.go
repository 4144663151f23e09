package verbs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// keptLines is how many lines the file of the history keeps.
const keptLines = 1000

// secret finds lines that may have a password; they are kept until the prompt ends, and not in the file.
var secret = regexp.MustCompile(`(?i)password|secret|decryption by|encryption by`)

// A history has the lines that were typed at the prompt, in this one and in those before it.
type history struct {
	path  string // empty where the user has no folder for it
	lines []string
}

var _ term.History = (*history)(nil)

// historyPath gives the file of the history: PARLEY_TSQL_HISTORY, or a file in the user's state folder. Empty keeps none.
func historyPath() string {
	if path, given := os.LookupEnv("PARLEY_TSQL_HISTORY"); given {
		return path
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "parley", "tsql_history")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "parley", "tsql_history")
}

// readHistory reads the file. One that cannot be read is as if empty: the prompt works without it.
func readHistory(path string) *history {
	h := &history{path: path}
	content, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	h.lines = strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if len(h.lines) > 2*keptLines {
		h.lines = h.lines[len(h.lines)-keptLines:]
		_ = os.WriteFile(path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
	}
	return h
}

// Add keeps a line, unless it is blank or the same as the one before.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.path == "" || secret.MatchString(line) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return
	}
	file, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = file.WriteString(line + "\n")
	_ = file.Close()
}

// Len gives how many lines there are.
func (h *history) Len() int { return len(h.lines) }

// At gives a line; 0 is the one that was typed last.
func (h *history) At(at int) string { return h.lines[len(h.lines)-1-at] }
