package trust_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

// speak returns why nothing is taken from a speaker for a broker over a link, "" when it is: in the order in which it is asked.
const speak = `
	select case (r.refusal).error_number when 9772 then 'superseded' else coalesce((r.refusal).error_number::text, '') end
	from (
		select coalesce(
			parley._p_refusal_of_speaker(array[$1::text], $2::text::uuid, $3::bigint),
			parley._p_admit_speaker($2::text::uuid, $3::bigint, 1, '00000000-0000-0000-0000-00000000000a', $1::text !~ 'peer:')
		) as refusal
	) as r`

func requireAccepted(s sqltest.Session, identity, speaker string, epoch int64, want string) {
	s.Helper()
	if got := sqltest.Value[string](s, speak, identity, speaker, epoch); got != want {
		s.Errorf("%s is refused with %q when it speaks for %s, want %q", identity, got, speaker, want)
	}
}

// recordedEpoch is the newest epoch that a broker has used, 0 for none.
func recordedEpoch(s sqltest.Session, broker string) int64 {
	s.Helper()
	return sqltest.Value[int64](s, "select coalesce(max(epoch), 0) from parley._p_known_broker where broker_instance = $1::text::uuid", broker)
}

const secondBroker = "00000000-0000-0000-0000-000000000002"

// Whichever way a peer is trusted: the first that has spoken for a broker is the only one, and cannot be shut out by a newer epoch.
func TestBrokerIsOfThePeerThatSpeaksForItFirst(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct{ prepare, first, later, other string }{
		"trust_peer": {
			prepare: "select parley.trust_peer('" + sqltest.OneKey + "', 'one'), parley.trust_peer('" + sqltest.AnotherKey + "', 'two'); " +
				"select parley.alter_peer('one', add_fingerprint => '" + sqltest.ThirdKey + "')",
			first: "peer:" + sqltest.OneKey, later: "peer:" + sqltest.ThirdKey, other: "peer:" + sqltest.AnotherKey,
		},
		"pairing": {
			prepare: `select parley.pair_peer('` + sqltest.OneKey + `', '', null, null, '{"name": "one", "databases": [{"instance": "` + secondBroker + `", "services": []}]}'),
				parley.pair_peer('` + sqltest.AnotherKey + `', '', null, null, '{"name": "two", "databases": []}')`,
			first: "peer:" + sqltest.OneKey, later: "certificate:ab over peer:" + sqltest.OneKey, other: "peer:" + sqltest.AnotherKey,
		},
		"authority": {
			first: "peer:" + sqltest.OneKey + " named one.example.com", later: "certificate:ab over peer:" + sqltest.ThirdKey + " named one.example.com",
			other: "peer:" + sqltest.AnotherKey + " named two.example.com",
		},
		"another database of the daemon": {first: "peer:" + sqltest.OneKey, later: "peer:" + sqltest.OneKey, other: "peer:" + sqltest.AnotherKey},
		"authority and nobody":           {first: "peer:" + sqltest.OneKey + " named one.example.com", later: "peer:" + sqltest.OneKey + " named one.example.com", other: "peer:" + sqltest.AnotherKey},
		"nobody and authority":           {first: "peer:" + sqltest.OneKey, later: "peer:" + sqltest.OneKey, other: "peer:" + sqltest.AnotherKey + " named " + sqltest.OneKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			if way.prepare != "" {
				b.Exec(way.prepare)
			}
			now := time.Now().UnixMicro()
			requireAccepted(b.Session, way.first, someBroker, 1, "")
			for _, epoch := range []int64{1, 2, now} {
				requireAccepted(b.Session, way.other, someBroker, epoch, "28047")
			}
			if got := recordedEpoch(b.Session, someBroker); got != 1 {
				t.Errorf("somebody else has brought the broker to epoch %d", got)
			}
			requireAccepted(b.Session, way.first, someBroker, 1, "")
			requireAccepted(b.Session, way.later, someBroker, 2, "")
			// A daemon serves any number of databases.
			requireAccepted(b.Session, way.first, "00000000-0000-0000-0000-000000000003", 1, "")
			requireAccepted(b.Session, way.other, "00000000-0000-0000-0000-000000000003", 1, "28047")
			requireAccepted(b.Session, way.other, "00000000-0000-0000-0000-000000000004", 1, "")
			requireAccepted(b.Session, way.first, "00000000-0000-0000-0000-000000000004", 1, "28047")
			sqltest.Equal(b.Session, 3, "select count(*)::int from parley.peer_brokers where first_used_at is not null")
		})
	}
}

func TestPeersShowInWhoseNameTheyHaveSpokenFirst(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one', broker_instances => array[$2::text::uuid])", sqltest.OneKey, secondBroker)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
	requireAccepted(b.Session, "peer:"+sqltest.AnotherKey+" named hub", "00000000-0000-0000-0000-000000000003", 1, "")
	sqltest.Equal(b.Session, "{"+someBroker+","+secondBroker+"}", "select broker_instances::text from parley.peers")
	sqltest.Equal(b.Session, "one 1 true,one 2 false,hub 3 true", `
		select string_agg(coalesce(peer_name, authority_name) || ' ' || right(broker_instance::text, 1) || ' ' || (first_used_at is not null), ','
			order by broker_instance)
		from parley.peer_brokers`)
}

// The decision of an operator or a pairing counts more than the first speaker, and undoes what that one has done.
func TestOperatorDecidesWhoseABrokerIs(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"alter_peer": "select parley.alter_peer('one', broker_instances => array['" + someBroker + "'::uuid])",
		"trust_peer": "select parley.trust_peer('" + sqltest.ThirdKey + "', 'new', broker_instances => array['" + someBroker + "'::uuid])",
		"pairing": `select parley.drop_peer('one');
			select parley.pair_peer('` + sqltest.OneKey + `', '', null, null, '{"name": "one", "databases": [{"instance": "` + someBroker + `", "services": []}]}')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			owner, thief := "peer:"+sqltest.OneKey, "peer:"+sqltest.AnotherKey+" named thief"
			if name == "trust_peer" {
				owner = "peer:" + sqltest.ThirdKey
			}
			b.Exec("select parley.trust_peer($1, 'one')", sqltest.OneKey)
			requireAccepted(b.Session, thief, someBroker, time.Now().UnixMicro(), "")
			requireAccepted(b.Session, owner, someBroker, 1, "28047")
			b.Exec(statement)
			requireAccepted(b.Session, owner, someBroker, 1, "")
			requireAccepted(b.Session, thief, someBroker, time.Now().UnixMicro(), "28047")
			requireAccepted(b.Session, owner, someBroker, 1, "")
		})
	}
}

func TestPairingDoesNotTakeTheBrokerThatAnotherPeerHasSpokenFor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one')", sqltest.OneKey)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
	b.Refuses(2714, `select parley.pair_peer($1, '', null, null, jsonb_build_object('databases', jsonb_build_array(
		jsonb_build_object('instance', $2::text, 'services', '[]'::jsonb))))`, sqltest.AnotherKey, someBroker)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
}

func TestAlteringTheBrokersOfAPeerReplacesWhatItHasSpokenFor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one'), parley.trust_peer($2, 'two')", sqltest.OneKey, sqltest.AnotherKey)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
	b.Exec("select parley.alter_peer('one', broker_instances => array[$1::text::uuid])", secondBroker)
	requireAccepted(b.Session, "peer:"+sqltest.AnotherKey, someBroker, 1, "")
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "28047")
}

// It speaks for others, so nothing becomes its own by that.
func TestForwarderIsRecordedForNoBroker(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'hub', is_forwarder => true), parley.trust_peer($2, 'one')", sqltest.OneKey, sqltest.AnotherKey)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
	requireAccepted(b.Session, "peer:"+sqltest.AnotherKey, someBroker, 1, "")
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
	sqltest.Equal(b.Session, "one", "select string_agg(peer_name, ',') from parley.peer_brokers")
}

func TestBrokerOfARevokedPeerIsFree(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one'), parley.trust_peer($2, 'two')", sqltest.OneKey, sqltest.AnotherKey)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
	b.Exec("select parley.revoke_peer('one')")
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "28034")
	requireAccepted(b.Session, "peer:"+sqltest.AnotherKey, someBroker, 1, "")
}

// A database beside this one is identified by its daemon; one elsewhere that claims to be it is not.
func TestBrokerBesideIsNotTakenByAPeer(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one')", sqltest.OneKey)
	requireAccepted(b.Session, "role:somebody", someBroker, 1, "")
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 2, "28047")
	requireAccepted(b.Session, "role:somebody", someBroker, 1, "")
	// It has moved.
	b.Exec("select parley.alter_peer('one', broker_instances => array[$1::text::uuid])", someBroker)
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 2, "")
}

func TestTwoPeersThatSpeakForABrokerAtOnceAreNotBothAccepted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one'), parley.trust_peer($2, 'two')", sqltest.OneKey, sqltest.AnotherKey)
	first := b.Begin()
	requireAccepted(first, "peer:"+sqltest.OneKey, someBroker, 1, "")
	if got := beside(b, first, speak, "peer:"+sqltest.AnotherKey, someBroker, time.Now().UnixMicro()); got != "28047" {
		t.Errorf("the second one is refused with %q", got)
	}
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, 1, "")
}

// An epoch is a time: what lies ahead of it would shut the true broker out for good. No speaker can state such an epoch, the broker itself
// included.
func TestEpochThatIsStillToComeIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'hub', is_forwarder => true)", sqltest.OneKey)
	for _, identity := range []string{"peer:" + sqltest.OneKey, "peer:" + sqltest.AnotherKey, "role:somebody", ""} {
		for _, epoch := range []int64{time.Now().Add(15 * time.Minute).UnixMicro(), 1<<63 - 1} {
			requireAccepted(b.Session, identity, someBroker, epoch, "28047")
		}
	}
	if got := recordedEpoch(b.Session, someBroker); got != 0 {
		t.Errorf("it was recorded: %d", got)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.peer_brokers")
	requireAccepted(b.Session, "peer:"+sqltest.OneKey, someBroker, time.Now().Add(5*time.Minute).UnixMicro(), "")
}

func TestPeerSpeaksFirstForAThousandBrokersAtMost(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one')", sqltest.OneKey)
	for _, identity := range []string{"peer:" + sqltest.OneKey, "peer:" + sqltest.AnotherKey, "peer:" + sqltest.AnotherKey + " named hub"} {
		sqltest.Equal(b.Session, "1000 5", `
			select count(*) filter (where q.refusal is null) || ' ' || count(*) filter (where (q.refusal).error_number = 28047)
			from generate_series(1, 1005) as n,
				lateral (select parley._p_refusal_of_identities(array[$1::text], md5($1 || n)::uuid) as refusal) as q`, identity)
		requireAccepted(b.Session, identity, fmt.Sprintf("%x-0000-0000-0000-000000000000", 0xabcdef01), 1, "28047")
	}
}

// Messages that a broker has sent before its database went on from another state may still be on their way, with the same daemon's token.
func TestOlderEpochOfTheSameDaemonIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, identity := range []string{"peer:" + sqltest.OneKey, "role:somebody"} {
		broker := map[bool]string{true: someBroker, false: secondBroker}[identity[0] == 'p']
		requireAccepted(b.Session, identity, broker, 2, "")
		requireAccepted(b.Session, identity, broker, 1, "superseded")
		requireAccepted(b.Session, identity, broker, 2, "")
	}
}
