package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"

	"github.com/parley-broker/parley/internal/mail/downgrade"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/signing"
)

// maximumLeavingHeader bounds the header that is read of a message that leaves, in bytes: the most that a connector can be set to take, and
// what we add on the way.
const maximumLeavingHeader = 65 << 20

// leavingCarrier does to messages what has to be done when they leave (spec section 11.4): first the fields go in which our own nodes
// write to each other, and then DKIM signs what originates here, where there is a key of the domain in From. Another's message that only
// passes through, by forwarding or a group, gets no signature: it would say that we wrote it.
type leavingCarrier struct {
	send.Carrier
	settings func() *settings
}

// Connect opens a way on which messages leave.
func (c leavingCarrier) Connect(ctx context.Context, hop send.Hop) (send.Way, error) {
	way, err := c.Carrier.Connect(ctx, hop)
	if err != nil {
		return nil, err
	}
	used := c.settings()
	leaving := leavingWay{Way: way, keeps: used.sending.leaving[hop.Connector].keeps}
	if used.sending.leaving[hop.Connector].signs {
		leaving.keys = used.keys
	}
	return leaving, nil
}

type leavingWay struct {
	send.Way
	keeps message.Trusted
	keys  map[string][]signing.Key
}

// Send sends a message. One that cannot be signed is tried later: unsigned it would be refused as forged. One whose header is too long
// fails, as no later attempt finds it shorter.
func (w leavingWay) Send(ctx context.Context, sent send.Message) []send.Result {
	if err := w.prepare(ctx, &sent); err != nil {
		results := make([]send.Result, len(sent.Recipients))
		for i := range results {
			results[i] = send.Result{Enhanced: "4.7.0", Text: fmt.Sprintf("the message cannot be made ready to leave: %v", err)}
			if errors.Is(err, errLongHeader) {
				results[i].Class, results[i].Enhanced = send.Failed, "5.3.4"
			}
		}
		return results
	}
	return w.Way.Send(ctx, sent)
}

// prepare makes a message open as what leaves.
func (w leavingWay) prepare(ctx context.Context, sent *send.Message) error {
	if !w.Offers("8BITMIME") {
		// Before it is signed: a signature is over what is sent. A message that cannot be converted is not given to the host, which the way
		// says.
		if err := send.SevenBit(ctx, sent); err != nil && !errors.Is(err, downgrade.ErrAddress) && !errors.Is(err, downgrade.ErrStructure) {
			return err
		}
	}
	whole := sent.Open
	body, err := whole(ctx)
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	written, err := readLeavingHeader(body)
	_ = body.Close()
	if errors.Is(err, errNoHeader) {
		// A message without a header has nothing that could be taken out or signed.
		return nil
	}
	if err != nil {
		return err
	}
	header, replaced, _ := message.ParseHeader(written)
	kept := header.Firewall(w.keeps)
	if w.keeps.Organization {
		kept = kept.WithOrigin(sent.IsOriginating)
	}
	if w.keeps.Organization || len(kept) != len(header) {
		with := kept.Bytes()
		sent.Size += int64(len(with) - replaced)
		sent.Open = func(ctx context.Context) (io.ReadCloser, error) { return behind(ctx, whole, with, replaced) }
	}
	if !sent.IsOriginating {
		return nil
	}
	signatures, err := w.sign(ctx, kept, sent.Open)
	if err != nil || len(signatures) == 0 {
		return err
	}
	signed := sent.Open
	sent.Size += int64(len(signatures))
	sent.Open = func(ctx context.Context) (io.ReadCloser, error) { return behind(ctx, signed, signatures, 0) }
	return nil
}

// behind opens a message behind something, without so many of its first bytes.
func behind(ctx context.Context, open func(context.Context) (io.ReadCloser, error), first []byte, without int) (io.ReadCloser, error) {
	body, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, body, int64(without)); err != nil {
		_ = body.Close()
		return nil, fmt.Errorf("pass by its header: %w", err)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), body), body}, nil
}

// sign gives the signatures of a message, none where there is no key of its domain.
func (w leavingWay) sign(
	ctx context.Context, header message.Header, open func(context.Context) (io.ReadCloser, error),
) ([]byte, error) {
	if len(w.keys) == 0 {
		return nil, nil
	}
	var names []string
	for _, field := range header {
		names = append(names, textproto.CanonicalMIMEHeaderKey(field.Name))
	}
	authors, err := header.Authors()
	if err != nil || len(authors) != 1 || len(header.All("From")) != 1 {
		return nil, nil //nolint:nilerr // Who wrote several authors or none, or From twice, gets no signature.
	}
	keys := w.keys[message.Fold(authors[0].Domain)]
	if len(keys) == 0 {
		return nil, nil
	}
	fields, err := signing.Headers(keys, names, func() (io.ReadCloser, error) { return open(ctx) })
	if err != nil {
		return nil, fmt.Errorf("sign it: %w", err)
	}
	return fields, nil
}

var (
	errNoHeader   = errors.New("its header has no end")
	errLongHeader = fmt.Errorf("its header has more than %d bytes", maximumLeavingHeader)
)

// readLeavingHeader reads a message to the end of its header, the empty line included.
func readLeavingHeader(body io.Reader) ([]byte, error) {
	var header []byte
	piece := make([]byte, 8<<10)
	for len(header) < maximumLeavingHeader {
		n, err := body.Read(piece)
		from := max(len(header)-3, 0)
		header = append(header, piece[:n]...)
		if end := bytes.Index(header[from:], []byte("\r\n\r\n")); end >= 0 {
			return header[:from+end+4], nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errNoHeader
		}
		if err != nil {
			return nil, fmt.Errorf("read its header: %w", err)
		}
	}
	return nil, errLongHeader
}
