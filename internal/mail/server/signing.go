package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"net/textproto"
	"strings"

	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/signing"
)

// maximumSignedHeader bounds the header that is read to sign a message, in bytes.
const maximumSignedHeader = 256 << 10

// signingCarrier signs with DKIM what a carrier takes, where there is a key of the domain in From and the connector says so.
type signingCarrier struct {
	send.Carrier
	settings func() *settings
}

// Connect opens a way on which messages are signed.
func (c signingCarrier) Connect(ctx context.Context, hop send.Hop) (send.Way, error) {
	way, err := c.Carrier.Connect(ctx, hop)
	if err != nil {
		return nil, err //nolint:wrapcheck // The dispatcher needs the error as it is.
	}
	used := c.settings()
	if !used.signs[hop.Connector] || len(used.keys) == 0 {
		return way, nil
	}
	return signingWay{Way: way, keys: used.keys}, nil
}

// signingWay signs each message before it goes its way.
type signingWay struct {
	send.Way
	keys map[string][]signing.Key
}

// Send sends a message behind its signatures. A message that cannot be signed is tried later: unsigned it would be refused as forged.
func (w signingWay) Send(ctx context.Context, message send.Message) []send.Result {
	fields, err := w.sign(ctx, message)
	if err != nil {
		results := make([]send.Result, len(message.Recipients))
		for i := range results {
			results[i] = send.Result{Enhanced: "4.7.0", Text: fmt.Sprintf("the message cannot be signed: %v", err)}
		}
		return results
	}
	if len(fields) == 0 {
		return w.Way.Send(ctx, message)
	}
	open := message.Open
	message.Size += int64(len(fields))
	message.Open = func(ctx context.Context) (io.ReadCloser, error) {
		body, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(fields), body), body}, nil
	}
	return w.Way.Send(ctx, message)
}

// sign gives the signatures of a message, none where there is no key of its domain.
func (w signingWay) sign(ctx context.Context, message send.Message) ([]byte, error) {
	body, err := message.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	names, from, err := readHeader(body)
	_ = body.Close()
	if err != nil {
		return nil, err
	}
	address, err := mail.ParseAddress(from)
	if err != nil {
		return nil, nil //nolint:nilerr // Who wrote several authors or none gets no signature.
	}
	_, domain, _ := strings.Cut(address.Address, "@")
	keys := w.keys[strings.ToLower(domain)]
	if len(keys) == 0 {
		return nil, nil
	}
	fields, err := signing.Headers(keys, names, func() (io.ReadCloser, error) { return message.Open(ctx) })
	if err != nil {
		return nil, fmt.Errorf("sign it: %w", err)
	}
	return fields, nil
}

// readHeader gives the names of the fields of a header, each as often as it occurs, and the value of From.
func readHeader(body io.Reader) (names []string, from string, err error) {
	header, err := io.ReadAll(io.LimitReader(body, maximumSignedHeader))
	if err != nil {
		return nil, "", fmt.Errorf("read its header: %w", err)
	}
	header, _, found := bytes.Cut(header, []byte("\r\n\r\n"))
	if !found {
		return nil, "", errors.New("its header has no end, or is too long")
	}
	for line := range strings.SplitSeq(string(header), "\r\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if len(names) > 0 && names[len(names)-1] == "From" {
				from += line
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		if names[len(names)-1] == "From" {
			from = value
		}
	}
	return names, from, nil
}
