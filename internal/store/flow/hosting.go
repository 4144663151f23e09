package flow

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// ConfigurationChannel is notified of each change of definitions and states.
const ConfigurationChannel = "parley_flow_configuration"

// Configuration gives the definitions that concern a host, and all subscriptions, as parley_flow._p_configuration has them.
func Configuration(ctx context.Context, db pgdb.DB, host string) (json.RawMessage, error) {
	return one[json.RawMessage](ctx, db, "read the configuration of host "+host,
		"select parley_flow._p_configuration(host => $1::text)", host)
}

// ConfigurationVersion gives the number of the configuration.
func ConfigurationVersion(ctx context.Context, db pgdb.DB) (int64, error) {
	return one[int64](ctx, db, "ask for the number of the configuration", "select parley_flow._p_configuration_version()")
}

// ServableHosts gives the hosts that the role of the session may serve.
func ServableHosts(ctx context.Context, db pgdb.DB) ([]string, error) {
	rows, err := db.Query(ctx, `
		select distinct h.host
		from parley_flow.hosts as h
		join pg_catalog.pg_roles as r on r.rolname operator(pg_catalog.=) h.role
		where pg_catalog.pg_has_role(r.oid, 'usage')
		order by h.host`)
	if err != nil {
		return nil, pgdb.StatementError(err, "list the hosts that can be served")
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, pgdb.StatementError(err, "list the hosts that can be served")
	}
	return found, nil
}

// Received is a batch of messages of a location, with an element of each slice for each message; a nil slice has none.
type Received struct {
	Bodies                        [][]byte // nil where Contents has it
	Promoted, Written, Parts      []*string
	Types                         []*string
	Contents                      []*int64
	FailureCodes, FailureErrors   []*string
	Inputs                        []int32   // of which input each message is, from 1 on
	Keys                          []*string // of inputs
	Entries                       []*string // of inputs, objects
	Epoch                         int64     // 0: the host has not matched
	MatchedMessages               []int32   // from 1 on
	MatchedPorts                  []int64
	Interchange                   int64 // the first message of the interchange of which earlier calls brought messages; 0 for none
	ResubmittedLease, Resubmitted int64
	Node                          string // where clients wait for answers; empty: none does
}

// Outcome of a message that was taken in; N is which, from 1 on.
type Outcome struct {
	N       int32
	Message int64
	Outcome string
}

// Receive takes messages in, in one transaction with the ledger.
func Receive(ctx context.Context, db pgdb.DB, host, location string, r Received) ([]Outcome, error) {
	return collect[Outcome](ctx, db, "take in messages of "+location, `
		select n, message_id, outcome from parley_flow._p_receive(
			host => $1::text, location => $2::text, bodies => $3::bytea[], promoted => $4::text[]::jsonb[], message_types => $5::text[],
			written => $6::text[]::jsonb[], inputs => $7::integer[], keys => $8::text[], entries => $9::text[]::jsonb[],
			contents => $10::bigint[], parts => $11::text[]::jsonb[], failure_codes => $12::text[], failure_errors => $13::text[],
			epoch => nullif($14::bigint, 0), matched_messages => $15::integer[], matched_ports => $16::bigint[],
			resubmission_lease => nullif($17::bigint, 0), resubmission_item => nullif($18::bigint, 0),
			interchange_id => nullif($19::bigint, 0), node => nullif($20::text, '')
		)`, host, location, r.Bodies, r.Promoted, r.Types, r.Written, r.Inputs, r.Keys, r.Entries, r.Contents, r.Parts, r.FailureCodes,
		r.FailureErrors, r.Epoch, r.MatchedMessages, r.MatchedPorts, r.ResubmittedLease, r.Resubmitted, r.Interchange, r.Node)
}

// Known gives those of keys that a location has taken.
func Known(ctx context.Context, db pgdb.DB, host, location string, keys []string) ([]string, error) {
	return one[[]string](ctx, db, "ask what "+location+" has taken",
		"select parley_flow._p_known(host => $1::text, location => $2::text, keys => $3::text[])", host, location, keys)
}

// Entry is an input of the ledger whose source may be there still.
type Entry struct {
	Key   string
	Entry json.RawMessage
}

// Taken gives what a location has taken and whose source may be there still, the oldest first.
func Taken(ctx context.Context, db pgdb.DB, host, location string, top int) ([]Entry, error) {
	return collect[Entry](ctx, db, "ask what is left of "+location, `
		select key, entry from parley_flow._p_taken(host => $1::text, location => $2::text, top => $3::integer)`, host, location, top)
}

// Removed records that sources of a location are gone.
func Removed(ctx context.Context, db pgdb.DB, host, location string, keys []string) error {
	_, err := one[int](ctx, db, "record what is removed of "+location,
		"select parley_flow._p_removed(host => $1::text, location => $2::text, keys => $3::text[])", host, location, keys)
	return err
}

// BeginBody begins a body that comes in chunks of so many bytes.
func BeginBody(ctx context.Context, db pgdb.DB, host string) (content int64, chunkBytes int, err error) {
	err = db.QueryRow(ctx, "select content_id, chunk_bytes from parley_flow._p_begin_body(host => $1::text)", host).
		Scan(&content, &chunkBytes)
	if err != nil {
		return 0, 0, pgdb.StatementError(err, "begin a body")
	}
	return content, chunkBytes, nil
}

// AppendBody adds a chunk to a body, from number 0 on.
func AppendBody(ctx context.Context, db pgdb.DB, host string, content int64, number int, chunk []byte) error {
	_, err := db.Exec(ctx, `select parley_flow._p_append_body(
		host => $1::text, content_id => $2::bigint, number => $3::integer, chunk => $4::bytea)`, host, content, number, chunk)
	if err != nil {
		return pgdb.StatementError(err, "write a body")
	}
	return nil
}

// FinishBody ends a body of so many bytes with this sum.
func FinishBody(ctx context.Context, db pgdb.DB, host string, content, bytes int64, sha256 []byte) error {
	_, err := db.Exec(ctx, `select parley_flow._p_finish_body(
		host => $1::text, content_id => $2::bigint, bytes => $3::bigint, sha256 => $4::bytea)`, host, content, bytes, sha256)
	if err != nil {
		return pgdb.StatementError(err, "finish a body")
	}
	return nil
}
