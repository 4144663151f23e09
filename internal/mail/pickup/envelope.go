package pickup

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
)

// envelope gives the envelope of a file, and the header as it is stored.
func (f *Folder) envelope(header message.Header) (message.Envelope, message.Header, error) {
	now := time.Now()
	envelope := message.Envelope{
		NetworkMessageID: message.NewNetworkMessageID(now), ReceivedAt: now, Source: message.SourcePickup, Connector: "pickup",
		Directionality: message.Originating,
	}
	var err error
	if f.IsReplay {
		envelope.Source, envelope.Connector = message.SourceReplay, "replay"
		// The file of a program that does not say it may be a message of anybody.
		envelope.Directionality = message.Incoming
		header, err = f.replayed(header, &envelope)
	} else {
		header, err = f.picked(header, &envelope, now)
	}
	if err != nil {
		return message.Envelope{}, nil, err
	}
	if f.Recipients > 0 && len(envelope.Recipients) > f.Recipients {
		envelope.Refusal = message.Refusal{
			Status: "5.5.3", Text: fmt.Sprintf("the message has %d recipients, at most %d are taken", len(envelope.Recipients), f.Recipients),
		}
	}
	envelope.HeaderMessageID, envelope.Subject = header.MessageID(), header.Value("Subject")
	envelope.Priority = message.PriorityOf(header)
	trace := message.Trace{By: f.FQDN, With: strings.ToLower(envelope.Source), ID: envelope.NetworkMessageID, At: now}
	return envelope, append(message.Header{trace.Field()}, header...), nil
}

// picked reads the envelope of a message out of its header.
func (f *Folder) picked(header message.Header, envelope *message.Envelope, now time.Time) (message.Header, error) {
	sender, recipients, err := header.Addressees(0) // as many as the header has room for: each is reported
	if err != nil {
		return nil, err
	}
	envelope.Sender = sender.String()
	for _, recipient := range recipients {
		envelope.Recipients = append(envelope.Recipients, message.Recipient{Address: recipient.String()})
	}
	header = header.Submitted(f.FQDN, f.Names, now)
	envelope.IsUTF8 = header.IsUTF8(append(recipients, sender)...)
	return header, nil
}

// createdBy is how we sign the files that we export: their internal fields are ours.
const createdBy = "Parley"

// replayed reads the envelope out of the fields before the header proper, and takes them off.
func (f *Folder) replayed(header message.Header, envelope *message.Envelope) (message.Header, error) {
	hasSender, isOurs, originates := false, false, false
	for at, field := range header {
		value := field.Value()
		switch name := strings.ToLower(field.Name); name {
		case "x-createdby":
			isOurs = value == createdBy
		case "x-directionality":
			originates = strings.EqualFold(value, message.Originating)
		case "x-source", "x-extendedmessageprops":
		case "x-endofinjectedxheaders":
			if isOurs && originates { // and behind this field nobody else's begin
				envelope.Directionality = message.Originating
			}
			return f.finishReplay(header[at+1:], envelope, hasSender, isOurs)
		default:
			if name == "x-sender" && hasSender {
				return nil, errors.New("X-Sender is given twice")
			}
			hasSender = hasSender || name == "x-sender"
			isOfEnvelope, err := envelope.ReadField(name, value)
			if err != nil {
				return nil, fmt.Errorf("field %s: %w", field.Name, err)
			}
			if !isOfEnvelope {
				return f.finishReplay(header[at:], envelope, hasSender, isOurs)
			}
		}
	}
	return f.finishReplay(nil, envelope, hasSender, isOurs)
}

func (f *Folder) finishReplay(header message.Header, envelope *message.Envelope, hasSender, isOurs bool) (message.Header, error) {
	if !hasSender || len(envelope.Recipients) == 0 {
		return nil, errors.New("a file to replay begins with one X-Sender and with X-Receiver for each recipient")
	}
	envelope.IsUTF8 = envelope.IsUTF8 || header.IsUTF8()
	if !isOurs { // what we have exported says what we had verified
		header = header.WithoutResults(f.FQDN).WithoutResults(f.Names...)
	}
	return header.Firewall(message.Trusted{Routing: true, Organization: isOurs, Forest: isOurs}), nil
}
