package peers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/parts"
	"github.com/parley-broker/parley/internal/mail/parts/corpus"
)

// fieldsOf gives the fields of a message by the names that all readers have.
func fieldsOf(m *parts.Message) map[string]string {
	fields := map[string]string{
		"subject": m.Subject, "date": "", "in_reply_to": strings.Join(m.InReplyTo, " "), "references": strings.Join(m.References, " "), "text": "", "html": "",
	}
	if m.Date != nil {
		fields["date"] = m.Date.Format(time.RFC3339)
	}
	if m.Text != nil {
		fields["text"] = *m.Text
	}
	if m.HTML != nil {
		fields["html"] = *m.HTML
	}
	for name, list := range map[string][]parts.Address{"from": m.From, "to": m.To, "cc": m.Cc, "reply_to": m.ReplyTo} {
		var all []string
		for _, a := range list {
			if a.Name != "" {
				a.Address = a.Name + " <" + a.Address + ">"
			}
			all = append(all, a.Address)
		}
		fields[name] = strings.Join(all, ", ")
	}
	var attachments []string
	for _, a := range m.Attachments {
		if a.Name == "" {
			a.Name = "-"
		}
		said := a.Type + " " + a.Name
		if a.Type != "message/rfc822" { // its size depends on how lines end
			said += fmt.Sprintf(" %d", a.Size)
		}
		attachments = append(attachments, said)
	}
	fields["attachments"] = strings.Join(attachments, ", ")
	return fields
}

// disagreements gives the table of what a reader says otherwise: by message and field, its value; the version with which it was made.
func disagreements(t *testing.T, reader string) (values map[string]string, version string) {
	t.Helper()
	table, err := os.ReadFile("testdata/readers/disagreements.md")
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) == 2 && cells[0] == reader:
			version = cells[1]
		case len(cells) == 5 && cells[0] == reader:
			if len(strings.Fields(cells[4])) < 3 {
				t.Errorf("%s has no reason why %s of %s is read otherwise", reader, cells[2], cells[1])
			}
			values[cells[1]+" "+cells[2]] = strings.Trim(cells[3], "`")
		}
	}
	if version == "" {
		t.Fatalf("the table has no version of %s", reader)
	}
	return values, version
}

// written gives a value as the table has it.
func written(value string) string {
	encoded, _ := json.Marshal(strings.TrimRight(value, "\n")) // a text
	return strings.ReplaceAll(strings.Trim(string(encoded), `"`), "|", `\u007c`)
}

// compares has a reader read the corpus, and compares it field by field with what we read. Each disagreement has its reason in the table.
func compares(t *testing.T, reader string, run func(folder string) *exec.Cmd) {
	t.Helper()
	messages, err := corpus.Messages()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, m := range messages {
		if err := os.WriteFile(filepath.Join(folder, m.Name+".eml"), m.Text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output, err := run(folder).Output()
	if err != nil {
		t.Fatalf("%s: %v", reader, err)
	}
	var said struct {
		Version  string
		Messages map[string]map[string]string
	}
	if err := json.Unmarshal(output, &said); err != nil {
		t.Fatalf("%s printed %.200q: %v", reader, output, err)
	}
	known, version := disagreements(t, reader)
	fields, alike := 0, 0
	for _, m := range messages {
		read, err := parts.Read(strings.NewReader(string(m.Text)), parts.Usual)
		if err != nil {
			t.Fatal(err)
		}
		ours := fieldsOf(read)
		for _, field := range slices.Sorted(maps.Keys(ours)) {
			key, mine, theirs := m.Name+" "+field, written(ours[field]), written(said.Messages[m.Name][field])
			value, isKnown := known[key]
			delete(known, key)
			fields++
			switch {
			case mine == theirs && isKnown && said.Version == version:
				t.Errorf("%s and we agree on %s, which the table denies", reader, key)
			case mine == theirs:
				alike++
			case !isKnown:
				t.Errorf("%s reads %s as %q, we as %q, and the table has no reason", reader, key, theirs, mine)
			case value != theirs && said.Version == version:
				t.Errorf("%s reads %s as %q, in the table as %q", reader, key, theirs, value)
			}
		}
	}
	for key := range known {
		t.Errorf("the table has %s, which is nothing that is read", key)
	}
	t.Logf("%s %s and we agree on %d of %d fields of %d messages", reader, said.Version, alike, fields, len(messages))
}

func TestPythonReadsTheCorpusAsWeDo(t *testing.T) {
	t.Parallel()
	python := mailtest.Program(t, "python3", "PARLEY_TEST_REQUIRE_LANGUAGES")
	compares(t, "python", func(folder string) *exec.Cmd {
		return exec.CommandContext(t.Context(), python, "testdata/readers/read.py", folder)
	})
}

func TestMailparserReadsTheCorpusAsWeDo(t *testing.T) {
	t.Parallel()
	fetches(t, "node", "node", "npm")
	folder := t.TempDir()
	in(t, ".", "cp", "testdata/readers/read.mjs", folder)
	in(t, folder, "npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "mailparser@3.14.2")
	compares(t, "mailparser", func(messages string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "node", "read.mjs", messages)
		command.Dir = folder
		return command
	})
}
