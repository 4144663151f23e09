package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/verb"
)

func invitePeer(a *verb.App, cmd *cobra.Command, f pairFlags) error {
	ctx := cmd.Context()
	conn, err := a.Attach(ctx)
	if err != nil {
		return err
	}
	defer verb.CloseConnection(ctx, conn)
	token, err := truststore.InvitePeer(ctx, conn, f.validFor, f.choice)
	if err != nil {
		return err
	}
	if a.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), map[string]any{"token": token, "valid_seconds": int(f.validFor / time.Second)})
	}
	fmt.Fprintf(a.Stderr, "A broker with this token is trusted, once, within %s. At the other side: parley pair %s --token TOKEN\n",
		f.validFor, whereToCall(ctx, conn))
	_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
	return err
}

// whereToCall is the address that people at the other side need, as far as a daemon of the database has reported it.
func whereToCall(ctx context.Context, conn *pgx.Conn) string {
	address, err := truststore.AdvertisedAddress(ctx, conn, "")
	if err != nil || address == "" {
		return "HOST:PORT"
	}
	return strings.TrimPrefix(address, "tcp://")
}

// acceptPoll is how often --accept polls for requests.
const acceptPoll = 300 * time.Millisecond

// acceptPeer waits for a call.
func acceptPeer(a *verb.App, cmd *cobra.Command, f *pairFlags) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.validFor)
	defer cancel()
	conn, err := a.Attach(ctx)
	if err != nil {
		return err
	}
	defer verb.CloseConnection(cmd.Context(), conn)
	open, err := truststore.OpenPairing(ctx, conn, f.validFor)
	if err != nil {
		return err
	}
	// After Ctrl-C nobody may ask any more, and nobody waits.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), verb.CloseTimeout)
		defer cancel()
		if conn.IsClosed() { // Ctrl-C has taken it
			another, err := a.Attach(ctx)
			if err != nil {
				return // the window closes by itself
			}
			defer verb.CloseConnection(ctx, another)
			_ = truststore.ClosePairing(ctx, another, open)
			return
		}
		_ = truststore.ClosePairing(ctx, conn, open)
	}()
	f.asker.Printf("Waiting for the other side to call: parley pair %s\n", whereToCall(ctx, conn))
	request, err := awaitRequest(ctx, conn, f, open)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("nobody was paired with within %s", f.validFor)
	}
	if err != nil {
		return err
	}
	peers, err := truststore.ReadPeers(ctx, conn)
	if err != nil {
		return err
	}
	for _, p := range peers {
		if slices.Contains(p.Fingerprints, request.Fingerprint) {
			return reportPaired(a, cmd, conn, request.Offer, paired{
				Peer: p.Name, Fingerprint: request.Fingerprint, Address: verb.OrEmpty(p.Address), Role: verb.OrEmpty(p.Role),
			})
		}
	}
	return errors.New("the peer was dropped meanwhile")
}

// awaitRequest asks people about each caller, until one is trusted.
func awaitRequest(ctx context.Context, conn *pgx.Conn, f *pairFlags, open parley.UUID) (r truststore.PairingRequest, err error) {
	asked := map[parley.UUID]bool{}
	poll := time.NewTicker(acceptPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-poll.C:
		}
		requests, err := truststore.ReadPairingRequests(ctx, conn, open)
		if err != nil {
			return r, err
		}
		for _, r := range requests {
			switch {
			case r.State == truststore.PairingDone:
				return r, nil
			case r.State == truststore.PairingGone && asked[r.ID]:
				asked[r.ID] = false
				f.asker.Printf("It has gone. Waiting for the next one to call.\n")
			case r.State == truststore.PairingWaiting && !asked[r.ID]:
				asked[r.ID] = true
				if err := f.decide(ctx, conn, r); err != nil {
					return r, err
				}
			}
		}
	}
}

// decide asks people about a caller.
func (f *pairFlags) decide(ctx context.Context, conn *pgx.Conn, r truststore.PairingRequest) error {
	if err := f.checkFingerprint(r.Fingerprint); err != nil {
		f.asker.Printf("%s was sent away: %v\n", r.Remote, err)
		return truststore.RefusePairing(ctx, conn, r.ID)
	}
	if !f.yes {
		caller, err := identity.ParseFingerprint(r.Fingerprint)
		if err != nil {
			return err
		}
		own, err := truststore.OwnPairingOffer(ctx, conn)
		if err != nil {
			return err
		}
		f.asker.Printf("%s calls from %s.\n  its key:  %s\n", cmp.Or(verb.OneLine(r.Offer.Name, 60), "A broker"), r.Remote, caller.Words())
		f.printCertificates("its", r.Offer.DialogCertificates)
		f.printCertificates("your", own.DialogCertificates)
		f.asker.Printf("  code:     %s\n", r.Code)
		isSame, err := f.asker.Confirm(ctx, "Does the other side show the same code?")
		if err != nil {
			return err
		}
		if !isSame {
			f.asker.Printf("It was sent away. Waiting for the next one to call.\n")
			return truststore.RefusePairing(ctx, conn, r.ID)
		}
		if err := f.ask(ctx); err != nil {
			return err
		}
	}
	err := truststore.ConfirmPairing(ctx, conn, r.ID, f.choice)
	if number, _ := parley.ErrorNumber(err); number == 15151 {
		f.asker.Printf("%v\n", err) // it has gone, or there is no such role
		f.choice.Role = ""
		return truststore.RefusePairing(ctx, conn, r.ID)
	}
	return err
}
