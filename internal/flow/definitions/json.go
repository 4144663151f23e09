package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// readJSON reads the document of a file of JSON.
func readJSON(file string, written []byte, faults *faultList) []*value {
	r := &jsonReader{file: file, written: written, decoder: json.NewDecoder(bytes.NewReader(written)), faults: faults}
	r.decoder.UseNumber()
	v, err := r.read(0)
	if err == nil {
		if _, err = r.next(); errors.Is(err, io.EOF) {
			return []*value{v}
		}
		faults.add(r.place(), "write one document into a file, or use YAML", "something follows the document")
		return nil
	}
	at := r.place()
	if _, isSyntax := errors.AsType[*json.SyntaxError](err); isSyntax {
		// The decoder of tokens counts from somewhere in its buffer; reading all at once counts from the beginning.
		var all any
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(written, &all)); ok {
			at = r.placeOf(max(syntax.Offset-1, 0))
		}
	}
	if errors.Is(err, errTooDeep) {
		faults.add(at, "write it flatter", "values are nested more than %d deep", depthMax)
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	faults.add(at, "give an object of kinds, such as {\"application\": {\"Orders\": {}}}", "this is no JSON: %v", err)
	return nil
}

var errTooDeep = errors.New("too deep")

type jsonReader struct {
	file    string
	written []byte
	decoder *json.Decoder
	faults  *faultList
	start   int64 // of the last token

	// Lines and columns were counted up to here, so that each byte is gone over once.
	counted      int64
	line, column int
}

// next gives the next token, and keeps where it begins.
func (r *jsonReader) next() (json.Token, error) {
	r.start = r.decoder.InputOffset()
	for r.start < int64(len(r.written)) && strings.IndexByte(" \t\r\n,:", r.written[r.start]) >= 0 {
		r.start++
	}
	return r.decoder.Token()
}

func (r *jsonReader) place() Place { return r.placeOf(r.start) }

func (r *jsonReader) placeOf(offset int64) Place {
	offset = min(offset, int64(len(r.written)))
	if offset < r.counted || r.line == 0 {
		r.counted, r.line, r.column = 0, 1, 1
	}
	passed := r.written[r.counted:offset]
	if end := bytes.LastIndexByte(passed, '\n'); end >= 0 {
		r.line, r.column = r.line+bytes.Count(passed, []byte{'\n'}), 1
		passed = passed[end+1:]
	}
	r.counted, r.column = offset, r.column+utf8.RuneCount(passed)
	return Place{File: r.file, Line: r.line, Column: r.column}
}

func (r *jsonReader) read(depth int) (*value, error) {
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	v := &value{place: r.place()}
	if depth > depthMax {
		return nil, errTooDeep
	}
	switch token := token.(type) {
	case bool:
		v.kind, v.text = isBoolean, map[bool]string{true: "true", false: "false"}[token]
	case json.Number:
		v.kind, v.text = isNumber, token.String()
		if !number().MatchString(v.text) {
			r.faults.add(v.place, "give a smaller number", "a number has too many digits")
		}
	case string:
		v.kind, v.text = isText, token
		if strings.ContainsRune(token, 0) {
			r.faults.add(v.place, "leave it out", "a text holds the character U+0000, which PostgreSQL does not store")
		}
	case json.Delim:
		return v, r.readInside(v, token, depth)
	}
	return v, nil
}

// readInside reads what an array or an object holds, and its end.
func (r *jsonReader) readInside(v *value, begin json.Delim, depth int) error {
	v.kind = isList
	if begin == '{' {
		v.kind = isObject
	}
	for r.decoder.More() {
		if v.kind == isList {
			item, err := r.read(depth + 1)
			if err != nil {
				return err
			}
			v.items = append(v.items, item)
			continue
		}
		name, err := r.next()
		if err != nil {
			return err
		}
		place := r.place()
		content, err := r.read(depth + 1)
		if err != nil {
			return err
		}
		addMember(v, member{name.(string), place, content}, r.faults)
	}
	_, err := r.next()
	return err
}
