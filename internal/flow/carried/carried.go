// Package carried has files whose texts definitions carry: a schema or a program, and the files that it names, so that each host has them
// and versions are in the database.
package carried

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// BytesMost bounds the text of a file with all the files that it names, in bytes.
const BytesMost = 4 << 20

// ErrNotCarried is in the chain of errors of files whose text is not in the definition.
var ErrNotCarried = errors.New("the definition does not carry the file")

// A Kind is what a file is, in the words of faults.
type Kind struct {
	Name     string // schema
	Give     string // how one names its file: give {"file": "schemas/order.xsd"}
	LeaveOut string // what may be left out of one that is too long: what messages do not need
}

// Check says why a file cannot be used as it stands in a definition, with the texts that it carries by their paths.
func Check(kind Kind, file string, documents map[string]string) *fault.Fault {
	size := 0
	for name, document := range documents {
		size += len(document)
		if !fs.ValidPath(name) {
			return &fault.Fault{
				Message: fmt.Sprintf("the path of document %q leads out of the folder of definitions", name),
				Remedy:  "put the file into the folder, or into one in it",
			}
		}
	}
	_, isCarried := documents[path.Clean(file)]
	switch {
	case file == "":
		return &fault.Fault{Message: "the " + kind.Name + " names no file", Remedy: kind.Give}
	case !isCarried:
		return &fault.Fault{
			Message: fmt.Sprintf("the text of %s %s is not in the definition", kind.Name, file), Err: ErrNotCarried,
			Remedy: "apply by parley flow apply, which reads it beside the definitions, or give documents",
		}
	case size > BytesMost:
		return &fault.Fault{
			Message:  fmt.Sprintf("%s %s and the files that it names have %d bytes", kind.Name, file, size),
			Expected: fmt.Sprintf("at most %d", BytesMost), Remedy: "leave out " + kind.LeaveOut,
		}
	}
	return nil
}
