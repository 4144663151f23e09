package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// A frame is a length, big-endian, and as many bytes. With the framing length they are a request or an answer:
//
//	request  1 byte  kind: 1 without a key, 2 with one
//	         8 bytes number of the request, big-endian, chosen by the client
//	         2 bytes of kind 2: how many bytes the key has, big-endian, and the key, UTF-8
//	         the rest is the body
//	answer   1 byte  status
//	         8 bytes number of the request
//	         8 bytes number of the message, 0 for none
//	         the rest is why, UTF-8
const (
	kindMessage      = 1
	kindKeyedMessage = 2

	requestHeader = 9
	answerHeader  = 17
	longestKey    = 1000
	longestWhy    = 1000
)

// status is the end of a request.
type status byte

// The statuses. A client sends again only what is not taken.
const (
	published status = 0 // taken, and stored for good
	repeated  status = 1 // taken before, under its key
	suspended status = 2 // taken, and an operator has to mend it
	notTaken  status = 3 // not now: send it again
	refused   status = 4 // never: do not send it again as it is
)

// request is a message on a connection.
type request struct {
	id   uint64
	key  string
	body []byte
}

// answer says how a request ended.
type answer struct {
	status  status
	id      uint64
	message int64
	why     string
}

// errTooLarge is a frame that is longer than it may be.
var errTooLarge = errors.New("the frame is too long")

// readLength reads the length of a frame.
func readLength(r *bufio.Reader, prefix int) (uint64, error) {
	bytes, err := r.Peek(prefix)
	if err != nil {
		if len(bytes) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	var length uint64
	for _, b := range bytes {
		length = length<<8 | uint64(b)
	}
	_, err = r.Discard(prefix)
	return length, err
}

// atOnce is how much memory is asked for before the first byte of a frame has come.
const atOnce = 64 << 10

// readBytes reads as many bytes. A client that announces many and sends none gets no memory for it.
func readBytes(r *bufio.Reader, length int) ([]byte, error) {
	bytes := make([]byte, 0, min(length, atOnce))
	for len(bytes) < length {
		if len(bytes) == cap(bytes) {
			larger := make([]byte, len(bytes), min(length, 2*cap(bytes)))
			copy(larger, bytes)
			bytes = larger
		}
		n, err := io.ReadFull(r, bytes[len(bytes):cap(bytes)])
		bytes = bytes[:len(bytes)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return bytes, nil
}

// parseRequest takes a request apart. The id is that of the request where it has one, also with an error.
func parseRequest(frame []byte) (request, error) {
	var q request
	if len(frame) < requestHeader {
		return q, fmt.Errorf("a request has %d bytes before its body, and this one %d in all", requestHeader, len(frame))
	}
	q.id = binary.BigEndian.Uint64(frame[1:])
	rest := frame[requestHeader:]
	switch frame[0] {
	case kindMessage:
	case kindKeyedMessage:
		if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) {
			return q, errors.New("the key of a request ends behind it")
		}
		length := int(binary.BigEndian.Uint16(rest))
		q.key, rest = string(rest[2:2+length]), rest[2+length:]
		if err := checkKey(q.key); err != nil {
			return q, err
		}
	default:
		return q, fmt.Errorf("a request is of the kind %d or %d, and this one of %d", kindMessage, kindKeyedMessage, frame[0])
	}
	q.body = rest
	return q, nil
}

func checkKey(key string) error {
	if key == "" || len(key) > longestKey || !utf8.ValidString(key) || hasZero(key) {
		return fmt.Errorf("a key is a text of 1 to %d bytes, UTF-8 without characters 0", longestKey)
	}
	return nil
}

func hasZero(text string) bool {
	for i := range len(text) {
		if text[i] == 0 {
			return true
		}
	}
	return false
}

// appendLength appends the length of a frame.
func appendLength(to []byte, prefix int, length uint64) []byte {
	for n := prefix - 1; n >= 0; n-- {
		to = append(to, byte(length>>(8*n)))
	}
	return to
}

// appendRequest appends a request without its body, of which it is told the length.
func appendRequest(to []byte, prefix int, q request, body int) []byte {
	length := requestHeader + body
	kind := byte(kindMessage)
	if q.key != "" {
		length += 2 + len(q.key)
		kind = kindKeyedMessage
	}
	to = appendLength(to, prefix, uint64(length))
	to = append(to, kind)
	to = binary.BigEndian.AppendUint64(to, q.id)
	if q.key != "" {
		to = binary.BigEndian.AppendUint16(to, uint16(len(q.key)))
		to = append(to, q.key...)
	}
	return to
}

// appendAnswer appends an answer as a frame.
func appendAnswer(to []byte, prefix int, a answer) []byte {
	why := a.why
	if limit := min(longestWhy, maxLength(prefix)-answerHeader); len(why) > limit {
		for why = why[:limit]; !utf8.ValidString(why); {
			why = why[:len(why)-1]
		}
	}
	to = appendLength(to, prefix, uint64(answerHeader+len(why)))
	to = append(to, byte(a.status))
	to = binary.BigEndian.AppendUint64(to, a.id)
	to = binary.BigEndian.AppendUint64(to, uint64(a.message))
	return append(to, why...)
}

// parseAnswer takes an answer apart.
func parseAnswer(frame []byte) (answer, error) {
	if len(frame) < answerHeader || frame[0] > byte(refused) {
		return answer{}, errors.New("the answer is not one of the protocol: it is too short, or its status is not known")
	}
	return answer{
		status: status(frame[0]), id: binary.BigEndian.Uint64(frame[1:]), message: int64(binary.BigEndian.Uint64(frame[9:])),
		why: string(frame[answerHeader:]),
	}, nil
}

// maxLength is how long a frame can be by the size of its length.
func maxLength(prefix int) int {
	if prefix == 2 {
		return 1<<16 - 1
	}
	return 1<<31 - 1
}

// readLine reads a line without its end, which is a newline, or a carriage return and a newline.
func readLine(r *bufio.Reader, longest int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > longest+2 {
			return nil, errTooLarge
		}
		line = append(line, part...)
		switch {
		case err == nil:
			line = line[:len(line)-1]
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
			if len(line) > longest {
				return nil, errTooLarge
			}
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil // the last one may have no end
		default:
			return nil, err
		}
	}
}
