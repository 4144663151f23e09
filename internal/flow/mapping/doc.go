// Package mapping transforms messages by maps: stylesheets of XSLT, programs of jq, and functions of the database.
//
// Stylesheets and programs run in processes of their own, which are bounded in memory, time and output, open no file and no connection, and
// are replaced when they die. So a document that is made to harm costs its own message only.
package mapping

import (
	"context"
	"io"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Languages of maps.
const (
	XSLT = "xslt"
	JQ   = "jq"
	SQL  = "sql"
)

// An Input is a message, or a part of one, that a map reads.
type Input struct {
	// Open gives the body from its beginning, each time.
	Open func(ctx context.Context) (io.ReadCloser, error)
	Size int64 // bytes, -1 where it is not known
	// Charset says that the body is in UTF-8 whatever its declaration says, where it is utf-8; otherwise the body says it itself.
	Charset string
}

// An Output is what a map makes of its inputs. Its receiver closes the body.
type Output struct {
	Body        *Body
	Type        string // the target of the map, empty where it names none
	ContentType string
	Charset     string
}

// A Place is a transaction in which functions of the database are called, with the rights of a role; empty: those of its login.
type Place struct {
	Tx   adapter.Transaction
	Role string
}
