package server

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/report"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// unreadableOriginal stands for a message that a report cannot return.
const unreadableOriginal = "Comments: the message cannot be read any more\r\n\r\n"

// makeReports makes the delivery reports that are due, each in one transaction with the removal of what it is about.
func (s *Server) makeReports(ctx context.Context) (made int, err error) {
	for ctx.Err() == nil {
		var found bool
		var action string
		err := pgx.BeginFunc(ctx, s.config.Pool, func(tx pgx.Tx) error {
			due, err := mailstore.DueReport(ctx, tx)
			if err != nil || due == nil {
				return err
			}
			found, action = true, due.Action
			return s.makeReport(ctx, tx, due)
		})
		if err != nil {
			return made, fmt.Errorf("make a delivery report: %w", err)
		}
		if !found {
			return made, nil
		}
		s.tally.reported(action)
		made++
	}
	return made, nil
}

func (s *Server) makeReport(ctx context.Context, tx pgx.Tx, due *mailstore.Report) error {
	settings := s.settings.Load()
	now := time.Now()
	id := message.NewNetworkMessageID(now)
	original := s.deliveries.open(ctx, mailstore.Claimed{Body: due.Body, Content: due.Content, BodyHolder: due.BodyHolder})
	defer func() { _ = original.Close() }()
	written := report.Report{
		Action: report.Action(strings.ToLower(due.Action)), ReportingMTA: settings.fqdn, Postmaster: settings.postmaster, To: due.Sender,
		EnvelopeID: due.EnvelopeID, ReceivedFrom: due.Helo, Arrived: due.ReceivedAt, Date: now, MessageID: id + "@" + settings.fqdn,
		Original:    original,
		HeadersOnly: !due.IsWhole,
	}
	for i, address := range due.Addresses {
		recipient := report.Recipient{
			Final: address, Original: due.Originals[i], Status: due.Statuses[i], Text: due.Texts[i], Remote: due.Hosts[i],
			Code: int(due.Codes[i]), LogID: due.NetworkMessageID,
		}
		if due.AttemptedAt[i] != nil {
			recipient.LastAttempt = *due.AttemptedAt[i]
		}
		if due.Action == "DELAYED" {
			recipient.RetryUntil = due.ExpiresAt
		}
		written.Recipients = append(written.Recipients, recipient)
	}
	var body bytes.Buffer
	if err := written.Write(&body); isIncomplete(err) || isGone(err) {
		// Its sender is informed all the same, and the reports behind it are not held up.
		s.config.Logger.Error("a message that is reported cannot be read; its report goes without it", "message", due.MessageID, "error", err)
		body.Reset()
		written.HeadersOnly, written.Original = true, strings.NewReader(unreadableOriginal)
		err = written.Write(&body)
		if err != nil {
			return fmt.Errorf("write it: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	recipients := []message.Recipient{{Address: due.Sender}}
	if !strings.EqualFold(due.Sender, settings.postmaster) &&
		slices.ContainsFunc(due.Statuses, func(status string) bool { return slices.Contains(settings.reportCopies, status) }) {
		recipients = append(recipients, message.Recipient{Address: settings.postmaster})
	}
	_, err := mailstore.Accept(ctx, tx, []mailstore.Arriving{{
		Envelope: message.Envelope{
			NetworkMessageID: id, HeaderMessageID: "<" + written.MessageID + ">", Subject: "delivery report", Recipients: recipients,
			BodyType: "8BITMIME", ReceivedAt: now, Source: message.SourceReport, ParentMessageID: due.MessageID,
			Directionality: message.Originating,
		},
		Size: int64(body.Len()), Body: body.Bytes(),
	}})
	if err != nil {
		return fmt.Errorf("accept it: %w", err)
	}
	if err := mailstore.FinishReport(ctx, tx, due.MessageID); err != nil {
		return fmt.Errorf("finish it: %w", err)
	}
	return nil
}
