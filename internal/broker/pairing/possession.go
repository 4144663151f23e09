package pairing

import (
	"context"
	"fmt"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// proofs are those that a side has the private keys of the certificates in an offer, in the order of the offer.
type proofs [][]byte

// possessionContext is the text that a side signs: this connection, both keys, which side it is, and the database that offers. So a proof
// is worth nothing on another connection, of the other side, or for another broker instance.
func (c channel) possessionContext(who string, instance parley.UUID) []byte {
	return c.seal(nil, "possession of "+who, instance[:])
}

// prove signs with every certificate of an offer.
func prove(
	ctx context.Context, db parley.DB, keys *dialogsecurity.MasterKeys, bound channel, who string, offer truststore.PairingOffer,
) (all proofs, err error) {
	for _, database := range offer.Databases {
		for _, data := range database.Certificates {
			certificate, err := dialogsecurity.ParseCertificate(data)
			if err != nil {
				return nil, err
			}
			held, err := truststore.JudgeCertificates(ctx, db, nil, certificate.Fingerprint[:], "")
			if err != nil {
				return nil, err
			}
			proof, err := dialogsecurity.ProvePossession(keys, certificate, held.PrivateKey, bound.possessionContext(who, database.Instance))
			if err != nil {
				return nil, fmt.Errorf("prove to have the private key of the certificate %x: %w", certificate.Fingerprint, err)
			}
			all = append(all, proof)
		}
	}
	return all, nil
}

// verify refuses an offer with a certificate whose private key the other side has not proven to have.
func (p proofs) verify(bound channel, who string, offer truststore.PairingOffer) error {
	for _, database := range offer.Databases {
		for _, data := range database.Certificates {
			certificate, err := dialogsecurity.ParseCertificate(data)
			if err != nil {
				return err
			}
			var proof []byte
			if len(p) > 0 {
				proof, p = p[0], p[1:]
			}
			if err := dialogsecurity.VerifyPossession(certificate, bound.possessionContext(who, database.Instance), proof); err != nil {
				return err
			}
		}
	}
	return nil
}

// provable leaves out the dialog certificates of an offer unless all of them can be proven: without the master key that their
// private keys are sealed under the pairing goes on without them.
func provable(
	ctx context.Context, db parley.DB, keys *dialogsecurity.MasterKeys, offer truststore.PairingOffer,
) (_ truststore.PairingOffer, obstacle error) {
	if _, obstacle = prove(ctx, db, keys, channel{}, "", offer); obstacle != nil {
		return offer.WithoutDialogCertificates(), obstacle
	}
	return offer, nil
}

// Offer reads what a database states about itself, as far as it can be proven with the master key of the daemon. The obstacle states
// why dialog certificates are left out.
func Offer(ctx context.Context, db parley.DB, keys *dialogsecurity.MasterKeys) (offer truststore.PairingOffer, obstacle, err error) {
	if offer, err = truststore.OwnPairingOffer(ctx, db); err != nil {
		return offer, nil, err
	}
	offer, obstacle = provable(ctx, db, keys, offer)
	return offer, obstacle, nil
}
