package send

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// need sets what a host must know to be given a message. What a client said of the message counts only as far as it is so: many say
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
