package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/service"
	"github.com/parley-broker/parley/internal/pgdb"
)

// mailbox is a name and an address.
type mailbox struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// attachment is a part of mail.
type attachment struct {
	Part    string `json:"part"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Charset string `json:"charset"`
}

// payload is mail as a service gets it.
type payload struct {
	NetworkMessageID string          `json:"network_message_id"`
	HeaderMessageID  string          `json:"header_message_id"`
	Sender           string          `json:"sender"`
	Recipient        string          `json:"recipient"`
	Subject          string          `json:"subject"`
	InReplyTo        json.RawMessage `json:"in_reply_to"`
	From             []mailbox       `json:"from"`
	To               []mailbox       `json:"to"`
	Cc               []mailbox       `json:"cc"`
	Text             *string         `json:"text"`
	HTML             *string         `json:"html"`
	Attachments      []attachment    `json:"attachments"`
	Verdicts         json.RawMessage `json:"verdicts"`
	Parsed           struct {
		State string `json:"state"`
	} `json:"parsed"`
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	s, problems := readReceive(e.Address, e.Settings)
	if err := asError(problems); err != nil {
		return nil, err
	}
	limits := service.Limits{BatchSize: s.BatchSize, Groups: s.BatchSize, Readers: s.Readers, PollInterval: s.PollInterval}
	return service.NewReceiver(e, e.Address, limits, s.inputs)
}

// readPayload reads what a service binding sends, and reports whether it is one.
func readPayload(body []byte) (p payload, isMail bool) {
	err := json.Unmarshal(body, &p)
	return p, err == nil && p.NetworkMessageID != ""
}

// inputs makes inputs of mail. Mail of which nothing can be taken is an input that fails, so that an operator finds it.
func (s receiveSettings) inputs(ctx context.Context, tx pgx.Tx, m parley.Message) ([]adapter.Input, error) {
	unreadable := func(code, reason string) []adapter.Input {
		return []adapter.Input{{
			Body: m.MessageBody, Size: int64(len(m.MessageBody)), ContentType: "application/json", Charset: "utf-8",
			Promoted: map[string]any{}, Written: map[string]any{},
			Failure: &adapter.Failure{Code: code, Permanent: true, Err: errors.New(reason)},
		}}
	}
	p, isMail := readPayload(m.MessageBody)
	if !isMail {
		return unreadable("receive.pipeline", "the message of the service is no mail; let a service binding of mail alone send to it"), nil
	}
	if p.Parsed.State == "NONE" {
		return unreadable("receive.pipeline", "the mail was not parsed by the daemon that delivered it; let parley mail serve deliver"), nil
	}
	var inputs []adapter.Input
	if s.Take != takeAttachments {
		if body, contentType := s.body(p); body != nil {
			input := s.input(p, "")
			input.Body, input.Size, input.ContentType, input.Charset = []byte(*body), int64(len(*body)), contentType, "utf-8"
			inputs = append(inputs, input)
		}
	}
	if s.Take != takeBody {
		for _, a := range p.Attachments {
			if matched, err := path.Match(strings.ToLower(s.Attachments), strings.ToLower(a.Name)); err != nil || !matched {
				continue
			}
			content, err := readPart(ctx, tx, m.MessageBody, a.Part)
			if err != nil {
				if service.Broken(ctx, err) {
					return nil, err
				}
				return unreadable("receive.pipeline", fmt.Sprintf("attachment %s of the mail cannot be read: %v", a.Part, err)), nil
			}
			input := s.input(p, a.Name)
			input.Body, input.Size, input.ContentType, input.Charset = content, int64(len(content)), a.Type, a.Charset
			inputs = append(inputs, input)
		}
	}
	if len(inputs) == 0 {
		return unreadable("receive.empty", "the mail has nothing of what the location takes"), nil
	}
	return inputs, nil
}

// body gives the text of mail, in the form that is wanted where it has both.
func (s receiveSettings) body(p payload) (body *string, contentType string) {
	if p.HTML != nil && (s.Body == asHTML || p.Text == nil) {
		return p.HTML, "text/html"
	}
	return p.Text, "text/plain"
}

// readPart gives the content of an attachment, behind a savepoint.
func readPart(ctx context.Context, tx pgx.Tx, mail []byte, part string) (content []byte, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("set a savepoint: %w", err)
	}
	err = savepoint.QueryRow(ctx, "select coalesce(parley_mail.read_part($1::jsonb, $2::text), '')", string(mail), part).Scan(&content)
	if err != nil {
		return nil, errors.Join(err, savepoint.Rollback(ctx))
	}
	return content, savepoint.Commit(ctx)
}

// input makes an input with what mail says.
func (s receiveSettings) input(p payload, name string) adapter.Input {
	input := adapter.Input{Promoted: map[string]any{}, Written: map[string]any{}}
	said := map[string]string{
		"Sender": p.Sender, "Recipient": p.Recipient, "Subject": p.Subject, "MessageID": p.HeaderMessageID, "To": addresses(p.To),
		"Cc": addresses(p.Cc), "FileName": name, "InReplyTo": strings.Trim(string(p.InReplyTo), `"`), "Verdicts": string(p.Verdicts),
	}
	if len(p.From) > 0 {
		said["From"], said["FromName"] = p.From[0].Address, p.From[0].Name
	}
	for fact, value := range said {
		if value == "" || value == "null" {
			continue
		}
		value = pgdb.Storable(value)
		input.Written[namespace+fact] = value
		if property := s.Promoted[fact]; property != "" {
			input.Promoted[property] = value
		}
	}
	if name != "" {
		input.Promoted["SourceFileName"] = pgdb.Storable(name)
	}
	return input
}

func addresses(of []mailbox) string {
	texts := make([]string, len(of))
	for i, one := range of {
		texts[i] = one.Address
	}
	return strings.Join(texts, ", ")
}
