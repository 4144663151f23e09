package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// The parts of mail that become messages.
const (
	takeBody        = "body"
	takeAttachments = "attachments"
	takeAll         = "all"
)

// The forms of a body.
const (
	asText = "text"
	asHTML = "html"
)

// receiveSettings are those of a location.
type receiveSettings struct {
	Take         string            `json:"take"`
	Body         string            `json:"body"`
	Attachments  string            `json:"attachments"`
	Promoted     map[string]string `json:"promoted"`
	BatchSize    int               `json:"batch_size"`
	Readers      int               `json:"readers"`
	PollInterval adapter.Duration  `json:"poll_interval"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{
		Take: takeBody, Body: asText, Attachments: "*", BatchSize: 20, Readers: 1, PollInterval: adapter.Duration(time.Second),
	}
}

// facts are the names, in the namespace of the adapter, of properties that messages have.
var facts = []string{
	"Cc", "FileName", "From", "FromName", "InReplyTo", "MessageID", "Recipient", "Sender", "Subject", "To", "Verdicts",
}

func wrong(path []string, message, remedy string) adapter.Problem {
	return adapter.Problem{Path: path, Message: message, Remedy: remedy}
}

func readReceive(address string, raw json.RawMessage) (receiveSettings, []adapter.Problem) {
	s := receiveDefaults()
	problems := adapter.CheckSettings(raw, &s)
	if strings.TrimSpace(address) == "" || strings.HasPrefix(address, "queue:") || strings.ContainsRune(address, 0) {
		problems = append(problems, wrong([]string{"address"}, "the address names no service",
			"Name the service to which a service binding of mail delivers."))
	}
	problems = append(problems, adapter.OneOf("take", s.Take, takeBody, takeAttachments, takeAll)...)
	problems = append(problems, adapter.OneOf("body", s.Body, asText, asHTML)...)
	problems = append(problems, adapter.Between("batch_size", int64(s.BatchSize), 1, 1000)...)
	problems = append(problems, adapter.Between("readers", int64(s.Readers), 1, 100)...)
	problems = append(problems, adapter.NotBelow("poll_interval", s.PollInterval, adapter.Duration(10*time.Millisecond))...)
	if _, err := path.Match(s.Attachments, ""); err != nil {
		problems = append(problems, wrong([]string{"settings", "attachments"}, fmt.Sprintf("the mask %q cannot be read", s.Attachments),
			"Write * for any characters, ? for one, [a-z] for one of some."))
	}
	for _, fact := range slices.Sorted(maps.Keys(s.Promoted)) {
		if !slices.Contains(facts, fact) {
			problems = append(problems, wrong([]string{"settings", "promoted", fact}, fmt.Sprintf("mail says no %s", fact),
				"Write one of "+strings.Join(facts, ", ")+"."))
		}
		if !strings.Contains(s.Promoted[fact], "#") {
			problems = append(problems, wrong([]string{"settings", "promoted", fact}, fmt.Sprintf("%q is no property", s.Promoted[fact]),
				"Write namespace#Name."))
		}
	}
	return s, problems
}

// sendSettings are those of a port.
type sendSettings struct {
	From        string            `json:"from"`
	Cc          []string          `json:"cc"`
	Bcc         []string          `json:"bcc"`
	Subject     string            `json:"subject"`
	Content     string            `json:"content"`
	Text        string            `json:"text"`
	FileName    string            `json:"file_name"`
	ContentType string            `json:"content_type"`
	Macros      map[string]string `json:"macros"`
}

// The places of the body of a message in mail.
const asAttachment = "attachment"

func sendDefaults() sendSettings {
	return sendSettings{Subject: "%MessageID%", Content: asAttachment, FileName: "%MessageID%"}
}

// letter is the form of what a port sends.
type letter struct {
	settings            sendSettings
	to, cc, bcc         []filename.Template
	from, subject, text filename.Template
	fileName            filename.Template
}

// readSend reads the address, mailto: and one or several addresses with commas between them, and the settings. Addresses are divided before
// macros get their values: a value is one address, and never several.
func readSend(address string, raw json.RawMessage) (letter, []adapter.Problem) {
	l := letter{settings: sendDefaults()}
	problems := adapter.CheckSettings(raw, &l.settings)
	s := l.settings
	problems = append(problems, adapter.OneOf("content", s.Content, asAttachment, asText, asHTML)...)
	problems = append(problems, filename.CheckOwn(s.Macros)...)
	parse := func(written string, at ...string) filename.Template {
		t, problem := filename.Parse(written, s.Macros)
		switch {
		case problem != nil:
			problems = append(problems, wrong(at, problem.Message, problem.Remedy))
		case strings.ContainsFunc(written, unicode.IsControl) && at[len(at)-1] != "text":
			problems = append(problems, wrong(at, "it has a control character", "Remove it."))
		}
		return t
	}
	rest, isMail := strings.CutPrefix(address, "mailto:")
	if !isMail || strings.TrimSpace(rest) == "" {
		problems = append(problems, wrong([]string{"address"}, fmt.Sprintf("the address %q is none of mail", address),
			"Write mailto: and an address, such as mailto:orders@partner.example; several with commas between them."))
	} else {
		for one := range strings.SplitSeq(rest, ",") {
			l.to = append(l.to, parse(strings.TrimSpace(one), "address"))
		}
	}
	for n, one := range s.Cc {
		l.cc = append(l.cc, parse(one, "settings", "cc", fmt.Sprint(n)))
	}
	for n, one := range s.Bcc {
		l.bcc = append(l.bcc, parse(one, "settings", "bcc", fmt.Sprint(n)))
	}
	if s.From == "" {
		problems = append(problems, wrong([]string{"settings", "from"}, "nothing says who sends",
			"Write an address that the role of the host may send as, such as orders@shop.example."))
	}
	if s.Text != "" && s.Content != asAttachment {
		problems = append(problems, wrong([]string{"settings", "text"}, "the text of the mail is the message itself",
			"Leave it out, or let content be attachment."))
	}
	l.from, l.subject = parse(s.From, "settings", "from"), parse(s.Subject, "settings", "subject")
	l.text, l.fileName = parse(s.Text, "settings", "text"), parse(s.FileName, "settings", "file_name")
	return l, problems
}

// asError gives problems as one error, nil for none.
func asError(problems []adapter.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy))
	}
	return errors.Join(errs...)
}
