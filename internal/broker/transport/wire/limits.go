package wire

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Limits of the protocol. They are the same at both ends for good; what an end may choose stands in its [Hello].
const (
	MaxRuns         = 4096                       // in a batch
	MaxMessages     = 65536                      // in all runs of a batch
	MaxNames        = 16384                      // in the table of a batch
	MaxName         = 256                        // characters of a service, contract or message type
	MaxText         = 3000                       // characters of a description
	MaxTraceContext = 1024                       // bytes
	MaxSecurity     = transportstore.SecurityMax // bytes of a security header
	MaxFragment     = 1 << 20                    // bytes of a body in a fragment; transportstore.SealSize more when it is sealed
	MaxBody         = 1 << 30                    // bytes of a message
	MaxHops         = 255
	MaxFeatures     = 64
	MaxBrokers      = 10000 // in a Hello or among those that answer a batch
	MaxPriority     = 10

	// LargestPayload is the longest batch or fragment that an end takes that states nothing else, and the least that it may ask for is
	// SmallestPayload, so that a fragment always fits.
	LargestPayload  = 4 << 20
	SmallestPayload = MaxFragment + 1<<12
	// LargestHello is the longest payload before the other end has stated what it takes.
	LargestHello = 1 << 20
	// LargestAnswer is the longest payload of an answer; the results of MaxRuns runs fit.
	LargestAnswer = 4 << 20
	// FrameOverhead is how much longer than its payload a frame may be, and what each frame counts in the window besides.
	FrameOverhead = 1024
)

// ErrMalformed is in every error about a payload that does not keep to the protocol.
var ErrMalformed = errors.New("malformed frame")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// smallestRun is the length of the shortest run there can be: the conversation is 16 bytes.
const smallestRun = 18

// checkCounts refuses a message that has more of a repeated field than allowed, before room is made for them.
func checkCounts(payload []byte, most map[protowire.Number]int) error {
	counts := make(map[protowire.Number]int, len(most))
	for len(payload) > 0 {
		number, kind, n := protowire.ConsumeTag(payload)
		if n < 0 {
			return malformed("no field at the %d. byte from the end", len(payload))
		}
		payload = payload[n:]
		n = protowire.ConsumeFieldValue(number, kind, payload)
		if n < 0 {
			return malformed("field %d is cut off", number)
		}
		if limit, limited := most[number]; limited {
			counts[number]++
			if counts[number] > limit {
				return malformed("more than %d of field %d", limit, number)
			}
		}
		payload = payload[n:]
	}
	return nil
}

// decode reads a message after its counts were checked. Fields that a newer peer may have added are left out.
func decode(payload []byte, message proto.Message, most map[protowire.Number]int) error {
	if err := checkCounts(payload, most); err != nil {
		return err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(payload, message); err != nil {
		return malformed("%s", err)
	}
	return nil
}

// checkText refuses what cannot be a text of the database: a wrong encoding, a NUL, too many characters.
func checkText(what, text string, most int) error {
	switch {
	case !utf8.ValidString(text):
		return malformed("%s is not UTF-8", what)
	case strings.ContainsRune(text, 0):
		return malformed("%s has a NUL", what)
	case len(text) > most && utf8.RuneCountInString(text) > most:
		return malformed("%s has more than %d characters", what, most)
	}
	return nil
}

// checkSecurity refuses a header that is longer than any.
func checkSecurity(header []byte) error {
	if len(header) > MaxSecurity {
		return malformed("a security header of %d bytes, at most %d are taken", len(header), MaxSecurity)
	}
	return nil
}

// shortened makes any text one that passes checkText.
func shortened(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	return text
}
