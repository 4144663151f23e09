package dialogsecurity

import (
	"bytes"
	"encoding/pem"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley"
)

// certified is a certificate whose private keys are sealed under a master key.
type certified struct {
	Certificate
	keys   *MasterKeys
	sealed []byte
}

func newCertified(t testing.TB) certified {
	t.Helper()
	keys := masterKeys(t)
	certificate, sealed, err := NewCertificate(keys, "stock", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return certified{certificate, keys, sealed}
}

// sealingFor has the signing key of one certificate and the sealing key of another one.
func (c certified) sealingFor(t testing.TB, other Certificate) Certificate {
	t.Helper()
	const signingEnds = certificateHead - keySize
	mixed, err := ParseCertificate(slices.Concat(c.Bytes[:signingEnds], other.Bytes[signingEnds:certificateHead], c.Bytes[certificateHead:]))
	if err != nil {
		t.Fatal(err)
	}
	return mixed
}

func TestExportedFileIsBelievedForTheCertificateAndBrokerInstanceThatItsKeyHasSigned(t *testing.T) {
	t.Parallel()
	own, other := newCertified(t), newCertified(t)
	instance := parley.UUID{1}
	for _, test := range []struct {
		name   string
		change func(e *Exported)
		want   error
	}{
		{"nothing is changed", func(*Exported) {}, nil},
		{"no proof", func(e *Exported) { e.Proof = nil }, ErrNoExportProof},
		{"an empty proof", func(e *Exported) { e.Proof = []byte{} }, ErrWrongExportProof},
		{"a changed proof", func(e *Exported) { e.Proof[5] ^= 1 }, ErrWrongExportProof},
		{"another broker instance", func(e *Exported) { e.Instance[15]++ }, ErrWrongExportProof},
		{"no broker instance", func(e *Exported) { e.Instance = parley.UUID{} }, ErrWrongExportProof},
		{"somebody else's certificate", func(e *Exported) { e.Certificate = other.Certificate }, ErrWrongExportProof},
		{"somebody else's sealing key", func(e *Exported) { e.Certificate = own.sealingFor(t, other.Certificate) }, ErrWrongExportProof},
		{"a proof of pairing", func(e *Exported) {
			proof, err := ProvePossession(own.keys, own.Certificate, own.sealed, instance[:])
			if err != nil {
				t.Fatal(err)
			}
			e.Proof = proof
		}, ErrWrongExportProof},
	} {
		t.Run(test.name, func(t *testing.T) {
			exported, err := ProveExport(own.keys, own.Certificate, own.sealed, instance)
			if err != nil {
				t.Fatal(err)
			}
			test.change(&exported)
			imported, err := Import(exported.Text())
			if err != nil {
				t.Fatal(err)
			}
			if err := imported.Verify(); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if !bytes.Equal(imported.Bytes, exported.Bytes) || imported.Proof != nil && imported.Instance != exported.Instance {
				t.Errorf("imported %+v", imported)
			}
		})
	}
}

// Half a proof, or one that cannot be read, is a wrong one.
func TestHeadersOfAnExportedFileThatCannotBeReadProveNothing(t *testing.T) {
	t.Parallel()
	own := newCertified(t)
	exported, err := ProveExport(own.keys, own.Certificate, own.sealed, parley.UUID{1})
	if err != nil {
		t.Fatal(err)
	}
	for header, value := range map[string]string{proofHeader: "no digits", instanceHeader: "no instance"} {
		for _, isLeftOut := range []bool{false, true} {
			block, _ := pem.Decode(exported.Text())
			if block.Headers[header] = value; isLeftOut {
				delete(block.Headers, header)
			}
			imported, err := Import(pem.EncodeToMemory(block))
			if err == nil {
				err = imported.Verify()
			}
			if !errors.Is(err, ErrWrongExportProof) {
				t.Errorf("%s %q, left out: %v: got %v", header, value, isLeftOut, err)
			}
		}
	}
}

// The public part alone, or another master key, proves nothing.
func TestNobodyProvesAnExportWithoutThePrivateKey(t *testing.T) {
	t.Parallel()
	own, other := newCertified(t), newCertified(t)
	for name, test := range map[string]struct {
		keys   *MasterKeys
		sealed []byte
		want   error
	}{
		"no master key":                 {nil, own.sealed, ErrNoMasterKey},
		"another master key":            {other.keys, own.sealed, ErrOtherMasterKey},
		"no private key":                {own.keys, nil, ErrSpoiled},
		"that of another certificate":   {other.keys, other.sealed, ErrSpoiled},
		"both keys, of the certificate": {own.keys, own.sealed, nil},
	} {
		if exported, err := ProveExport(test.keys, own.Certificate, test.sealed, parley.UUID{1}); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v and %+v", name, err, exported)
		}
	}
}

// A proof at pairing is for one certificate: for both of its keys.
func TestProofOfPossessionIsForBothKeysOfACertificate(t *testing.T) {
	t.Parallel()
	own, other := newCertified(t), newCertified(t)
	context := []byte("this connection")
	proof, err := ProvePossession(own.keys, own.Certificate, own.sealed, context)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyPossession(own.Certificate, context, proof); err != nil {
		t.Error(err)
	}
	for name, certificate := range map[string]Certificate{
		"somebody else's certificate": other.Certificate, "somebody else's sealing key": own.sealingFor(t, other.Certificate),
	} {
		if err := VerifyPossession(certificate, context, proof); !errors.Is(err, ErrNotPossessed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// With the sealing key of another certificate nothing can be read: what is sealed for such a certificate names its fingerprint, and opens
// neither for the true owner of the key, under its own certificate, nor for the forger.
func TestWhatIsSealedForACertificateWithSomebodyElsesSealingKeyOpensForNobody(t *testing.T) {
	t.Parallel()
	thief, owner, sender := newIdentity(t, "thief"), newIdentity(t, "owner"), newIdentity(t, "sender")
	mixed := certified{Certificate: thief.Certificate}.sealingFor(t, owner.Certificate)
	made, err := agree(newSecret(), mixed, &sender.Certificate, sender.keys)
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseHeader(append(bytes.Clone(made.head), make([]byte, saltSize)...))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(h.receiver, mixed.Fingerprint[:]) {
		t.Errorf("sealed for %x", h.receiver)
	}
	if _, err := openAgreement(h, &sender.Certificate, thief.keys); !errors.Is(err, errForgedAgreement) {
		t.Errorf("the thief: %v", err)
	}
	// Under the name of its own certificate the signature does not count any more, and without one the seal does not.
	copied := bytes.Clone(h.agreement)
	copy(copied[2:], owner.Fingerprint[:])
	copied[1] = kindAnonymous
	copied = slices.Concat(copied[:2+fingerprintSize], h.sealedSecret)
	if h, err = parseHeader(append(copied, make([]byte, saltSize)...)); err != nil {
		t.Fatal(err)
	}
	if _, err := openAgreement(h, nil, owner.keys); !errors.Is(err, errForgedAgreement) {
		t.Errorf("the owner: %v", err)
	}
}
