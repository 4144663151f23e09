package send

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/mail/downgrade"
)

// need sets what a host must know to be given a message. A client's statement about the message counts only as far as it is so: many say
// 8BITMIME or SMTPUTF8 of all that they send, and some of nothing. A host that knows both extensions is not worth reading the message.
func (c *Connection) need(ctx context.Context, message *Message) error {
	isUTF8 := !ascii(message.Sender)
	if c.offers("SMTPUTF8") { // Elsewhere recipients who need it are left out.
		for _, recipient := range message.Recipients {
			isUTF8 = isUTF8 || !ascii(recipient.Address)
		}
	}
	message.UTF8 = message.UTF8 || isUTF8
	isRead := !c.offers("8BITMIME") || message.UTF8 && !isUTF8 && !c.offers("SMTPUTF8")
	if !isRead || message.Open == nil {
		return nil
	}
	header, body, err := beyondASCII(ctx, *message)
	if err != nil {
		return err
	}
	message.EightBit = header || body
	message.UTF8 = isUTF8 || message.UTF8 && header
	return nil
}

// SevenBit makes a message one without bytes above 127, for a host that does not know 8BITMIME: parts that have some become
// quoted-printable, and words of the header encoded words. It fails with the errors of package downgrade where that cannot be; a message
// whose client has asked for SMTPUTF8 is left as it is where its header is not in ASCII. A caller that signs a message calls it before.
func SevenBit(ctx context.Context, message *Message) error {
	header, body, err := beyondASCII(ctx, *message)
	if err != nil || !header && !body {
		message.EightBit = message.EightBit && err != nil
		return err
	}
	if header && message.UTF8 {
		return nil
	}
	open := message.Open
	plan, err := downgrade.NewPlan(func() (io.ReadCloser, error) { return open(ctx) })
	if err != nil {
		return fmt.Errorf("make it one of 7 bits: %w", err)
	}
	message.EightBit, message.Size = false, plan.Size
	message.Open = func(ctx context.Context) (io.ReadCloser, error) {
		source, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{plan.Reader(source), source}, nil
	}
	return nil
}

// beyondASCII reports whether the header of a message and its body have bytes above 127.
func beyondASCII(ctx context.Context, message Message) (header, body bool, err error) {
	opened, err := message.Open(ctx)
	if err != nil {
		return false, false, fmt.Errorf("%s: %w", readFailed, err)
	}
	defer func() { _ = opened.Close() }()
	reader := bufio.NewReaderSize(opened, bodyPiece)
	isBody, isLineStart := false, true
	for {
		line, err := reader.ReadSlice('\n')
		isBody = isBody || isLineStart && string(line) == "\r\n"
		isLineStart = !errors.Is(err, bufio.ErrBufferFull)
		if !ascii(line) {
			if isBody {
				return header, true, nil
			}
			header = true
		}
		switch {
		case errors.Is(err, io.EOF):
			return header, false, nil
		case err != nil && isLineStart:
			return false, false, fmt.Errorf("%s: %w", readFailed, err)
		}
	}
}

func ascii[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] > 0x7f {
			return false
		}
	}
	return true
}
