// Package fault says where a body or a definition is wrong, what was expected there, and what to do about it.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// A Place is a position in the bytes of a body as they arrived.
type Place struct {
	Byte   int64 `json:"byte"`   // bytes before it
	Line   int64 `json:"line"`   // from 1; 0 where it is not known
	Column int   `json:"column"` // characters, from 1; 0 where it is not known
}

// A Fault is an error with its place and its remedy.
type Fault struct { //nolint:errname // a fault is what the field of integration calls it
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`
	File     string `json:"file,omitempty"`
	Place    Place  `json:"place"`
	Number   int64  `json:"message_number,omitempty"` // of the message in its interchange, from 1
	Record   string `json:"record,omitempty"`         // path of the record in its schema
	Field    string `json:"field,omitempty"`
	Node     string `json:"node,omitempty"` // path of the node of the document that a map was treating
	Expected string `json:"expected,omitempty"`
	End      int64  `json:"end,omitempty"` // byte behind the part of the body that cannot be read, 0: the rest
	Err      error  `json:"-"`
}

func (f *Fault) Unwrap() error { return f.Err }

func (f *Fault) Error() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ": ")
	}
	switch {
	case f.Place.Line > 0 && f.Place.Column == 0:
		fmt.Fprintf(&b, "line %d: ", f.Place.Line)
	case f.Place.Line > 0:
		fmt.Fprintf(&b, "line %d, column %d (byte %d): ", f.Place.Line, f.Place.Column, f.Place.Byte)
	case f.Place.Byte > 0:
		fmt.Fprintf(&b, "byte %d: ", f.Place.Byte)
	}
	switch {
	case f.Record != "" && f.Field != "":
		fmt.Fprintf(&b, "record %s, field %s: ", f.Record, f.Field)
	case f.Record != "":
		fmt.Fprintf(&b, "record %s: ", f.Record)
	case f.Field != "":
		fmt.Fprintf(&b, "field %s: ", f.Field)
	}
	if f.Node != "" {
		b.WriteString("at " + f.Node + ": ")
	}
	b.WriteString(f.Message)
	if f.Expected != "" {
		b.WriteString("; expected " + f.Expected)
	}
	return b.String()
}

// Of finds the fault in an error.
func Of(err error) (*Fault, bool) { return errors.AsType[*Fault](err) }

// InFile adds the name of the file to a fault that has none.
func InFile(err error, name string) error {
	if f, ok := Of(err); ok && f.File == "" {
		f.File = name
	}
	return err
}
