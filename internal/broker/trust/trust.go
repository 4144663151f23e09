package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

const (
	// refreshInterval is how old the copy of the lists may be, and so how long a revoked link may live.
	refreshInterval = 2 * time.Second
	// reloadAtMost keeps unknown peers that try again and again from making the databases busy.
	reloadAtMost = 300 * time.Millisecond
	// loadTimeout bounds reading the lists.
	loadTimeout = 5 * time.Second
)

// Source gives the certificate of this broker; it may be another one each time.
type Source interface {
	Certificate() (*identity.Certificate, error)
}

// Database is one that the daemon serves.
type Database struct {
	Name string
	DB   parley.DB // safe for concurrent use
}

// Config has the identity of the broker, and what it may trust.
type Config struct {
	Source    Source
	Databases []Database
	// Name is that of the daemon, under which its certificate is reported to the databases; "": it is not.
	Name string
	// Address is reported to them too: where others reach the daemon, tcp://host:port; "" when that is not known.
	Address string
	// Authorities gives the certificate authorities that may vouch for peers; nil, or giving nil: none.
	Authorities func() *x509.CertPool
	// UnknownPeers are served with what they may ask for without being trusted; nil: nobody.
	UnknownPeers UnknownPeers
	Logger       *slog.Logger // nil means slog.Default
}

// UnknownPeers serves connections of those that are not trusted yet, which ask for it by the name of a protocol.
type UnknownPeers interface {
	// Protocol is the name by which it is asked for in the handshake (ALPN).
	Protocol() string
	// IsOpen reports whether a caller from an address is let in just now.
	IsOpen(ctx context.Context, remote net.Addr) bool
	// Serve serves one connection, whose handshake is done, until ctx ends at the latest. It need not close it.
	Serve(ctx context.Context, conn *tls.Conn)
}

// Trust decides with whom the daemon speaks. It is safe for concurrent use.
type Trust struct {
	source       Source
	name         string
	address      string
	databases    []Database
	authorities  func() *x509.CertPool
	unknownPeers UnknownPeers
	logger       *slog.Logger
	server       *tls.Config

	loading sync.Mutex
	keys    [][]truststore.PeerKey // by database; guarded by loading

	mu      sync.Mutex
	list    *list
	triedAt time.Time // when the lists were read, or could not be
	links   map[*link]bool
	refused transport.LogLimit

	reported own

	// serving gives the context of what goes on until Run has ended.
	serving func() context.Context
	stop    context.CancelFunc
	guests  sync.WaitGroup
	places  chan struct{}
	// guestsOf counts them by where they come from.
	guestsOf transport.HostCount
}

// New makes a Trust. It asks nobody yet.
func New(config Config) *Trust {
	t := &Trust{
		source: config.Source, name: config.Name, address: config.Address, databases: config.Databases, authorities: config.Authorities,
		unknownPeers: config.UnknownPeers, logger: config.Logger, keys: make([][]truststore.PeerKey, len(config.Databases)),
		links: map[*link]bool{}, places: make(chan struct{}, guestsMax),
	}
	if t.logger == nil {
		t.logger = slog.Default()
	}
	ctx, stop := context.WithCancel(context.Background())
	t.serving, t.stop = func() context.Context { return ctx }, stop
	t.server = t.ServerConfig()
	return t
}

// Run keeps the copy of the lists fresh, and closes the links of those that are trusted no more, until ctx ends. Then
// unknown peers are sent away too.
func (t *Trust) Run(ctx context.Context) error {
	defer t.guests.Wait()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stop()
	}()
	tick := time.NewTicker(refreshInterval)
	defer tick.Stop()
	var last string
	for {
		err := t.load(ctx)
		if text := fmt.Sprint(err); err != nil && ctx.Err() == nil && text != last {
			last = text
			t.logger.Warn("the list of peers cannot be read; the last one stays in force", "error", err)
		} else if err == nil {
			last = ""
		}
		t.review()
		t.watch(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// snapshot gives the lists as they were last read; the first time it reads them.
func (t *Trust) snapshot(ctx context.Context) (*list, error) {
	t.mu.Lock()
	l := t.list
	t.mu.Unlock()
	if l != nil {
		return l, nil
	}
	err := t.load(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		return nil, fmt.Errorf("nobody is trusted yet: %w", err)
	}
	return t.list, nil
}

// judge decides on the other end of a connection by the certificates that it has shown. Address is where it answers, host:port;
// "" for a caller. It has proven that the first one's key is its own.
func (t *Trust) judge(ctx context.Context, shown []*x509.Certificate, address string) error {
	if len(shown) == 0 {
		return refuse(Unknown, "the other side shows no certificate")
	}
	now := time.Now()
	if err := identity.Check(shown[0], now); err != nil {
		return ofDates(err, "the certificate of the other broker")
	}
	l, err := t.snapshot(ctx)
	if err != nil {
		return err
	}
	f := identity.FingerprintOf(shown[0])
	known, refusal := l.trusts(f, address, now)
	if refusal == nil {
		return nil
	}
	if known {
		return refusal
	}
	vouched, err := t.succeed(ctx, l, shown, address, now)
	if vouched || err != nil {
		return err
	}
	if t.authorized(shown, address, now) {
		return nil
	}
	return refusal
}

// judgeNow is judge with lists that are not older than an instant. When they cannot be read, the last ones count.
func (t *Trust) judgeNow(ctx context.Context, shown []*x509.Certificate, address string) error {
	_ = t.load(ctx) // Run logs it
	return t.judge(ctx, shown, address)
}

// succeed finds a trusted key that has signed the one that is shown, directly or over others that still are valid, and adds
// the new key to the peers whose key that is.
func (t *Trust) succeed(ctx context.Context, l *list, shown []*x509.Certificate, address string, now time.Time) (bool, error) {
	for i := 1; i < min(len(shown), identity.ChainMax); i++ {
		older := shown[i]
		isSigned := shown[i-1].CheckSignatureFrom(older) == nil && identity.Check(older, now) == nil
		if !isSigned {
			return false, nil
		}
		f := identity.FingerprintOf(older)
		known, refusal := l.trusts(f, address, now)
		if !known {
			continue
		}
		if refusal != nil {
			return false, refusal
		}
		successor := truststore.PeerSuccessor{
			Predecessor: f.String(), Fingerprint: identity.FingerprintOf(shown[0]).String(),
			Certificate: shown[0].Raw, NotBefore: shown[0].NotBefore, NotAfter: shown[0].NotAfter,
		}
		added := false
		for _, e := range l.keys[f.String()] {
			switch err := truststore.SucceedPeerKey(ctx, t.databases[e.database].DB, successor); {
			case err == nil:
				added = true
				t.logger.Info("a peer has changed its key", "peer", e.Peer, "database", t.databases[e.database].Name,
					"before", successor.Predecessor, "now", successor.Fingerprint)
			case !errors.Is(err, truststore.ErrNoPredecessor):
				return false, fmt.Errorf("the other broker has changed its key, which cannot be recorded: %w", err)
			}
		}
		return added, nil
	}
	return false, nil
}

// authorized reports whether an authority vouches for the certificate: at an address, for its host.
func (t *Trust) authorized(shown []*x509.Certificate, address string, now time.Time) bool {
	if t.authorities == nil {
		return false
	}
	roots := t.authorities()
	if roots == nil {
		return false
	}
	options := x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if address != "" {
		host, _, err := net.SplitHostPort(normal(address))
		if err != nil {
			return false
		}
		options.DNSName, options.KeyUsages = host, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, c := range shown[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := shown[0].Verify(options)
	return err == nil
}
