package parts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
)

type jsonReader struct {
	*Document
	decoder *json.Decoder
}

func (d *Document) readJSON() error {
	if !utf8.Valid(d.source) {
		return &fault.Fault{Message: "the body is neither XML nor JSON in UTF-8", Remedy: "send XML or JSON"}
	}
	r := jsonReader{d, json.NewDecoder(bytes.NewReader(d.source))}
	r.decoder.UseNumber()
	err := r.value(0, 0)
	if err == nil {
		if _, err = r.decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("there is more behind the value")
	}
	return &fault.Fault{
		Message: fmt.Sprintf("the body is neither XML nor JSON: %v", err), Remedy: "send XML or JSON", Err: err,
		Place: fault.Place{Byte: r.decoder.InputOffset()},
	}
}

// begin gives where the next token begins.
func (r jsonReader) begin() int32 {
	at := int(r.decoder.InputOffset())
	for at < len(r.source) && strings.IndexByte(" \t\r\n,:", r.source[at]) >= 0 {
		at++
	}
	return int32(at)
}

// value reads a value into the node that stands for it.
func (r jsonReader) value(at int32, depth int) error {
	if depth > depthMax {
		return errDeep
	}
	start := r.begin()
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	r.nodes[at].start = start
	delimiter, isDelimiter := token.(json.Delim)
	if isDelimiter {
		err = r.members(at, delimiter == '[', depth)
	} else if text, isScalar := scalar(token); isScalar {
		r.add(node{kind: isText, parent: at, start: start, end: int32(r.decoder.InputOffset()), value: text})
	}
	r.nodes[at].end = int32(r.decoder.InputOffset())
	return err
}

func scalar(token json.Token) (string, bool) {
	switch t := token.(type) {
	case string:
		return t, true
	case json.Number:
		return t.String(), true
	case bool:
		return fmt.Sprint(t), true
	}
	return "", false
}

func (r jsonReader) members(at int32, isList bool, depth int) error {
	r.nodes[at].isList, r.nodes[at].isObject = isList, !isList
	for r.decoder.More() {
		child := node{kind: isElement, parent: at, local: "item", member: r.begin()}
		if !isList {
			key, err := r.decoder.Token()
			if err != nil {
				return err
			}
			child.local, _ = key.(string) // the decoder gives no other
		}
		if err := r.value(r.add(child), depth+1); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return err
}

// Quote writes a text as a string of JSON.
func Quote(text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can always be written
	return bytes.TrimSpace(b.Bytes())
}
