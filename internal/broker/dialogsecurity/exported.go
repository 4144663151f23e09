package dialogsecurity

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/parley-broker/parley"
)

// The headers of an exported file.
const (
	pemType           = "PARLEY CERTIFICATE"
	fingerprintHeader = "Fingerprint"
	subjectHeader     = "Subject"
	expiresHeader     = "Expires"
	instanceHeader    = "Broker-Instance"
	proofHeader       = "Proof"
)

// exportDomain keeps the proof in a file from being anything else that the key signs, one for pairing in particular.
const exportDomain = "parley exported dialog certificate 1\x00"

// Reasons why the proof in a file is not believed.
var (
	ErrNoExportProof    = errors.New("the file carries no proof by the private key of the certificate")
	ErrWrongExportProof = errors.New("the proof in the file is not that of this certificate for this broker instance")
)

// Exported is the content of a file: a certificate, and the broker instance for which its private key has signed.
type Exported struct {
	Certificate
	// Instance and Proof are claims of the file until [Exported.Verify].
	Instance parley.UUID
	Proof    []byte // none: nil
}

// ProveExport makes the content of a file that proves with the private signing key that the certificate was exported by a broker instance.
//
// Errors: those of opening what is sealed under the master key.
func ProveExport(keys *MasterKeys, certificate Certificate, sealedKeys []byte, instance parley.UUID) (Exported, error) {
	pair, err := openKeyPair(keys, certificate.Fingerprint, sealedKeys)
	if err != nil {
		return Exported{}, err
	}
	return Exported{Certificate: certificate, Instance: instance, Proof: ed25519.Sign(pair.signing, exportOf(certificate, instance))}, nil
}

// Verify checks that the private signing key of the certificate has signed for the broker instance. The fingerprint in the text
// is made of both public keys, so neither of them can be exchanged.
//
// Errors: [ErrNoExportProof], [ErrWrongExportProof].
func (e Exported) Verify() error {
	switch {
	case e.Proof == nil:
		return ErrNoExportProof
	case e.Instance.IsZero() || !ed25519.Verify(e.signing, exportOf(e.Certificate, e.Instance), e.Proof):
		return ErrWrongExportProof
	}
	return nil
}

func exportOf(certificate Certificate, instance parley.UUID) []byte {
	return append(append([]byte(exportDomain), certificate.Fingerprint[:]...), instance[:]...)
}

// Text writes the file, for [Import].
func (e Exported) Text() []byte {
	headers := map[string]string{
		fingerprintHeader: fmt.Sprintf("%x", e.Fingerprint), subjectHeader: fmt.Sprintf("%q", e.Subject),
		expiresHeader: e.End.UTC().Format(time.DateOnly),
	}
	if e.Proof != nil {
		headers[instanceHeader], headers[proofHeader] = e.Instance.String(), hex.EncodeToString(e.Proof)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Headers: headers, Bytes: e.Bytes})
}

// Import reads what [Exported.Text] has written, and verifies nothing of it. The data in the certificate count; of the headers the broker
// instance and the proof are read.
func Import(text []byte) (e Exported, err error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return e, errMalformedCertificate
	}
	if e.Certificate, err = ParseCertificate(block.Bytes); err != nil {
		return e, err
	}
	instance, hasInstance := block.Headers[instanceHeader]
	proof, hasProof := block.Headers[proofHeader]
	if !hasInstance && !hasProof {
		return e, nil
	}
	// A header that cannot be read leaves a proof that is wrong.
	e.Proof = []byte{}
	var unread error
	if e.Instance, unread = parley.ParseUUID(instance); unread == nil {
		if signature, unread := hex.DecodeString(proof); unread == nil {
			e.Proof = signature
		}
	}
	return e, nil
}
