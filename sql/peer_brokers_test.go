package sql_test

import (
	"fmt"
	"testing"
	"time"
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

func (s session) requireAccepted(identity, speaker string, epoch int64, want string) {
	s.Helper()
	if got := value[string](s, speak, identity, speaker, epoch); got != want {
		s.Errorf("%s is refused with %q when it speaks for %s, want %q", identity, got, speaker, want)
	}
}

// recordedEpoch is the newest epoch that a broker has used, 0 for none.
func (s session) recordedEpoch(broker string) int64 {
	s.Helper()
	return value[int64](s, "select coalesce(max(epoch), 0) from parley._p_known_broker where broker_instance = $1::text::uuid", broker)
}

const secondBroker = "00000000-0000-0000-0000-000000000002"

// Whichever way a peer is trusted: the first that has spoken for a broker is the only one, and cannot be shut out by a newer epoch.
func TestBrokerIsOfThePeerThatSpeaksForItFirst(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct{ prepare, first, later, other string }{
		"trust_peer": {
			prepare: "select parley.trust_peer('" + oneKey + "', 'one'), parley.trust_peer('" + anotherKey + "', 'two'); " +
				"select parley.alter_peer('one', add_fingerprint => '" + thirdKey + "')",
			first: "peer:" + oneKey, later: "peer:" + thirdKey, other: "peer:" + anotherKey,
		},
		"pairing": {
			prepare: `select parley.pair_peer('` + oneKey + `', '', null, null, '{"name": "one", "databases": [{"instance": "` + secondBroker + `", "services": []}]}'),
				parley.pair_peer('` + anotherKey + `', '', null, null, '{"name": "two", "databases": []}')`,
			first: "peer:" + oneKey, later: "certificate:ab over peer:" + oneKey, other: "peer:" + anotherKey,
		},
		"authority": {
			first: "peer:" + oneKey + " named one.example.com", later: "certificate:ab over peer:" + thirdKey + " named one.example.com",
			other: "peer:" + anotherKey + " named two.example.com",
		},
		"another database of the daemon": {first: "peer:" + oneKey, later: "peer:" + oneKey, other: "peer:" + anotherKey},
		"authority and nobody":           {first: "peer:" + oneKey + " named one.example.com", later: "peer:" + oneKey + " named one.example.com", other: "peer:" + anotherKey},
		"nobody and authority":           {first: "peer:" + oneKey, later: "peer:" + oneKey, other: "peer:" + anotherKey + " named " + oneKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			if way.prepare != "" {
				b.exec(way.prepare)
			}
			now := time.Now().UnixMicro()
			b.requireAccepted(way.first, someBroker, 1, "")
			for _, epoch := range []int64{1, 2, now} {
				b.requireAccepted(way.other, someBroker, epoch, "28047")
			}
			if got := b.recordedEpoch(someBroker); got != 1 {
				t.Errorf("somebody else has brought the broker to epoch %d", got)
			}
			b.requireAccepted(way.first, someBroker, 1, "")
			b.requireAccepted(way.later, someBroker, 2, "")
			// A daemon serves any number of databases.
			b.requireAccepted(way.first, "00000000-0000-0000-0000-000000000003", 1, "")
			b.requireAccepted(way.other, "00000000-0000-0000-0000-000000000003", 1, "28047")
			b.requireAccepted(way.other, "00000000-0000-0000-0000-000000000004", 1, "")
			b.requireAccepted(way.first, "00000000-0000-0000-0000-000000000004", 1, "28047")
			equal(b.session, 3, "select count(*)::int from parley.peer_brokers where first_used_at is not null")
		})
	}
}

func TestPeersShowInWhoseNameTheyHaveSpokenFirst(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one', broker_instances => array[$2::text::uuid])", oneKey, secondBroker)
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	b.requireAccepted("peer:"+anotherKey+" named hub", "00000000-0000-0000-0000-000000000003", 1, "")
	equal(b.session, "{"+someBroker+","+secondBroker+"}", "select broker_instances::text from parley.peers")
	equal(b.session, "one 1 true,one 2 false,hub 3 true", `
		select string_agg(coalesce(peer_name, authority_name) || ' ' || right(broker_instance::text, 1) || ' ' || (first_used_at is not null), ','
			order by broker_instance)
		from parley.peer_brokers`)
}

// The decision of an operator or a pairing counts more than the first speaker, and undoes what that one has done.
func TestOperatorDecidesWhoseABrokerIs(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"alter_peer": "select parley.alter_peer('one', broker_instances => array['" + someBroker + "'::uuid])",
		"trust_peer": "select parley.trust_peer('" + thirdKey + "', 'new', broker_instances => array['" + someBroker + "'::uuid])",
		"pairing": `select parley.drop_peer('one');
			select parley.pair_peer('` + oneKey + `', '', null, null, '{"name": "one", "databases": [{"instance": "` + someBroker + `", "services": []}]}')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			owner, thief := "peer:"+oneKey, "peer:"+anotherKey+" named thief"
			if name == "trust_peer" {
				owner = "peer:" + thirdKey
			}
			b.exec("select parley.trust_peer($1, 'one')", oneKey)
			b.requireAccepted(thief, someBroker, time.Now().UnixMicro(), "")
			b.requireAccepted(owner, someBroker, 1, "28047")
			b.exec(statement)
			b.requireAccepted(owner, someBroker, 1, "")
			b.requireAccepted(thief, someBroker, time.Now().UnixMicro(), "28047")
			b.requireAccepted(owner, someBroker, 1, "")
		})
	}
}

func TestPairingDoesNotTakeTheBrokerThatAnotherPeerHasSpokenFor(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one')", oneKey)
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	b.refuses(2714, `select parley.pair_peer($1, '', null, null, jsonb_build_object('databases', jsonb_build_array(
		jsonb_build_object('instance', $2::text, 'services', '[]'::jsonb))))`, anotherKey, someBroker)
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
}

func TestAlteringTheBrokersOfAPeerReplacesWhatItHasSpokenFor(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one'), parley.trust_peer($2, 'two')", oneKey, anotherKey)
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	b.exec("select parley.alter_peer('one', broker_instances => array[$1::text::uuid])", secondBroker)
	b.requireAccepted("peer:"+anotherKey, someBroker, 1, "")
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "28047")
}

// It speaks for others, so nothing becomes its own by that.
func TestForwarderIsRecordedForNoBroker(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'hub', is_forwarder => true), parley.trust_peer($2, 'one')", oneKey, anotherKey)
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	b.requireAccepted("peer:"+anotherKey, someBroker, 1, "")
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	equal(b.session, "one", "select string_agg(peer_name, ',') from parley.peer_brokers")
}

func TestBrokerOfARevokedPeerIsFree(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one'), parley.trust_peer($2, 'two')", oneKey, anotherKey)
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	b.exec("select parley.revoke_peer('one')")
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "28034")
	b.requireAccepted("peer:"+anotherKey, someBroker, 1, "")
}

// A database beside this one is identified by its daemon; one elsewhere that claims to be it is not.
func TestBrokerBesideIsNotTakenByAPeer(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one')", oneKey)
	b.requireAccepted("role:somebody", someBroker, 1, "")
	b.requireAccepted("peer:"+oneKey, someBroker, 2, "28047")
	b.requireAccepted("role:somebody", someBroker, 1, "")
	// It has moved.
	b.exec("select parley.alter_peer('one', broker_instances => array[$1::text::uuid])", someBroker)
	b.requireAccepted("peer:"+oneKey, someBroker, 2, "")
}

func TestTwoPeersThatSpeakForABrokerAtOnceAreNotBothAccepted(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one'), parley.trust_peer($2, 'two')", oneKey, anotherKey)
	first := b.begin()
	first.requireAccepted("peer:"+oneKey, someBroker, 1, "")
	if got := b.beside(first, speak, "peer:"+anotherKey, someBroker, time.Now().UnixMicro()); got != "28047" {
		t.Errorf("the second one is refused with %q", got)
	}
	b.requireAccepted("peer:"+oneKey, someBroker, 1, "")
}

// An epoch is a time: what lies ahead of it would shut the true broker out for good. No speaker can state such an epoch, the broker itself
// included.
func TestEpochThatIsStillToComeIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'hub', is_forwarder => true)", oneKey)
	for _, identity := range []string{"peer:" + oneKey, "peer:" + anotherKey, "role:somebody", ""} {
		for _, epoch := range []int64{time.Now().Add(15 * time.Minute).UnixMicro(), 1<<63 - 1} {
			b.requireAccepted(identity, someBroker, epoch, "28047")
		}
	}
	if got := b.recordedEpoch(someBroker); got != 0 {
		t.Errorf("it was recorded: %d", got)
	}
	equal(b.session, 0, "select count(*)::int from parley.peer_brokers")
	b.requireAccepted("peer:"+oneKey, someBroker, time.Now().Add(5*time.Minute).UnixMicro(), "")
}

func TestPeerSpeaksFirstForAThousandBrokersAtMost(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one')", oneKey)
	for _, identity := range []string{"peer:" + oneKey, "peer:" + anotherKey, "peer:" + anotherKey + " named hub"} {
		equal(b.session, "1000 5", `
			select count(*) filter (where q.refusal is null) || ' ' || count(*) filter (where (q.refusal).error_number = 28047)
			from generate_series(1, 1005) as n,
				lateral (select parley._p_refusal_of_identities(array[$1::text], md5($1 || n)::uuid) as refusal) as q`, identity)
		b.requireAccepted(identity, fmt.Sprintf("%x-0000-0000-0000-000000000000", 0xabcdef01), 1, "28047")
	}
}

// What a broker has sent before its database went on from another state may still be on its way, with the same daemon's token.
func TestOlderEpochOfTheSameDaemonIsRefused(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for _, identity := range []string{"peer:" + oneKey, "role:somebody"} {
		broker := map[bool]string{true: someBroker, false: secondBroker}[identity[0] == 'p']
		b.requireAccepted(identity, broker, 2, "")
		b.requireAccepted(identity, broker, 1, "superseded")
		b.requireAccepted(identity, broker, 2, "")
	}
}
