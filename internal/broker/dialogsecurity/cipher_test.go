package dialogsecurity

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// masterKeys makes a new master key in a file of its own.
func masterKeys(t testing.TB) *MasterKeys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := CreateMasterKey(path); err != nil {
		t.Fatal(err)
	}
	keys, err := OpenMasterKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// identity is a certificate with its private keys.
type identity struct {
	Certificate
	keys keyPair
}

func newIdentity(t testing.TB, subject string) identity {
	t.Helper()
	master := masterKeys(t)
	certificate, sealed, err := NewCertificate(master, subject, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := openKeyPair(master, certificate.Fingerprint, sealed)
	if err != nil {
		t.Fatal(err)
	}
	return identity{certificate, keys}
}

func aSpeaker() transportstore.Speaker {
	return transportstore.Speaker{Instance: parley.UUID{1}, Epoch: 3, Term: 5}
}

func aRun() transportstore.Run {
	return transportstore.Run{
		EndpointID: 7, ConversationID: parley.UUID{2}, FromInitiator: true, FirstSequence: 40, MessageType: "order",
		Bodies:      [][]byte{[]byte("first"), nil, []byte("third")},
		FromService: "shop", ToService: "stock", Contract: "ordering", ToBroker: parley.UUID{3}, Priority: 5,
		EnqueuedAt: time.Now(), EndsAt: time.Now().Add(time.Hour), TraceContext: "00-1",
	}
}

// anAgreement is one in full security, as the receiver has it.
func anAgreement(t testing.TB) *agreement {
	t.Helper()
	signer, receiver := newIdentity(t, "signer"), newIdentity(t, "receiver")
	made, err := agree(newSecret(), receiver.Certificate, &signer.Certificate, signer.keys)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

var (
	aTime = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	aSalt = newSalt(aTime)
)

func TestSealedRunOpensAsItWas(t *testing.T) {
	t.Parallel()
	a, run := anAgreement(t), aRun()
	sealed := sealRun(a, aSalt, aSpeaker(), run, nil)
	if !reflect.DeepEqual(run.Bodies, aRun().Bodies) {
		t.Error("sealing has changed what it was given")
	}
	if len(sealed.Security) > transportstore.SecurityMax {
		t.Errorf("the header has %d bytes", len(sealed.Security))
	}
	for i, body := range sealed.Bodies {
		if len(body) != len(run.Bodies[i])+transportstore.SealSize {
			t.Errorf("body %d grew by %d bytes", i, len(body)-len(run.Bodies[i]))
		}
		if len(run.Bodies[i]) > 0 && bytes.Contains(body, run.Bodies[i]) {
			t.Errorf("body %d is in clear", i)
		}
	}
	h, err := parseHeader(sealed.Security)
	if err != nil {
		t.Fatal(err)
	}
	opened, _, err := openRun(a, h, aSpeaker(), sealed)
	if err != nil {
		t.Fatal(err)
	}
	if !opened.SealedAt.Equal(aTime) {
		t.Errorf("sealed at %s, want %s", opened.SealedAt, aTime)
	}
	run.IsEncrypted, run.SealedAt = true, opened.SealedAt
	if !reflect.DeepEqual(opened, run) {
		t.Errorf("opened %+v, want %+v", opened, run)
	}
}

// A forwarder may send a run in two parts, or again from its middle: each message still has its number.
func TestPartOfASealedRunOpens(t *testing.T) {
	t.Parallel()
	a := anAgreement(t)
	sealed := sealRun(a, aSalt, aSpeaker(), aRun(), nil)
	h, _ := parseHeader(sealed.Security)
	sealed.FirstSequence, sealed.Bodies = sealed.FirstSequence+2, sealed.Bodies[2:]
	opened, _, err := openRun(a, h, aSpeaker(), sealed)
	if err != nil || string(opened.Bodies[0]) != "third" {
		t.Errorf("opened %q, %v", opened.Bodies, err)
	}
}

// Everything that a run states about itself is verified.
func TestChangedRunDoesNotOpen(t *testing.T) {
	t.Parallel()
	changes := map[string]func(speaker *transportstore.Speaker, run *transportstore.Run){
		"instance":          func(s *transportstore.Speaker, _ *transportstore.Run) { s.Instance[5]++ },
		"epoch":             func(s *transportstore.Speaker, _ *transportstore.Run) { s.Epoch++ },
		"conversation":      func(_ *transportstore.Speaker, r *transportstore.Run) { r.ConversationID[15]++ },
		"direction":         func(_ *transportstore.Speaker, r *transportstore.Run) { r.FromInitiator = false },
		"number":            func(_ *transportstore.Speaker, r *transportstore.Run) { r.FirstSequence++ },
		"type":              func(_ *transportstore.Speaker, r *transportstore.Run) { r.MessageType = "Order" },
		"size":              func(_ *transportstore.Speaker, r *transportstore.Run) { r.Size = 5 },
		"sender":            func(_ *transportstore.Speaker, r *transportstore.Run) { r.FromService = "shops" },
		"boundary of names": func(_ *transportstore.Speaker, r *transportstore.Run) { r.FromService, r.ToService = "shops", "tock" },
		"service":           func(_ *transportstore.Speaker, r *transportstore.Run) { r.ToService = "" },
		"contract":          func(_ *transportstore.Speaker, r *transportstore.Run) { r.Contract += " " },
		"broker":            func(_ *transportstore.Speaker, r *transportstore.Run) { r.ToBroker = parley.UUID{} },
		"priority":          func(_ *transportstore.Speaker, r *transportstore.Run) { r.Priority = 10 },
		"time":              func(_ *transportstore.Speaker, r *transportstore.Run) { r.EnqueuedAt = r.EnqueuedAt.Add(time.Second) },
		"lifetime":          func(_ *transportstore.Speaker, r *transportstore.Run) { r.EndsAt = time.Time{} },
		"trace":             func(_ *transportstore.Speaker, r *transportstore.Run) { r.TraceContext = "" },
		"order of bodies": func(_ *transportstore.Speaker, r *transportstore.Run) {
			r.Bodies[0], r.Bodies[2] = r.Bodies[2], r.Bodies[0]
		},
		"a body":        func(_ *transportstore.Speaker, r *transportstore.Run) { r.Bodies[2][3] ^= 1 },
		"end of a body": func(_ *transportstore.Speaker, r *transportstore.Run) { r.Bodies[2] = r.Bodies[2][:len(r.Bodies[2])-1] },
		"body is gone":  func(_ *transportstore.Speaker, r *transportstore.Run) { r.Bodies[0] = nil },
		"all bodies":    func(_ *transportstore.Speaker, r *transportstore.Run) { r.Bodies = nil },
		"salt":          func(_ *transportstore.Speaker, r *transportstore.Run) { r.Security[len(r.Security)-1] ^= 1 },
		"tag": func(_ *transportstore.Speaker, r *transportstore.Run) {
			r.Security = append(r.Security, make([]byte, gcmTagSize)...)
		},
	}
	a := anAgreement(t)
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			speaker, sealed := aSpeaker(), sealRun(a, aSalt, aSpeaker(), aRun(), nil)
			change(&speaker, &sealed)
			h, err := parseHeader(sealed.Security)
			if err != nil {
				t.Fatal(err)
			}
			if opened, _, err := openRun(a, h, speaker, sealed); err == nil {
				t.Errorf("it opens: %+v", opened)
			}
		})
	}
}

// A run without bodies of its own, for a large message, carries a digest of the whole body.
func TestRunWithoutBodiesIsHeldToItsDigest(t *testing.T) {
	t.Parallel()
	a, run := anAgreement(t), aRun()
	run.Bodies, run.Size = nil, 1<<30
	digest := bytes.Repeat([]byte{4}, digestSize)
	open := func(run transportstore.Run) ([]byte, error) {
		h, err := parseHeader(run.Security)
		if err != nil {
			return nil, err
		}
		_, digest, err := openRun(a, h, aSpeaker(), run)
		return digest, err
	}
	sealed := sealRun(a, aSalt, aSpeaker(), run, digest)
	if got, err := open(sealed); err != nil || !bytes.Equal(got, digest) {
		t.Errorf("opened %x, %v", got, err)
	}
	sealed.Size--
	if _, err := open(sealed); err == nil {
		t.Error("it opens with another size")
	}
	run.Size = 0
	sealed = sealRun(a, aSalt, aSpeaker(), run, nil)
	if _, err := open(sealed); err != nil {
		t.Errorf("a run without anything: %v", err)
	}
	sealed.Security = sealed.Security[:len(sealed.Security)-gcmTagSize]
	if _, err := open(sealed); err == nil {
		t.Error("it opens without its tag")
	}
}

func TestChangedFragmentDoesNotOpen(t *testing.T) {
	t.Parallel()
	secret := newSecret()
	fragment := transportstore.Fragment{
		Speaker: aSpeaker(), ConversationID: parley.UUID{2}, Sequence: 8, Offset: 100, Size: 1000, ToService: "stock", ToBroker: parley.UUID{3},
	}
	sealed := cipherOfFragment(secret, aSalt, &fragment).Seal(nil, nonceOf(8, false), []byte("part"), nil)
	changes := map[string]func(f *transportstore.Fragment){
		"nothing": func(*transportstore.Fragment) {},
		"place":   func(f *transportstore.Fragment) { f.Offset = 0 },
		"size":    func(f *transportstore.Fragment) { f.Size++ },
		"number":  func(f *transportstore.Fragment) { f.Sequence++ },
		"side":    func(f *transportstore.Fragment) { f.FromInitiator = true },
		"epoch":   func(f *transportstore.Fragment) { f.Speaker.Epoch++ },
		"service": func(f *transportstore.Fragment) { f.ToService = "" },
	}
	for name, change := range changes {
		changed := fragment
		change(&changed)
		_, err := cipherOfFragment(secret, aSalt, &changed).Open(nil, nonceOf(changed.Sequence, false), sealed, nil)
		if (err == nil) != (name == "nothing") {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

func TestAgreementOpensForItsReceiverAlone(t *testing.T) {
	t.Parallel()
	signer, receiver, other := newIdentity(t, "signer"), newIdentity(t, "receiver"), newIdentity(t, "other")
	secret := newSecret()
	for _, isFull := range []bool{false, true} {
		t.Run(fmt.Sprintf("full %t", isFull), func(t *testing.T) {
			t.Parallel()
			var by *Certificate
			if isFull {
				by = &signer.Certificate
			}
			made, err := agree(secret, receiver.Certificate, by, signer.keys)
			if err != nil {
				t.Fatal(err)
			}
			header := func(head []byte) header {
				h, err := parseHeader(append(bytes.Clone(head), aSalt...))
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			opened, err := openAgreement(header(made.head), by, receiver.keys)
			if err != nil || opened.secret != secret {
				t.Errorf("the receiver cannot open it: %v", err)
			}
			if _, err := openAgreement(header(made.head), by, other.keys); err == nil {
				t.Error("somebody else opens it")
			}
			if isFull {
				if _, err := openAgreement(header(made.head), &other.Certificate, receiver.keys); err == nil {
					t.Error("it passes for signed by somebody else")
				}
				if _, err := openAgreement(header(made.head), nil, receiver.keys); err == nil {
					t.Error("it passes without a signer")
				}
			}
			for i := 2; i < len(made.head); i++ {
				changed := bytes.Clone(made.head)
				changed[i] ^= 0x40
				if _, err := openAgreement(header(changed), by, receiver.keys); err == nil {
					t.Fatalf("it opens with byte %d changed", i)
				}
			}
		})
	}
}

// A result counts for the run it answers, and as it was given.
func TestChangedResultIsNotBelieved(t *testing.T) {
	t.Parallel()
	a, run := anAgreement(t), aRun()
	result := transportstore.Result{Outcome: transportstore.Accepted, Next: 43, Broker: parley.UUID{3}, Epoch: 1}
	result.Security = sign(a, aSalt, &run, &result)
	changes := map[string]func(run *transportstore.Run, result *transportstore.Result, salt []byte){
		"nothing":      func(*transportstore.Run, *transportstore.Result, []byte) {},
		"outcome":      func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.Outcome = transportstore.Gone },
		"next":         func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.Next++ },
		"number":       func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.ErrorNumber = 8494 },
		"broker":       func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.Broker[1]++ },
		"epoch":        func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.Epoch++ },
		"text":         func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.Description = "no" },
		"proof":        func(_ *transportstore.Run, r *transportstore.Result, _ []byte) { r.Security = nil },
		"conversation": func(r *transportstore.Run, _ *transportstore.Result, _ []byte) { r.ConversationID[1]++ },
		"direction":    func(r *transportstore.Run, _ *transportstore.Result, _ []byte) { r.FromInitiator = !r.FromInitiator },
		"first":        func(r *transportstore.Run, _ *transportstore.Result, _ []byte) { r.FirstSequence = 0 },
		"other call":   func(_ *transportstore.Run, _ *transportstore.Result, salt []byte) { salt[0]++ },
	}
	for name, change := range changes {
		run, result, salt := run, result, bytes.Clone(aSalt)
		change(&run, &result, salt)
		if isSignedBy(a, salt, &run, &result) != (name == "nothing") {
			t.Errorf("%s changed: believed or not, it is wrong", name)
		}
	}
}

func BenchmarkSealAndOpen(b *testing.B) {
	for _, messages := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("100 B, %d in a run", messages), func(b *testing.B) {
			a, run := anAgreement(b), aRun()
			run.Bodies = make([][]byte, messages)
			for i := range run.Bodies {
				run.Bodies[i] = make([]byte, 100)
			}
			for b.Loop() {
				sealed := sealRun(a, aSalt, aSpeaker(), run, nil)
				h, err := parseHeader(sealed.Security)
				if err == nil {
					_, _, err = openRun(a, h, aSpeaker(), sealed)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(messages), "ns/message")
		})
	}
}

func BenchmarkAgreement(b *testing.B) {
	signer, receiver := newIdentity(b, "signer"), newIdentity(b, "receiver")
	for b.Loop() {
		made, err := agree(newSecret(), receiver.Certificate, &signer.Certificate, signer.keys)
		if err != nil {
			b.Fatal(err)
		}
		h, _ := parseHeader(append(made.head, aSalt...))
		if _, err := openAgreement(h, &signer.Certificate, receiver.keys); err != nil {
			b.Fatal(err)
		}
	}
}

// A tag stands for what has no bodies, and a digest for a large body: anything else was put together by a third party.
func TestRunWithATagThatIsNotItsOwnIsNotOpened(t *testing.T) {
	t.Parallel()
	a, run := anAgreement(t), aRun()
	withTag := sealRun(a, aSalt, aSpeaker(), run, nil)
	withTag.Security = append(withTag.Security, make([]byte, gcmTagSize)...)
	large, probe := aRun(), aRun()
	large.Bodies, large.Size = nil, 1000
	probe.Bodies, probe.Probe = nil, &transportstore.Probe{}
	digest := make([]byte, digestSize)
	for name, sealed := range map[string]transportstore.Run{
		"bodies and a tag":            withTag,
		"a large body without digest": sealRun(a, aSalt, aSpeaker(), large, nil),
		"a probe with a digest":       sealRun(a, aSalt, aSpeaker(), probe, digest),
	} {
		h, err := parseHeader(sealed.Security)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := openRun(a, h, aSpeaker(), sealed); err == nil {
			t.Errorf("opened: %s", name)
		}
	}
}

func TestForwarderPassesOnWhatIsSealedOrNeedNotBeEncrypted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		security    []byte
		isEncrypted bool
		want        bool
	}{
		{nil, false, true},
		{nil, true, false},
		{[]byte{linkOnly}, true, false},
		{[]byte{linkOnly}, false, false},
		{[]byte{headerVersion, kindFull}, true, true},
	} {
		if got := MayBeForwarded(c.security, c.isEncrypted); got != c.want {
			t.Errorf("security %x, encrypted %v: %v, want %v", c.security, c.isEncrypted, got, c.want)
		}
	}
}
