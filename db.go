package parley

import "github.com/parley-broker/parley/internal/pgdb"

// DB runs statements: a pgx.Tx, a *pgx.Conn or a *pgxpool.Pool, by their methods Exec, Query and QueryRow. Statements join the transaction
// of a Tx; on a connection or a pool each is a transaction of its own.
//
// Receive and GetConversationGroup lock the conversation group to the end of the transaction, and see only what was
// committed before they began when it is at READ COMMITTED, PostgreSQL's default, which is the level to use.
type DB = pgdb.DB

// UUID is a conversation handle, the id of a conversation group, or the id of a message: 16 bytes. Its zero value means none, which
// IsZero reports it; String and its methods for JSON write it as PostgreSQL does, and pgx reads and sends it.
// It converts to and from any other [16]byte UUID type.
type UUID = pgdb.UUID

// ParseUUID reads a UUID as PostgreSQL and Service Broker write it: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
func ParseUUID(text string) (UUID, error) { return pgdb.ParseUUID(text) }
