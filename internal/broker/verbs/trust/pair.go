package trust

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/pairing"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/verb"
)

type pairFlags struct {
	invite, accept bool
	validFor       time.Duration
	token          string
	yes            bool
	fingerprint    string
	advertised     Advertised
	identity       string
	certificate    string
	key            string
	choice         truststore.PairingChoice
	certificates   bool
	masterKey      MasterKeyFlag

	expected *identity.Fingerprint // of --fingerprint
	asker    verb.Asker
}

func newPairCommand(a *verb.App) *cobra.Command {
	var f pairFlags
	cmd := &cobra.Command{
		Use: "pair [HOST:PORT]",
		Example: "  parley pair --invite\n" +
			"  parley pair there.example.com:4022 --token parley1-...\n" +
			"  parley pair there.example.com:4022 --role stock_peer --route",
		Short: "Let two brokers on different servers trust each other",
		Long: `Let the brokers of two servers learn and trust each other's keys. No certificate authority is needed. One side waits, the
other one calls the address on which the daemon there listens (parley serve --listen).

With an invitation: one side makes it, and gives the token to the other one over a way that nobody else can read. It is good once.

  there  parley pair --invite
  here   parley pair there.example.com:4022 --token parley1-...

Or people on both sides compare a code, over the phone say, and confirm that it is the same. Nobody in between can make it so.

  there  parley pair --accept
  here   parley pair there.example.com:4022

Scripts that know the other side's key beforehand (parley certificate list) pair with --yes --fingerprint. With --role the peer
acts as that role of your database; without, only what is granted to PUBLIC counts. With --route routes to its services are
made. Dialog certificates are exchanged too, and the other side's stands for --role: what is missing for full dialog security then is a
remote service binding. Run the calling side as the user and on the host of its daemon, whose key it needs; the waiting side anywhere.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(args); err != nil {
				return err
			}
			f.asker = verb.Asker{In: a.Stdin, Out: a.Stderr}
			switch {
			case f.invite:
				return invitePeer(a, cmd, f)
			case f.accept:
				return acceptPeer(a, cmd, &f)
			}
			return callPeer(a, cmd, &f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.invite, "invite", false, "make an invitation and print its token")
	flags.BoolVar(&f.accept, "accept", false, "wait for somebody to call, and confirm a code with him")
	flags.DurationVar(&f.validFor, "for", 15*time.Minute, "how long the invitation is good, or to wait")
	flags.StringVar(&f.token, "token", "", "token of an invitation; - reads it from standard input")
	flags.BoolVar(&f.yes, "yes", false, "ask nothing; needs --token or --fingerprint")
	flags.StringVar(&f.fingerprint, "fingerprint", "", "the other side's key; any other is refused")
	flags.StringVar(&f.choice.Role, "role", "", "role of this database that the peer acts as (default none)")
	flags.StringVar(&f.choice.Name, "name", "",
		"name of the peer (default what it calls itself); that of a peer gives that one a further key")
	flags.BoolVar(&f.choice.Routes, "route", false, "make routes to the services of the peer")
	flags.BoolVar(&f.certificates, "dialog-certificates", true,
		"know the other side's dialog certificate too, under --role, and let it know this side's: see parley dialog-certificate")
	flags.StringVar((*string)(&f.advertised), "advertise", "",
		AdvertiseUsage+"; without it, and when the daemon does not say so either, the other side can make no routes back")
	flags.StringVar((*string)(&f.advertised), "address", "", "")
	_ = flags.MarkDeprecated("address", "it is called --advertise")
	addIdentityFlag(cmd, &f.identity)
	f.masterKey.AddFlag(cmd)
	flags.StringVar(&f.certificate, "certificate", "", "file with the certificate of this broker instead, with --certificate-key")
	flags.StringVar(&f.key, "certificate-key", "", "file with its private key")
	return cmd
}

func (f *pairFlags) validate(args []string) error {
	f.choice.IsWithoutCertificates = !f.certificates
	waits := f.invite || f.accept
	switch {
	case f.invite && f.accept:
		return verb.Usagef("--invite or --accept, not both")
	case waits == (len(args) == 1):
		return verb.Usagef("give HOST:PORT to call, or --invite or --accept to wait")
	case waits && (f.token != "" || f.advertised != ""):
		return verb.Usagef("--token and --advertise are for the side that calls; at the other side, parley serve has --advertise")
	case f.invite && (f.yes || f.fingerprint != ""):
		return verb.Usagef("--invite trusts whoever has the token; --yes and --fingerprint are for --accept")
	case f.yes && f.token == "" && f.fingerprint == "":
		return verb.Usagef("--yes needs --fingerprint or --token: somebody in between would be trusted")
	case f.validFor < 10*time.Second || f.validFor > 24*time.Hour:
		return verb.Usagef("--for %s: give 10s to 24h", f.validFor)
	case (f.certificate == "") != (f.key == ""):
		return verb.Usagef("--certificate and --certificate-key belong together")
	}
	for _, address := range args {
		if err := checkAddress("", address); err != nil {
			return err
		}
	}
	if err := f.advertised.Validate(); err != nil {
		return err
	}
	if f.fingerprint != "" {
		expected, err := identity.ParseFingerprint(f.fingerprint)
		if err != nil {
			return verb.AsUsage(err)
		}
		f.expected = &expected
	}
	return nil
}

// own gives the certificate of the daemon on this host.
func (f *pairFlags) own() (*identity.Certificate, error) {
	if f.certificate != "" {
		files, err := identity.OpenFiles(f.certificate, f.key, "")
		if err != nil {
			return nil, err
		}
		return files.Certificate()
	}
	folder, err := identity.OpenFolder(f.identity)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	own, _, err := folder.Create(identity.Config{Name: host})
	return own, err
}

// checkFingerprint refuses another key than the one that is expected.
func (f *pairFlags) checkFingerprint(found string) error {
	if f.expected != nil && f.expected.String() != found {
		return fmt.Errorf("the other side has the key %s, not the one that was expected: somebody may be in between", found)
	}
	return nil
}

// callPeer calls a broker that waits.
func callPeer(a *verb.App, cmd *cobra.Command, f *pairFlags, address string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.validFor)
	defer cancel()
	conn, err := a.Attach(ctx)
	if err != nil {
		return err
	}
	defer verb.CloseConnection(cmd.Context(), conn)
	own, err := f.own()
	if err != nil {
		return err
	}
	var ownCertificates []string
	call := pairing.Call{Address: address, Own: own, Confirm: func(ctx context.Context, found pairing.Found) (bool, error) {
		return f.confirmCalled(ctx, own, ownCertificates, found)
	}}
	if err := f.prepareOffer(ctx, conn, &call); err != nil {
		return err
	}
	if call.Offer.Address, err = f.ownAddress(ctx, conn, own); err != nil {
		return err
	}
	ownCertificates = call.Offer.DialogCertificates
	if f.token != "" {
		if call.Token, err = f.readToken(); err != nil {
			return err
		}
	}
	key, err := call.Do(ctx)
	if err != nil {
		return fmt.Errorf("pair with %s: %w", address, err)
	}
	if err := f.checkFingerprint(key.Fingerprint); err != nil {
		return err
	}
	if called := "tcp://" + address; key.Offer.Address == "" {
		key.Offer.Address = called
	} else if key.Offer.Address != called {
		f.asker.Printf("It was called at %s, and says that it is reached at %s: that is what counts.\n",
			called, verb.OneLine(key.Offer.Address, 0))
	}
	if err := f.ask(cmd.Context()); err != nil {
		return err
	}
	name, err := truststore.PairPeer(cmd.Context(), conn, key, f.choice)
	if err != nil {
		return err
	}
	return reportPaired(a, cmd, conn, key.Offer, paired{
		Peer: name, Fingerprint: key.Fingerprint, Address: key.Offer.Address, Role: f.choice.Role,
	})
}

// prepareOffer reads what this side states about itself. Its dialog certificates need the master key of the daemon, for the proof.
func (f *pairFlags) prepareOffer(ctx context.Context, conn *pgx.Conn, call *pairing.Call) (err error) {
	path, err := f.masterKey.find(f.identity)
	if err != nil {
		return err
	}
	keys, missing := dialogsecurity.OpenMasterKeys(path)
	if missing == nil {
		call.Keys = keys
	}
	call.DB = conn
	var obstacle error
	if call.Offer, obstacle, err = pairing.Offer(ctx, conn, call.Keys); err != nil {
		return err
	}
	switch {
	case !f.certificates:
		call.Offer = call.Offer.WithoutDialogCertificates()
	case obstacle != nil:
		f.asker.Printf("Your dialog certificates are not sent: %v. Give --master-key.\n", cmp.Or(missing, obstacle))
	}
	return nil
}

// ownAddress is the address sent to the other side: that of the flag, or that of the daemon with whose key the call is made.
func (f *pairFlags) ownAddress(ctx context.Context, conn *pgx.Conn, own *identity.Certificate) (string, error) {
	if f.advertised != "" {
		return f.advertised.Route(), nil
	}
	return truststore.AdvertisedAddress(ctx, conn, own.Fingerprint.String())
}

func (f *pairFlags) readToken() (*pairing.Token, error) {
	text := f.token
	if text == "-" {
		line, err := f.asker.Line(context.Background())
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		text = line
	}
	token, err := pairing.ParseToken(text)
	if err != nil {
		return nil, verb.AsUsage(err)
	}
	return &token, nil
}

func (f *pairFlags) confirmCalled(
	ctx context.Context, own *identity.Certificate, ownCertificates []string, found pairing.Found,
) (bool, error) {
	if err := f.checkFingerprint(found.Fingerprint.String()); err != nil {
		return false, err
	}
	if f.yes {
		return true, nil
	}
	f.asker.Printf("%s answers.\n  its key:  %s\n  your key: %s\n",
		cmp.Or(verb.OneLine(found.Offer.Name, 60), "A broker"), found.Fingerprint.Words(), own.Fingerprint.Words())
	f.printCertificates("its", found.Offer.DialogCertificates)
	f.printCertificates("your", ownCertificates)
	f.asker.Printf("  code:     %s\n", found.Code)
	return f.asker.Confirm(ctx, "Does the other side show the same code?")
}

// ask asks for what was not given about the peer.
func (f *pairFlags) ask(ctx context.Context) (err error) {
	if f.yes || f.token != "" {
		return nil
	}
	if f.choice.Role == "" {
		if f.choice.Role, err = f.asker.Question(ctx, "Which role of your database does it act as? (Enter for none)"); err != nil {
			return err
		}
	}
	if !f.choice.Routes {
		f.choice.Routes, err = f.asker.Confirm(ctx, "Make routes to its services?")
	}
	return err
}
