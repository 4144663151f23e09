package trust_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// redeem is the daemon's call for a caller that has proven to have an invitation.
const redeem = `select parley._p_redeem_invitation($1::text::uuid, $2, '\x3000', now() - interval '1 hour', now() + interval '1 year',
	jsonb_build_object('name', $3::text, 'databases', jsonb_build_array(jsonb_build_object('instance', gen_random_uuid(), 'services', '[]'::jsonb))))`

// newInvitation gives the id of a new one.
func newInvitation(b *sqltest.Broker) string {
	b.Helper()
	b.Exec("select parley.invite_peer()")
	return sqltest.Value[string](b.Session, "select pairing_id::text from parley._p_pairing order by opened_at desc limit 1")
}

// beside runs a query in a session of its own while another transaction is open, lets that one commit as soon as the session waits for it,
// and gives the value of the query; "" for null.
func beside(b *sqltest.Broker, first sqltest.Session, query string, arguments ...any) string {
	b.Helper()
	second := b.Connection()
	pid := sqltest.Value[int](second, "select pg_backend_pid()")
	type outcome struct {
		value *string
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = second.DB.QueryRow(b.Context(), query, arguments...).Scan(&o.value)
		done <- o
	}()
	b.WaitUntil("select exists (select from pg_locks where pid = $1 and not granted)", pid)
	first.Commit()
	o := <-done
	switch {
	case o.err != nil:
		b.Fatalf("%s: %v", sqltest.Clip(query), sqltest.Describe(o.err))
	case o.value == nil:
		return ""
	}
	return *o.value
}

// Two daemons, or two connections of one, may bring the same invitation in the same instant.
func TestInvitationThatIsRedeemedTwiceAtOnceIsGoodOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	invitation := newInvitation(b)
	first := b.Begin()
	sqltest.Equal(first, "first", redeem, invitation, sqltest.OneKey, "first")
	if name := beside(b, first, redeem, invitation, sqltest.AnotherKey, "second"); name != "" {
		t.Errorf("the invitation was good for %q too", name)
	}
	sqltest.Equal(b.Session, "first", "select string_agg(name, ' ' order by name) from parley.peers")
}

// The window closes with the first peer that both sides have confirmed.
func TestWindowThatTwoAreConfirmedInAtOnceIsGoodForOne(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.open_pairing()")
	request := func(key, name string) string {
		return sqltest.Value[string](b.Session, "select parley._p_request_pairing($1, '\\x3000', jsonb_build_object('name', $2::text), 'code', 'remote')::text", key, name)
	}
	requests := []string{request(sqltest.OneKey, "first"), request(sqltest.AnotherKey, "second")}
	const complete = `select parley._p_complete_pairing($1::text::uuid, now() - interval '1 hour', now() + interval '1 year',
		jsonb_build_object('name', $2::text))`
	sqltest.Equal(b.Session, true, "select ("+strings.TrimPrefix(complete, "select ")+") is null", requests[0], "first") // nobody has confirmed
	for _, r := range requests {
		b.Exec("select parley.confirm_pairing($1::text::uuid)", r)
	}
	first := b.Begin()
	sqltest.Equal(first, "first", complete, requests[0], "first")
	if name := beside(b, first, complete, requests[1], "second"); name != "" {
		t.Errorf("the window was good for %q too", name)
	}
	sqltest.Equal(b.Session, "first", "select string_agg(name, ' ' order by name) from parley.peers")
}

func TestInvitationIsNoWindowAndAWindowNoInvitation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	newInvitation(b)
	sqltest.Equal(b.Session, "false true", "select parley._p_is_pairing_window_open() || ' ' || parley._p_is_pairing_open()")
	sqltest.Equal(b.Session, true, "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote') is null", sqltest.OneKey)
	window := sqltest.Value[string](b.Session, "select parley.open_pairing()::text")
	sqltest.Equal(b.Session, true, "select parley._p_find_invitation($1::text::uuid) is null", window)
	sqltest.Equal(b.Session, true, "select ("+strings.TrimPrefix(redeem, "select ")+") is null", window, sqltest.OneKey, "thief")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.peers")
}

func TestUnknownPeersCanMakeTwentyRequestsInAPairingWindow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.open_pairing()")
	sqltest.Equal(b.Session, 20, `
		select count(r)::int from generate_series(1, 25) as n,
			lateral (select parley._p_request_pairing(lpad(n::text, 64, '0'), '\x3000', '{}', 'code', 'remote') as r) as q`)
}
