package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
	"github.com/parley-broker/parley/internal/flow/adapter/service"
	"github.com/parley-broker/parley/internal/pgdb"
)

// bodyBytesMax bounds the body of a message, which is in memory. Mail transport has a limit of its own.
const bodyBytesMax = 64 << 20

// sender submits messages to mail transport.
type sender struct {
	adapter.Endpoint
	letter letter
}

var _ adapter.TransactionSender = (*sender)(nil)

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	l, problems := readSend(e.Address, e.Settings)
	if err := asError(problems); err != nil {
		return nil, err
	}
	return &sender{e, l}, nil
}

// InTransaction is always true: mail transport is in the database of the host.
func (s *sender) InTransaction() bool { return true }

// Close has nothing to give back.
func (s *sender) Close() error { return nil }

// Send submits messages in a transaction of its own.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	var deliveries []adapter.Delivery
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		deliveries, err = s.SendIn(ctx, tx, messages)
		return err
	})
	if err == nil {
		return deliveries
	}
	deliveries = make([]adapter.Delivery, len(messages))
	for i := range deliveries {
		deliveries[i].Err = service.Judge(err)
	}
	return deliveries
}

// SendIn submits messages in a transaction, each behind a savepoint, with the rights of the role of the host.
func (s *sender) SendIn(ctx context.Context, tx adapter.Transaction, messages []*adapter.Message) ([]adapter.Delivery, error) {
	deliveries := make([]adapter.Delivery, len(messages))
	back, err := s.AsRole(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		w, err := s.write(ctx, m)
		if err != nil {
			deliveries[i].Err = err
			continue
		}
		savepoint, err := tx.Begin(ctx)
		if err != nil {
			return nil, fmt.Errorf("set a savepoint: %w", err)
		}
		number, refused := w.submit(ctx, savepoint)
		switch {
		case refused == nil:
			err = savepoint.Commit(ctx)
		case service.Broken(ctx, refused):
			return nil, refused
		default:
			err = savepoint.Rollback(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("end the savepoint: %w", errors.Join(err, refused))
		}
		if refused != nil {
			deliveries[i].Err = s.judge(refused)
			continue
		}
		if deliveries[i].Detail, err = json.Marshal(map[string]any{"mail": number, "recipients": w.recipients}); err != nil {
			return nil, err
		}
	}
	return deliveries, back(ctx)
}

// judge says what follows an error of mail transport. A message is to blame for what is not as mail asks for, and for a sender that it has
// named itself; otherwise the port is.
func (s *sender) judge(err error) error {
	switch state := pgdb.SQLState(err); {
	case state == "PM010", state == "PM012", state == "PM001" && s.letter.from.HasMacros():
		return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
	default:
		return service.Judge(err)
	}
}

// written is a message as mail.
type written struct {
	from, subject string
	text, html    *string
	recipients    []string
	headers       json.RawMessage
	fileName      *string
	content       []byte
	contentType   *string
}

// write makes mail of a message.
func (s *sender) write(ctx context.Context, m *adapter.Message) (*written, error) {
	l := s.letter
	var missing []string
	value := func(t filename.Template, isGood func(string) bool) string {
		text, without := t.Text(m, isGood)
		if without != "" {
			missing = append(missing, without)
		}
		return text
	}
	values := func(templates []filename.Template) []string {
		texts := make([]string, len(templates))
		for i, t := range templates {
			texts[i] = value(t, isOneAddress)
		}
		return texts
	}
	to, cc, bcc := values(l.to), values(l.cc), values(l.bcc)
	w := &written{from: value(l.from, isOneAddress), subject: value(l.subject, nil), recipients: slices.Concat(to, cc, bcc)}
	headers := map[string]string{"To": strings.Join(to, ", ")}
	if len(cc) > 0 {
		headers["Cc"] = strings.Join(cc, ", ")
	}
	var err error
	if w.headers, err = json.Marshal(headers); err != nil {
		return nil, err
	}
	body, err := read(ctx, m)
	if err != nil {
		return nil, err
	}
	if l.settings.Content == asAttachment {
		text := value(l.text, nil)
		w.text, w.content = &text, body
		name, err := l.fileName.Name(m)
		if err != nil {
			return nil, err
		}
		w.fileName = &name
		contentType := l.settings.ContentType
		if contentType == "" {
			contentType = m.ContentType
		}
		if contentType != "" {
			w.contentType = &contentType
		}
	} else {
		if !utf8.Valid(body) || bytes.ContainsRune(body, 0) {
			return nil, filename.Refused("the message is no text in UTF-8, and cannot be the text of mail; let content be attachment")
		}
		text := string(body)
		if l.settings.Content == asHTML {
			w.html = &text
		} else {
			w.text = &text
		}
	}
	if len(missing) > 0 {
		return nil, filename.Refused(
			"the message has no value for %%%s%% of its mail, or one that is no single address; send it by another port", missing[0])
	}
	return w, nil
}

// isOneAddress reports whether a value can stand in an address, and begins no other one.
func isOneAddress(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool {
		return strings.ContainsRune(",;:<>()[]\"\\", r) || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}) && strings.Count(value, "@") <= 1
}

func read(ctx context.Context, m *adapter.Message) ([]byte, error) {
	opened, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(opened, bodyBytesMax+1))
	if err := errors.Join(err, opened.Close()); err != nil {
		return nil, err
	}
	if len(body) > bodyBytesMax {
		return nil, filename.Refused("the body has more than %d bytes, and does not go by mail", bodyBytesMax)
	}
	return body, nil
}

// submit submits mail, and gives its number.
func (w *written) submit(ctx context.Context, tx pgx.Tx) (number int64, err error) {
	err = tx.QueryRow(ctx, `
		select parley_mail.send(
			sender => $1::text, recipients => $2::text[], subject => $3::text, text => $4::text, html => $5::text, headers => $6::jsonb,
			attachments => case when $7::text is not null
				then array[parley_mail.attachment(filename => $7::text, content => $8::bytea, content_type => $9::text)] end
		)`, w.from, w.recipients, w.subject, w.text, w.html, w.headers, w.fileName, w.content, w.contentType).Scan(&number)
	if err != nil {
		return 0, fmt.Errorf("submit mail: %w", err)
	}
	return number, nil
}
