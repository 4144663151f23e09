package runner

import (
	"github.com/parley-broker/parley/internal/tsql/broker"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/database"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/module"
	"github.com/parley-broker/parley/internal/tsql/security"
	"github.com/parley-broker/parley/internal/tsql/translator"
	"github.com/parley-broker/parley/schema"
)

// New gives a session on a connection.
func New(id interpreter.Identity, c *connection.Connection) *interpreter.Session {
	return NewWithKeys(id, c, nil)
}

// NewWithKeys gives a session that makes certificates and carries them in files of this host: for the user who runs the command alone.
func NewWithKeys(id interpreter.Identity, c *connection.Connection, keys security.Keys) *interpreter.Session {
	tables := translator.New(c)
	rights := security.New(c, keys, broker.New(c, tables))
	s := interpreter.New(id, explained{database.New(c, schema.Install, rights)}, c)
	s.Keep(module.New(c))
	tables.SetHost(s)
	return s
}
