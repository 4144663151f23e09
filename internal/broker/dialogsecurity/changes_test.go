package dialogsecurity_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// Both daemons begin anew, knowing nothing, after every message.
func TestDialogGoesOnWhenDaemonsAreRestarted(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		restart := func() { asker.restart(); answerer.restart() }
		handle := asker.begin(true)
		asker.send(handle, "one")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		there := answerer.expect("one")
		restart()
		answerer.send(there, "two")
		answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
		asker.expect("two")
		restart()
		asker.send(handle, "three")
		// The answer is lost with the daemon; the next one sends again, under other keys.
		speaker, runs := asker.speaker(), asker.take()
		sealed, _, err := asker.guard.Seal(asker.Context(), asker.pool, speaker, runs)
		asker.noError(err)
		answerer.requireOutcomes(answerer.accept(speaker, sealed...), transportstore.Accepted, "")
		restart()
		again := &forwarder{}
		asker.requireOutcomes(asker.transmit(answerer, again, asker.unacknowledged()), transportstore.Accepted, "")
		if bytes.Equal(again.seen[0].Bodies[0], sealed[0].Bodies[0]) {
			asker.Error("two daemons have sealed with one key")
		}
		answerer.expect("three")
		answerer.send(there, "four")
		answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
		asker.expect("four")
	})
}

// Spec 7.5: the new certificate is imported first, then used, then the old one is dropped. Nothing waits.
func TestCertificatesAreReplacedInTheMiddleOfADialog(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		there := answerer.expect("one")
		speak := func(text string) {
			asker.Helper()
			asker.wait()
			answerer.wait()
			asker.send(handle, text)
			asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
			answerer.expect(text)
			answerer.send(there, "re "+text)
			answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
			asker.expect("re " + text)
		}
		answerer.certify(asker, "second", 2*time.Hour)
		speak("answerer has two")
		answerer.exec("select parley.drop_certificate('own first')")
		asker.exec("select parley.drop_certificate('far first')")
		speak("answerer has the new one")
		asker.certify(answerer, "second", 2*time.Hour)
		speak("asker has two")
		asker.exec("select parley.drop_certificate('own first')")
		answerer.exec("select parley.drop_certificate('far first')")
		speak("asker has the new one")
		asker.restart()
		answerer.restart()
		speak("restarted")
	})
}

func TestRevokedCertificateCountsForNothing(t *testing.T) {
	t.Parallel()
	bothModes(t, func(_ *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		there := answerer.expect("one")
		answerer.exec("select parley.alter_certificate('own first', revoked => true)")
		answerer.wait()
		asker.send(handle, "two")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "9733")
		asker.exec("select parley.alter_certificate('far first', revoked => true)")
		asker.wait()
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "9731")
		for _, s := range []*side{asker, answerer} {
			s.exec("select parley.alter_certificate(name, revoked => false) from parley.certificates")
			s.wait()
		}
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		if got := answerer.expect("two"); got != there {
			asker.Errorf("it came in another conversation, %s", got)
		}
	})
}

// No other key continues a dialog: neither in clear, nor that of another role that may send to the service.
func TestDialogIsContinuedByItsOtherSideAlone(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		way := &forwarder{}
		asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
		answerer.expect("one")

		// Mallory has a certificate that the answerer knows, and a database of her own, in which she begins a dialog.
		mallory := newSide(t, "mallory", asking)
		mallory.exec("select parley.create_route('there', address => 'tcp://there.test:4022', service_name => $1)", answering)
		certificate := one[[]byte](answerer, "select certificate from parley.certificates where name = 'own first'")
		mallory.noError(truststore.CreateCertificate(t.Context(), mallory.pool, truststore.NewCertificate{
			Name: "answerer", Owner: mallory.far, Bytes: certificate, IsActive: true,
		}))
		answerer.exec("create role " + quoted(mallory.owner+" there"))
		t.Cleanup(func() {
			_, _ = answerer.pool.Exec(background, "drop role "+quoted(mallory.owner+" there"))
		})
		own, sealed, err := dialogsecurity.NewCertificate(mallory.keys, "mallory", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		mallory.noError(err)
		mallory.noError(truststore.CreateCertificate(t.Context(), mallory.pool, truststore.NewCertificate{
			Name: "mallory", Owner: mallory.owner, Bytes: own.Bytes, PrivateKey: sealed, IsActive: true,
		}))
		answerer.noError(truststore.CreateCertificate(t.Context(), answerer.pool, truststore.NewCertificate{
			Name: "mallory", Owner: mallory.owner + " there", Bytes: own.Bytes, IsActive: true,
		}))
		for _, anonymous := range []bool{true, false} {
			mallory.exec("select parley.create_remote_service_binding('answerer', $1, $2, $3)", answering, mallory.far, anonymous)
			handle := mallory.begin(true)
			mallory.send(handle, "forged")
			// Her dialog takes the id and the number of the other one, and her daemon speaks for the asker's broker.
			mallory.exec("update parley._p_endpoint set conversation_id = $1 where conversation_handle = $2", way.seen[0].ConversationID, handle)
			runs := mallory.take()
			runs[0].FirstSequence = 1
			forged, held, err := mallory.guard.Seal(t.Context(), mallory.pool, asker.speaker(), runs)
			mallory.noError(err)
			if len(held) > 0 {
				t.Fatalf("mallory could not seal: %v", held)
			}
			answerer.requireOutcomes(answerer.accept(asker.speaker(), forged...), transportstore.Held, "not the other side of the dialog")
			mallory.exec("delete from parley._p_transit; delete from parley._p_dialog_security; delete from parley._p_endpoint")
			mallory.exec("select parley.drop_remote_service_binding('answerer')")
			mallory.restart()
		}
		inClear := transportstore.Run{
			ConversationID: way.seen[0].ConversationID, FromInitiator: true, FirstSequence: 1, MessageType: "DEFAULT",
			Bodies: [][]byte{[]byte("forged")}, FromService: asking, ToService: answering, Contract: "DEFAULT",
		}
		answerer.requireOutcomes(answerer.accept(asker.speaker(), inClear), transportstore.Held, "in clear")
		asker.send(handle, "two")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("two")
	})
}

func TestMessageWaitsWhileTheMasterKeyIsMissing(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		other := filepath.Join(t.TempDir(), "other.key")
		asker.noError(dialogsecurity.CreateMasterKey(other))
		otherKeys, err := dialogsecurity.OpenMasterKeys(other)
		asker.noError(err)

		handle := asker.begin(true)
		asker.send(handle, "one")
		asker.guard = dialogsecurity.New(dialogsecurity.Config{})
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "28054")
		if status := one[string](asker, "select max(transmission_status) from parley.transmission_queue"); !strings.Contains(status, "--master-key") {
			t.Errorf("the transmission queue says %q", status)
		}
		asker.restart()
		answerer.guard = dialogsecurity.New(dialogsecurity.Config{})
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "28054")
		answerer.guard = dialogsecurity.New(dialogsecurity.Config{Keys: otherKeys})
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "28050")
		answerer.exec("create table spoiled as select private_key from parley._p_certificate where private_key is not null")
		answerer.exec("update parley._p_certificate set private_key = set_byte(private_key, 50, get_byte(private_key, 50) # 1) where private_key is not null")
		answerer.restart()
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "28051")
		answerer.exec("update parley._p_certificate set private_key = (select private_key from spoiled) where private_key is not null")
		answerer.restart()
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		there := answerer.expect("one")

		// A reply needs it too: for the initiator's key, or for the signature.
		answerer.send(there, "two")
		answerer.guard = dialogsecurity.New(dialogsecurity.Config{Keys: otherKeys})
		answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Held, "28050")
		answerer.restart()
		answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
		asker.expect("two")
	})
}

// The daemons go on with the key files they have while everything is sealed anew.
func TestMasterKeyIsChangedInTheMiddleOfADialog(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		there := answerer.expect("one")
		for _, s := range []*side{asker, answerer} {
			before := one[string](s, "select min(master_key) from parley.certificates")
			s.noError(dialogsecurity.AddMasterKey(s.keyPath))
			keys, err := dialogsecurity.OpenMasterKeys(s.keyPath)
			s.noError(err)
			if changed, err := dialogsecurity.SealAnew(t.Context(), s.pool, keys); err != nil || changed == 0 {
				t.Errorf("%d secrets were sealed anew: %v", changed, err)
			}
			if changed, err := dialogsecurity.SealAnew(t.Context(), s.pool, keys); err != nil || changed != 0 {
				t.Errorf("%d secrets were sealed anew once more: %v", changed, err)
			}
			if after := one[string](s, "select min(master_key) from parley.certificates"); after == before || after != keys.Current().String() {
				t.Errorf("sealed under %s, before under %s", after, before)
			}
		}
		answerer.wait()
		answerer.send(there, "two")
		answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
		asker.expect("two")
		for _, s := range []*side{asker, answerer} {
			s.noError(dialogsecurity.ForgetOldMasterKeys(s.keyPath))
			s.restart()
		}
		answerer.send(there, "three")
		answerer.requireOutcomes(answerer.carry(asker, &forwarder{}), transportstore.Accepted, "")
		asker.expect("three")
	})
}

// The signer counts in addition to the peer of the link, and not instead.
func TestSignatureDoesNotLetInWhatARevokedPeerBrings(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	asker.bind(false)
	key := strings.Repeat("a1", 32)
	answerer.exec("select parley.trust_peer($1, 'one')", key)
	asker.send(asker.begin(true), strings.Repeat("x", 300_000))
	runs := asker.take()
	speaker, sealed := asker.record(0, runs)
	bring := func() []transportstore.Result {
		t.Helper()
		results, err := answerer.guard.Accept(t.Context(), answerer.pool, transportstore.Arrival{Speaker: speaker, Runs: sealed, Identities: []string{"peer:" + key}})
		answerer.noError(err)
		return results
	}
	bringPart := func() int64 {
		t.Helper()
		fragment, err := asker.guard.SealFragment(sealed[0], transportstore.Fragment{
			Speaker: speaker, ConversationID: runs[0].ConversationID, FromInitiator: true, Size: runs[0].Size,
			Data: make([]byte, 100_000), ToService: answering, Identity: "peer:" + key,
		})
		asker.noError(err)
		stored, err := answerer.guard.AcceptFragment(t.Context(), answerer.pool, fragment)
		answerer.noError(err)
		return stored
	}
	answerer.exec("select parley.revoke_peer('one')")
	answerer.requireOutcomes(bring(), transportstore.Held, "the peer was revoked")
	if stored := bringPart(); stored > 0 {
		t.Errorf("%d bytes were stored", stored)
	}
	answerer.exec("select parley.drop_peer('one')")
	if stored := bringPart(); stored != 100_000 {
		t.Errorf("%d bytes were stored", stored)
	}
}
