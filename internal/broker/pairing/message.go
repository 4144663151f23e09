package pairing

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

const (
	// Protocol is the name of this protocol in the handshake.
	Protocol = "parley-pair/1"
	// messageMax bounds a message: an offer of a few thousand services fits.
	messageMax = 256 << 10

	databasesMax = 64
	servicesMax  = 5000
	textMax      = 256
	// A certificate is 88 bytes and a subject; a broker has some for each of its databases.
	certificateMax  = 344
	certificatesMax = 64
)

// message is every message of the protocol; each step has some of its parts.
type message struct {
	// Invitation and Proof are those of a caller with an invitation.
	Invitation *parley.UUID `json:"invitation,omitempty"`
	Proof      []byte       `json:"proof,omitempty"`
	// Commitment binds a caller without an invitation to the number that it shows later.
	Commitment []byte `json:"commitment,omitempty"`
	Number     []byte `json:"number,omitempty"`
	// Verdict is whether the people at this side have confirmed.
	Verdict *bool                    `json:"verdict,omitempty"`
	Offer   *truststore.PairingOffer `json:"offer,omitempty"`
	// Possession proves that the side that sends the offer has the private keys of its dialog certificates.
	Possession proofs `json:"possession,omitempty"`
	// Failure ends the conversation, with a text for the people at the other side.
	Failure string `json:"failure,omitempty"`
}

// send writes a message.
func send(w io.Writer, m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write to the other broker: %w", err)
	}
	if len(text) > messageMax {
		return fmt.Errorf("write to the other broker: a message of %d bytes is too long", len(text))
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	if _, err := w.Write(append(frame, text...)); err != nil {
		return fmt.Errorf("write to the other broker: %w", err)
	}
	return nil
}

// receive reads a message and checks it.
func receive(r io.Reader) (m message, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, fmt.Errorf("read from the other broker: %w", err)
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > messageMax {
		return m, errors.New("the other broker sends too much")
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return m, fmt.Errorf("read from the other broker: %w", err)
	}
	if m, err = parse(text); err != nil {
		return m, err
	}
	if m.Failure != "" {
		return m, fmt.Errorf("the other broker refuses: %s", m.Failure)
	}
	return m, nil
}

// parse reads a message from JSON. Fields that newer versions add are passed over.
func parse(text []byte) (m message, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("the other broker sends what is no message: %w", err)
	}
	if decoder.More() {
		return m, errors.New("the other broker sends more than a message")
	}
	m.Failure = printable(m.Failure)
	if len(m.Possession) > databasesMax*certificatesMax {
		return m, errors.New("the other broker proves too much")
	}
	if m.Offer != nil {
		if err := check(*m.Offer); err != nil {
			return m, err
		}
	}
	return m, nil
}

// printable keeps the text of an unknown peer from steering a terminal.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > textMax {
		return string(runes[:textMax])
	}
	return text
}

// check refuses an offer that no broker makes.
func check(offer truststore.PairingOffer) error {
	texts := []string{offer.Name, offer.Address}
	if len(offer.Databases) > databasesMax {
		return errors.New("the other broker offers too many databases")
	}
	if len(offer.DialogCertificates) > certificatesMax {
		return errors.New("the other broker offers too many certificates")
	}
	for _, text := range offer.DialogCertificates {
		if fingerprint, err := identity.ParseFingerprint(text); err != nil || fingerprint.String() != text {
			return errors.New("the other broker offers what is no certificate")
		}
	}
	for _, database := range offer.Databases {
		if len(database.Certificates) > certificatesMax {
			return errors.New("the other broker offers too many certificates")
		}
		for _, certificate := range database.Certificates {
			if len(certificate) > certificateMax {
				return errors.New("the other broker offers what is no certificate")
			}
		}
		if len(database.Services) > servicesMax || database.Instance.IsZero() {
			return errors.New("the other broker offers too many services, or a database without identity")
		}
		texts = append(append(texts, database.Database), database.Services...)
	}
	for _, text := range texts {
		if len(text) > textMax || printable(text) != text {
			return errors.New("the other broker offers what has no proper name")
		}
	}
	return nil
}
