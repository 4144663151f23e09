package jsonbody

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// CheckPath says why a path is no JSON Pointer that leads below the root.
func CheckPath(path string) *fault.Fault {
	if !strings.HasPrefix(path, "/") {
		return &fault.Fault{
			Message: fmt.Sprintf("the path %q is no JSON Pointer", path),
			Remedy:  fmt.Sprintf("write instead /%s", strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(path, "$"), "."), ".", "/")),
		}
	}
	return nil
}

// below makes a message of each member of the array to which the steps lead. The document around the array is only read.
func (s *splitter) below(ctx context.Context, steps []string) error {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, step := range steps {
		if err := s.step(unescape.Replace(step)); err != nil {
			return err
		}
	}
	if token, err := s.decoder.Token(); err != nil {
		return s.broken(err)
	} else if token != json.Delim('[') {
		return s.astray(s.Path + " is no array")
	}
	for s.decoder.More() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var raw json.RawMessage
		if err := s.decoder.Decode(&raw); err != nil {
			return s.broken(err)
		}
		if err := s.message(raw); err != nil {
			return err
		}
		s.counted.allowed = s.counted.read + int64(s.MostBytes)
	}
	return s.rest(len(steps))
}

// step goes into the member of the object that begins here.
func (s *splitter) step(name string) error {
	token, err := s.decoder.Token()
	switch {
	case err != nil:
		return s.broken(err)
	case token != json.Delim('{'):
		return s.astray(fmt.Sprintf("%q is no member of an object", name))
	}
	for s.decoder.More() {
		key, err := s.decoder.Token()
		if err != nil {
			return s.broken(err)
		}
		if key == name {
			return nil
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
	return s.astray(fmt.Sprintf("there is no member %q", name))
}

// skip reads a value.
func (s *splitter) skip() error {
	depth := 0
	for {
		token, err := s.decoder.Token()
		if err != nil {
			return s.broken(err)
		}
		s.counted.allowed = s.counted.read + int64(s.MostBytes)
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// rest reads the document to its end, from the end of the array on.
func (s *splitter) rest(depth int) error {
	if _, err := s.decoder.Token(); err != nil {
		return s.broken(err)
	}
	for ; depth > 0; depth-- {
		for s.decoder.More() {
			if _, err := s.decoder.Token(); err != nil {
				return s.broken(err)
			}
			if err := s.skip(); err != nil {
				return err
			}
		}
		if _, err := s.decoder.Token(); err != nil {
			return s.broken(err)
		}
	}
	if _, err := s.decoder.Token(); !errors.Is(err, io.EOF) {
		return s.astray("something follows the document")
	}
	return nil
}

func (s *splitter) astray(message string) error {
	return &fault.Fault{
		Message: message, Expected: "an array at " + s.Path, Place: fault.Place{Byte: s.decoder.InputOffset()},
		Remedy: "send a document that has it, or correct the path of the messages",
	}
}
