package pickup

import (
	"errors"
	"fmt"
	"net/netip"
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
	at := 0
	for ; at < len(header); at++ {
		field := header[at]
		value := field.Value()
		var err error
		switch strings.ToLower(field.Name) {
		case "x-sender":
			if hasSender {
				return nil, errors.New("X-Sender is given twice")
			}
			hasSender = true
			err = setSender(value, envelope)
		case "x-receiver":
			err = addReceiver(value, envelope)
		case "x-createdby":
			isOurs = value == createdBy
		case "x-helodomain":
			envelope.Helo = value
		case "x-sourceipaddress":
			envelope.Peer, err = netip.ParseAddr(value)
		case "x-directionality":
			originates = strings.EqualFold(value, message.Originating)
		case "x-source", "x-extendedmessageprops":
		case "x-endofinjectedxheaders":
			if isOurs && originates { // and behind this field nobody else's begin
				envelope.Directionality = message.Originating
			}
			at++
			return f.finishReplay(header[at:], envelope, hasSender, isOurs)
		default:
			return f.finishReplay(header[at:], envelope, hasSender, isOurs)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", field.Name, err)
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

func setSender(value string, envelope *message.Envelope) error {
	address, parameters, err := message.ParsePath(value)
	if err != nil {
		return err
	}
	if address, err = address.Canonical(); err != nil {
		return err
	}
	envelope.Sender, envelope.IsUTF8 = address.String(), envelope.IsUTF8 || !address.IsASCII()
	for parameter := range strings.FieldsSeq(parameters) {
		key, value, _ := strings.Cut(parameter, "=")
		switch strings.ToUpper(key) {
		case "BODY":
			envelope.BodyType = strings.ToUpper(value)
		case "RET":
			if envelope.Return = strings.ToUpper(value); envelope.Return != "FULL" && envelope.Return != "HDRS" {
				return errors.New("RET is FULL or HDRS")
			}
		case "ENVID":
			if envelope.EnvelopeID, err = message.ParseXText(value); err != nil {
				return fmt.Errorf("the parameter ENVID: %w", err)
			}
		case "XVERP":
			if err := envelope.AskReturnPaths(address); err != nil {
				return err
			}
		case "SMTPUTF8":
			envelope.IsUTF8 = true
		case "AUTH", "SIZE":
		default:
			return fmt.Errorf("the parameter %s is unknown", key)
		}
	}
	return nil
}

func addReceiver(value string, envelope *message.Envelope) error {
	address, parameters, err := message.ParsePath(value)
	if err != nil || address.IsNull() {
		return message.ErrAddress
	}
	if address, err = address.Canonical(); err != nil {
		return err
	}
	recipient := message.Recipient{Address: address.String()}
	envelope.IsUTF8 = envelope.IsUTF8 || !address.IsASCII()
	for parameter := range strings.FieldsSeq(parameters) {
		key, value, _ := strings.Cut(parameter, "=")
		switch strings.ToUpper(key) {
		case "NOTIFY":
			for word := range strings.SplitSeq(strings.ToUpper(value), ",") {
				if word != "NEVER" && word != "SUCCESS" && word != "FAILURE" && word != "DELAY" {
					return errors.New("NOTIFY is NEVER, or some of SUCCESS, FAILURE and DELAY")
				}
			}
			recipient.Notify = strings.ToUpper(value)
		case "ORCPT":
			if recipient.Original, err = message.ParseOriginalRecipient(value); err != nil {
				return fmt.Errorf("the parameter ORCPT: %w", err)
			}
		default:
			return fmt.Errorf("the parameter %s is unknown", key)
		}
	}
	envelope.Recipients = append(envelope.Recipients, recipient)
	return nil
}
