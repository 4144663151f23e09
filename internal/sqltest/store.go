package sqltest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// PutContent stores a body of so many bytes for a holder.
func (s Session) PutContent(holder, bytes int) (contentID int64) {
	s.Helper()
	return Value[int64](s, "select (parley_store.put_content('mail', array[$1::bigint], array[convert_to(repeat('x', $2), 'UTF8')]))[1]", holder, bytes)
}

// LongLived counts the chunks of the bodies that live long.
const LongLived = "select count(*)::int from parley_store._p_content_chunk_0"

// NewStore gives a test a database with a system that uses the store.
func NewStore(t *testing.T) *Broker {
	t.Helper()
	b := NewBroker(t)
	b.Exec("select parley_store.add_system('mail')")
	return b
}

// Fails requires a statement to end with a SQLSTATE.
func (s Session) Fails(code, statement string) {
	s.Helper()
	_, err := s.DB.Exec(s.Context(), statement)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		s.Errorf("%s: got %v, want SQLSTATE %s", statement, err, code)
	}
}

// PutWork puts items with subjects from one number to another into a lane.
func (s Session) PutWork(lane string, from, to int) {
	s.Helper()
	s.Exec(`select parley_store.put_work('mail', array_agg($1::text), array_agg(n::bigint order by n))
		from generate_series($2::integer, $3::integer) as n`, lane, from, to)
}

// Claim gives the subjects of what is claimed from a lane.
func (s Session) Claim(lane string, items int) []int64 {
	s.Helper()
	return Values[int64](s, "select subject from parley_store.claim_lane('mail', $1, $2)", lane, items)
}

// RequireClaimed compares subjects of claimed items.
func (s Session) RequireClaimed(got, want any) {
	s.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("claimed %v, want %v", got, want)
	}
}
