// Package adapter is the border between hosts, which move messages, and adapters, which know where messages come from and where they go.
//
// An adapter is a [Kind]: its name, its settings, and how a [Receiver] or a [Sender] of it is made. A host makes a receiver for each
// location that is enabled and a sender for each port that is started, gives them what they need in an [Endpoint], and makes them anew
// when their definition changes. Adapters move bytes and keep account of nothing: the message box does, through [Intake] and the host.
package adapter

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Direction is the way of messages through an adapter.
type Direction string

// The directions.
const (
	Receive Direction = "receive"
	Send    Direction = "send"
)

// Kind is an adapter.
type Kind struct {
	Name string // as definitions name it: FILE
	// Guarantee says what a location, or a port, of it promises, in a sentence each; empty where there is none in that direction.
	Guarantee map[Direction]string
	// Key says which key an input has in the ledger, or by which a receiver of messages knows that one is there twice.
	Key map[Direction]string
	// Answers says in which directions answers come: a location answers its clients, or a port gets an answer of its destination.
	Answers map[Direction]bool
	// Check gives what is wrong with an address and settings, without opening anything.
	Check func(direction Direction, address string, settings json.RawMessage, secrets []string) []Problem
	// Listens gives where a location listens; nil where it does not, or where the address is wrong. Adapters that only ask have no Listens.
	Listens func(address string) *Listening
	// NewReceiver makes a receiver; nil where messages do not come that way.
	NewReceiver func(e Endpoint) (Receiver, error)
	// NewSender makes a sender; nil where messages do not go that way.
	NewSender func(e Endpoint) (Sender, error)
}

// Problem is something wrong with the definition of a location or port.
type Problem struct {
	Path    []string // of the setting, from the location or port: settings, poll_interval
	Message string   // what is wrong
	Remedy  string   // what to do about it
	// Other is the path of another definition with which this one does not go, from its kind on.
	Other []string
}

// Endpoint is a location or a port as an adapter sees it.
type Endpoint struct {
	Name     string // of the location or port
	Address  string
	Settings json.RawMessage // an object; [Decode] reads it
	// Secret gives the value of a secret of the definition, read anew each time; found is false where the definition has none of that name.
	Secret func(ctx context.Context, name string) (value string, found bool, err error)
	// Pool is the database of the host, for adapters that take part in its transactions. Its login may serve several hosts.
	Pool *pgxpool.Pool
	// Responds says that the answers of a destination are wanted, of a port: each [Delivery] has one, where there is one.
	Responds bool
	// Role is that of the host, with whose rights [Endpoint.AsRole] works.
	Role string
	// Permission limits the folders, addresses and secrets that definitions may name on this node.
	Permission Permission
	// Describe gives the definitions of a location as an export has them: itself, its receive port, and one message type, where there is such
	// a one. They may change while it runs. It is nil of a port.
	Describe func(messageType string) (json.RawMessage, error)
	Node     string // of the host, unique among those that serve it
	Logger   *slog.Logger
}

// Transaction is one of the host's database, in which an adapter works while the host publishes, or records that it has sent.
type Transaction = pgx.Tx
