package parts_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-broker/parley/internal/mail/parts"
	"github.com/parley-broker/parley/internal/mail/parts/corpus"
)

// fieldsOf gives the fields of a message in the form of the corpus.
func fieldsOf(m *parts.Message) map[string]string {
	fields := map[string]string{
		"subject": m.Subject, "in_reply_to": strings.Join(m.InReplyTo, " "), "references": strings.Join(m.References, " "),
		"from": list(m.From), "to": list(m.To), "cc": list(m.Cc), "reply_to": list(m.ReplyTo),
	}
	if m.Date != nil {
		fields["date"] = m.Date.Format(time.RFC3339)
	}
	for name, text := range map[string]*string{"text": m.Text, "html": m.HTML} {
		if text != nil {
			fields[name] = strings.ReplaceAll(*text, "\n", `\n`)
		}
	}
	var attachments, problems []string
	for _, a := range m.Attachments {
		name := a.Name
		if name == "" {
			name = "-"
		}
		attachments = append(attachments, fmt.Sprintf("%s %s %s %d", a.Number, a.Type, name, a.Size))
	}
	for _, p := range m.Parsed.Problems {
		problems = append(problems, strings.TrimPrefix(p.Part+":"+p.Problem, ":"))
	}
	fields["attachments"], fields["problems"] = strings.Join(attachments, ", "), strings.Join(problems, " ")
	return fields
}

func list(addresses []parts.Address) string {
	var all []string
	for _, a := range addresses {
		if a.Name != "" {
			a.Address = a.Name + " <" + a.Address + ">"
		}
		all = append(all, a.Address)
	}
	return strings.Join(all, ", ")
}

func TestMessagesOfTheCorpusAreReadAsTheirRulesSay(t *testing.T) {
	t.Parallel()
	messages, err := corpus.Messages()
	if err != nil || len(messages) < 100 {
		t.Fatalf("the corpus has %d messages: %v", len(messages), err)
	}
	seen := map[string]bool{}
	for _, m := range messages {
		if seen[m.Name] {
			t.Errorf("%s stands twice in the corpus", m.Name)
		}
		seen[m.Name] = true
		read, err := parts.Read(strings.NewReader(string(m.Text)), parts.Usual)
		if err != nil {
			t.Fatal(err)
		}
		got := fieldsOf(read)
		for _, field := range slices.Sorted(maps.Keys(m.Want)) {
			if _, is := got[field]; !is && field != "date" && field != "text" && field != "html" {
				t.Errorf("%s: %s is no field", m.Name, field)
			}
			if got[field] != m.Want[field] {
				t.Errorf("%s: %s is %q, want %q", m.Name, field, got[field], m.Want[field])
			}
		}
		if got["problems"] != m.Want["problems"] {
			t.Errorf("%s: the problems are %q, want %q", m.Name, got["problems"], m.Want["problems"])
		}
		again, err := parts.Read(iotest.OneByteReader(strings.NewReader(string(m.Text))), parts.Usual)
		if err != nil || !maps.Equal(fieldsOf(again), got) {
			t.Errorf("%s: a byte at a time it is read as %v, whole as %v: %v", m.Name, fieldsOf(again), got, err)
		}
	}
}
