package hop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Parley is the protocol of the adapter TCP of Parley, as its page says it byte by byte: requests with a number, answers with a status.
type Parley struct{}

const (
	requestHeader = 1 + 8     // kind and number, and for a keyed request the key behind it
	answerHeader  = 1 + 8 + 8 // status, number of the request, number of the message
	keyedRequest  = 2
	lengthBytes   = 4
)

// errRefused is the error of a body that was not taken.
var errRefused = errors.New("the engine did not take the body")

// WriteBody writes a request without a key in one call.
func (Parley) WriteBody(w io.Writer, body []byte) error {
	frame := make([]byte, 0, lengthBytes+requestHeader+len(body))
	frame = binary.BigEndian.AppendUint32(frame, uint32(requestHeader+len(body)))
	frame = append(frame, 1)
	frame = binary.BigEndian.AppendUint64(frame, 1)
	_, err := w.Write(append(frame, body...))
	return err
}

// ReadAcknowledgement reads an answer.
func (Parley) ReadAcknowledgement(r io.Reader) error {
	frame, _, err := Lengths{}.ReadBody(r, nil)
	if err != nil {
		return err
	}
	if len(frame) < answerHeader {
		return fmt.Errorf("an answer of %d bytes is no answer", len(frame))
	}
	if frame[0] != 0 {
		return fmt.Errorf("%w: status %d, %s", errRefused, frame[0], frame[answerHeader:])
	}
	return nil
}

// ReadBody reads a request, and answers that it is taken.
func (Parley) ReadBody(r io.Reader, buffer []byte) (body []byte, answer []byte, err error) {
	frame, _, err := Lengths{}.ReadBody(r, buffer)
	if err != nil {
		return nil, nil, err
	}
	if len(frame) < requestHeader {
		return nil, nil, fmt.Errorf("a request of %d bytes is no request", len(frame))
	}
	body = frame[requestHeader:]
	if frame[0] == keyedRequest {
		if len(body) < 2 || len(body)-2 < int(binary.BigEndian.Uint16(body)) {
			return nil, nil, errors.New("the key of a request ends behind it")
		}
		body = body[2+int(binary.BigEndian.Uint16(body)):]
	}
	answer = binary.BigEndian.AppendUint32(make([]byte, 0, lengthBytes+answerHeader), answerHeader)
	answer = append(answer, 0)
	answer = append(answer, frame[1:requestHeader]...)
	return body, binary.BigEndian.AppendUint64(answer, 0), nil
}
