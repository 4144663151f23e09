package link

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport/wire"
)

// Config is how one end speaks. Its zero values, apart from TLS and Plaintext, are good for production.
type Config struct {
	// Security decides which peers are accepted, protects what is transmitted, and may close connections later.
	Security Security
	// TLS, instead of Security, is the certificate of this end, and which peers it believes. It is held to TLS 1.3 with certificates on
	// both sides.
	TLS *tls.Config
	// Plaintext asks for no TLS at all: for tests, and for peers on one machine.
	Plaintext bool
	// Brokers lists the brokers served at this end. It is asked for each connection. Nil for none.
	Brokers func() []wire.Broker
	// Software is sent to the peer, for people.
	Software string
	// Compress asks for compressed frames from this end, if the other takes them. Both always take them.
	Compress bool

	// Window is how many bytes of unanswered frames the accepting end takes from one peer, Memory from all of them together: with many
	// peers, each has less. 8 MiB and 256 MiB when zero.
	Window, Memory int64
	// LargestPayload is the longest batch or fragment that the accepting end takes, in bytes; wire.LargestPayload when zero.
	LargestPayload int64
	// Parallel is how many batches of one peer the accepting end delivers at once, and ParallelFragments how many fragments; 16 and 2
	// when zero. Peers is how many connections it accepts; 1000 when zero.
	Parallel, ParallelFragments, Peers int
	// SocketsPerHost is how many connections one address may have (of IPv6, one network of 64 bits), HandshakesPerHost how many of them
	// may not have identified themselves yet, and Handshakes how many of all addresses; 128, 16 and 256 when zero.
	SocketsPerHost, HandshakesPerHost, Handshakes int

	// DeadAfter is how long a socket may be silent; 15 seconds when zero, at least 3.
	DeadAfter time.Duration
	// IdleAfter is how long a connection is kept that nobody uses; 90 seconds when zero.
	IdleAfter time.Duration
	// ConnectTimeout is for the socket, TLS and the first frames together; 10 seconds when zero.
	ConnectTimeout time.Duration
	// DeliverTimeout is how long the accepting end tries to deliver what came; a minute when zero. The dialling end, when its caller has
	// given up waiting, closes a connection on which a question is open for twice as long.
	DeliverTimeout time.Duration

	// Log receives a line when connections come and go; it may be nil.
	Log *slog.Logger
}

// deadAfterLeast is the least that pings allow, which come a second apart at the most.
const deadAfterLeast = 3 * time.Second

// completed fills in what is not given, or reports what must be.
func (c Config) completed() (Config, error) {
	switch isSecured := c.TLS != nil || c.Security != nil; {
	case !isSecured && !c.Plaintext:
		return c, errors.New("a link needs TLS, or to be asked for plaintext")
	case isSecured && c.Plaintext, c.TLS != nil && c.Security != nil:
		return c, errors.New("a link has TLS, or somebody else secures it, or it is plaintext: one of them")
	}
	if c.TLS != nil {
		c.Security = certificates{c.TLS}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Brokers == nil {
		c.Brokers = func() []wire.Broker { return nil }
	}
	setDefault(&c.Window, 8<<20)
	setDefault(&c.Memory, 256<<20)
	setDefault(&c.LargestPayload, wire.LargestPayload)
	setDefault(&c.Parallel, 16)
	setDefault(&c.ParallelFragments, 2)
	setDefault(&c.Peers, 1000)
	setDefault(&c.SocketsPerHost, 128)
	setDefault(&c.HandshakesPerHost, 16)
	setDefault(&c.Handshakes, 256)
	setDefault(&c.DeadAfter, 15*time.Second)
	setDefault(&c.IdleAfter, 90*time.Second)
	setDefault(&c.ConnectTimeout, 10*time.Second)
	setDefault(&c.DeliverTimeout, time.Minute)
	c.LargestPayload = max(c.LargestPayload, wire.SmallestPayload)
	c.Window = max(c.Window, smallestWindow)
	c.DeadAfter = max(c.DeadAfter, deadAfterLeast)
	return c, nil
}

func setDefault[T int | int64 | time.Duration](value *T, standard T) {
	if *value <= 0 {
		*value = standard
	}
}

// smallestWindow has room for any fragment.
const smallestWindow = wire.SmallestPayload + wire.FrameOverhead

// hello is the first frame of this end, in a role.
func (c *Config) hello() wire.Hello {
	return wire.Hello{
		Lowest:         wire.LowestVersion,
		Highest:        wire.HighestVersion,
		Features:       []string{wire.FeatureDeflate},
		Brokers:        c.Brokers(),
		LargestPayload: c.LargestPayload,
		Software:       c.Software,
	}
}
