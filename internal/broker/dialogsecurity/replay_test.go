package dialogsecurity_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/operate"
)

// The clock of a sender may be ahead by a minute, and behind by half an hour.
const (
	tooOld   = -31 * time.Minute
	oldStill = -28 * time.Minute
	tooNew   = 90 * time.Second
)

// record returns a copy of a transmission, as it was sealed by a clock that was ahead by so much: what was sealed half
// an hour ago, when that is over.
func (s *side) record(ahead time.Duration, runs []transportstore.Run) (transportstore.Speaker, []transportstore.Run) {
	s.Helper()
	s.guard.SealAt(ahead)
	defer s.guard.SealAt(0)
	speaker := s.speaker()
	sealed, held, err := s.guard.Seal(s.Context(), s.pool, speaker, runs)
	s.noError(err)
	if len(held) > 0 {
		s.Fatalf("held: %+v", held)
	}
	return speaker, sealed
}

// finish ends a dialog at both sides, so that both forget it but for what is kept against replays.
func finish(asker, answerer *side, handle, there string) {
	asker.Helper()
	asker.exec("select parley.end_conversation($1::uuid)", handle)
	asker.carry(answerer, &forwarder{})
	answerer.receive()
	answerer.exec("select parley.end_conversation($1::uuid)", there)
	answerer.carry(asker, &forwarder{})
	asker.receive()
	for _, s := range []*side{asker, answerer} {
		if n := one[int](s, "select count(*)::int from parley._p_endpoint"); n != 0 {
			s.Fatalf("%s has %d endpoints left", s.name, n)
		}
	}
}

// forgetEnded lets a database forget what it may, as if an hour had passed.
func (s *side) forgetEnded() {
	s.Helper()
	s.exec("update parley._p_tombstone set expires_at = now()")
	s.exec("update parley._p_dialog_security set secured_at = secured_at - interval '1 hour', opened_at = opened_at - interval '1 hour'")
	s.exec("select parley.fire_timers()")
	_, err := truststore.ForgetDialogs(s.Context(), s.pool, 1000)
	s.noError(err)
	if n := one[int](s, "select (select count(*) from parley._p_tombstone)::int + (select count(*) from parley._p_dialog_security)::int"); n != 0 {
		s.Fatalf("%s remembers %d", s.name, n)
	}
}

// renew writes another time into what was sealed at an old one.
func renew(run transportstore.Run, sealedAt time.Time) transportstore.Run {
	run.Security = bytes.Clone(run.Security)
	binary.BigEndian.PutUint64(run.Security[len(run.Security)-8:], uint64(sealedAt.UnixMicro()))
	return run
}

func (s *side) requireNothingBegan() {
	s.Helper()
	if got := s.receive(); len(got.texts) > 0 {
		s.Errorf("%s received %q again", s.name, got.texts)
	}
	if n := one[int](s, "select count(*)::int from parley._p_endpoint"); n != 0 {
		s.Errorf("%s has begun %d conversations", s.name, n)
	}
}

// Nothing is left then by which the dialog could be recognised but its age. The daemon that has served it may know its key still.
func TestFirstMessageThatIsReplayedWhenItsDialogIsForgottenBeginsNothing(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "pay")
		runs := asker.take()
		speaker, old := asker.record(tooOld, runs)
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		finish(asker, answerer, handle, answerer.expect("pay"))
		answerer.forgetEnded()
		for _, isNew := range []bool{false, true} {
			if isNew {
				answerer.restart()
			}
			answerer.requireOutcomes(answerer.accept(speaker, renew(old[0], time.Now())), transportstore.Held, "changed on its way")
			before := answerer.guard.Counts().Corrupted
			answerer.requireOutcomes(answerer.accept(speaker, old...), transportstore.Held, "it may be a replay")
			answerer.requireNothingBegan()
			if n := answerer.guard.Counts().Corrupted - before; n != 1 {
				asker.Errorf("%d runs were counted as discarded", n)
			}
		}
	})
}

// As long as it is young enough to be taken, its dialog is remembered: without its tombstone, too, whose time is a setting, and which goes
// with a cleanup.
func TestFirstMessageThatIsReplayedWhileItIsYoungIsRecognised(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		answerer.exec("update parley._p_broker set tombstone_seconds = 0")
		handle := asker.begin(true)
		asker.send(handle, "pay")
		runs := asker.take()
		speaker, young := asker.record(oldStill, runs)
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		finish(asker, answerer, handle, answerer.expect("pay"))
		answerer.exec("select parley.fire_timers()")
		// Records of ended dialogs are kept as long, whatever their age.
		answerer.exec("update parley._p_dialog_security set secured_at = secured_at - interval '1 hour', opened_at = opened_at - interval '30 minutes'")
		_, err := truststore.ForgetDialogs(asker.Context(), answerer.pool, 1000)
		asker.noError(err)
		for _, isNew := range []bool{false, true} {
			if isNew {
				answerer.restart()
			}
			answerer.requireOutcomes(answerer.accept(speaker, young...), transportstore.Accepted, "")
			answerer.requireNothingBegan()
		}
		// Nor does another database take the place of a dialog that is over.
		if one[bool](answerer, "select parley._p_bind_dialog($1, false, 'full', current_user::regrole, null)", young[0].ConversationID) {
			asker.Error("a dialog that is over was bound to somebody else")
		}
		// A broker that begins anew under another id knows it, too.
		_, err = operate.NewBroker(asker.Context(), answerer.pool)
		asker.noError(err)
		answerer.requireOutcomes(answerer.accept(speaker, young...), transportstore.Accepted, "")
		answerer.requireNothingBegan()
	})
}

// The time of a transmission counts. How long the message has waited before, and how often it was tried, does not.
func TestFirstMessageThatHasWaitedForDaysIsTaken(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "at last")
		asker.exec("update parley._p_endpoint set begun_at = begun_at - interval '3 days'")
		for _, table := range []string{"_p_transit", "_p_transmission"} {
			asker.exec("update parley." + table + " set enqueued_at = enqueued_at - interval '3 days'")
		}
		asker.guard.SealAt(tooOld)
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "compare the clocks")
		if status := one[string](asker, "select max(transmission_status) from parley.transmission_queue"); !strings.Contains(status, "28066: ") {
			asker.Errorf("the transmission queue says %q", status)
		}
		asker.guard.SealAt(0)
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("at last")
	})
}

// A clock that is ahead would make messages that stay young for longer than their dialogs are remembered. A run that goes on with a dialog
// needs no time.
func TestClocksOfSendersMayDifferByALittle(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		asker.guard.SealAt(tooNew)
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "ahead of the one here")
		asker.guard.SealAt(30 * time.Second)
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		there := answerer.expect("one")
		for _, wrong := range []time.Duration{tooNew, tooOld, 0} {
			asker.guard.SealAt(wrong)
			answerer.guard.SealAt(wrong)
			asker.send(handle, "question")
			asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
			answerer.expect("question")
			answerer.send(there, "answer")
			answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
			asker.expect("answer")
		}
		asker.guard.SealAt(oldStill)
		asker.send(asker.begin(true), "two")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("two")
	})
}

// A database that was restored does not know what it has begun since the backup.
func TestDatabaseThatGoesOnFromAnOlderStateTakesOnlyWhatWasSealedSince(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		runs := asker.take()
		speaker, before := asker.record(-time.Second, runs)
		// The server has begun another timeline, which is not recorded yet.
		answerer.exec("update parley._p_broker set timeline = 'ffffffff'")
		answerer.requireOutcomes(answerer.accept(speaker, before...), transportstore.Held, "gone on from an older state")
		answerer.requireNothingBegan()
		if !one[bool](answerer, "select parley._p_is_epoch_current() and remembers_since is not null from parley._p_broker") {
			asker.Error("the new timeline was not recorded")
		}
		// Two minutes later.
		answerer.exec("update parley._p_broker set remembers_since = remembers_since - interval '2 minutes'")
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		answerer.expect("one")
	})
}

// The parts of a large message come before it, and would fill the disk.
func TestPartsOfAFirstMessageThatIsReplayedAreNotStored(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, strings.Repeat("x", 300_000))
		runs := asker.take()
		part := func(ahead time.Duration) transportstore.Fragment {
			speaker, sealed := asker.record(ahead, runs)
			asker.guard.SealAt(ahead)
			defer asker.guard.SealAt(0)
			fragment, err := asker.guard.SealFragment(sealed[0], transportstore.Fragment{
				Speaker: speaker, ConversationID: runs[0].ConversationID, FromInitiator: true, Size: runs[0].Size,
				Data: make([]byte, 100_000), ToService: answering,
			})
			asker.noError(err)
			return fragment
		}
		old, young := part(tooOld), part(0)
		accept := func(fragment transportstore.Fragment) int64 {
			stored, err := answerer.guard.AcceptFragment(asker.Context(), answerer.pool, fragment)
			asker.noError(err)
			return stored
		}
		if stored := accept(old); stored > 0 {
			asker.Errorf("%d bytes of an old part were stored", stored)
		}
		if stored := accept(young); stored != 100_000 {
			asker.Fatalf("%d bytes were stored", stored)
		}
		answerer.exec("delete from parley._p_fragment")
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		finish(asker, answerer, handle, answerer.receive().handle)
		if stored := accept(young); stored > 0 {
			asker.Errorf("%d bytes for a dialog that is over were stored", stored)
		}
	})
}

// A daemon's memory of a dialog that its database has forgotten is not enough to begin it: the database would not know that it is secured.
func TestDialogThatBeginsIsRecordedAsSecuredWhateverTheDaemonRemembers(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		runs := asker.take()
		speaker, again := asker.record(0, runs)
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		finish(asker, answerer, handle, answerer.expect("one"))
		answerer.forgetEnded()
		answerer.requireOutcomes(answerer.accept(speaker, again...), transportstore.Accepted, "")
		if !one[bool](answerer, "select exists (select from parley._p_dialog_security where not is_initiator and opened_at is not null)") {
			asker.Error("the database does not know that the dialog is secured")
		}
	})
}

// Each kind of header is for one direction: a target never makes a new secret, and an initiator never leaves its own out.
func TestHeaderOfTheOtherDirectionIsMalformed(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	asker.bind(true)
	answerer.exec("select parley.grant('SEND', 'service', $1, 'public')", answering)
	way := &forwarder{}
	asker.send(asker.begin(true), "one")
	asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
	answerer.send(answerer.expect("one"), "two")
	answerer.requireOutcomes(answerer.carry(asker, way), transportstore.Accepted, "")
	for i, s := range []*side{asker, answerer} {
		run := way.seen[i]
		run.FromInitiator = !run.FromInitiator
		s.requireOutcomes(s.accept(s.speaker(), run), transportstore.Held, "the security header is malformed")
	}
}
