package send

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
)

// Target is a host to connect to, and how.
type Target struct {
	// Host is its name, for the certificate and for reports.
	Host string
	// Network is tcp or unix; "" means tcp.
	Network string
	// Address is host:port, or the path of a socket.
	Address string
	// Dial connects; nil means that of the network.
	Dial func(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error)
	// LMTP is whether the host speaks LMTP, with a reply for each recipient.
	LMTP bool
	// ImplicitTLS is whether the connection is encrypted from its first byte (RFC 8314).
	ImplicitTLS bool
	TLS         TLSPolicy
	// Hello is the name by which this host introduces itself. With OldHello it does so by HELO, to hosts that choke on EHLO.
	Hello    string
	OldHello bool
	// Recipients bounds those of one transaction; 0 means as many as a message has.
	Recipients int
	// Source is the address from which to connect; the zero value leaves it to the system.
	Source netip.Addr
	// Certificate gives the certificate for a host that asks for one; nil for none.
	Certificate func() (*tls.Certificate, error)
	// Authenticate makes the client of a mechanism that the host offers, by which we prove who we are, once the connection is as the policy
	// wants it; nil for no authentication, and so is its result.
	Authenticate func(offered []string) sasl.Client
	Timeouts     Timeouts
}

// Timeouts are those of RFC 5321 section 4.5.3.2; zero values mean what it says.
type Timeouts struct {
	// Connect bounds reaching the host, Command each reply, Data the reply to a whole message.
	Connect, Command, Data time.Duration
}

// Connection is a session with a host. It is used by one goroutine at a time.
type Connection struct {
	target     Target
	conn       net.Conn
	reader     *bufio.Reader
	writer     *bufio.Writer
	extensions map[string]string
	encrypted  bool
	own        *own
	messages   int
	broken     bool
}

// handshakeError is a failure to agree on TLS as the policy asks.
type handshakeError struct{ cause error }

func (e *handshakeError) Error() string { return "agree on TLS: " + e.cause.Error() }
func (e *handshakeError) Unwrap() error { return e.cause }

func asHandshake(err error) error {
	if known, is := errors.AsType[*handshakeError](err); is {
		return known
	}
	return &handshakeError{err}
}

// Open connects, agrees on TLS as far as the policy asks, and authenticates. It fails with an [*OpenError].
func Open(ctx context.Context, target Target) (*Connection, error) {
	connection, err := open(ctx, target, target.TLS.Mode != TLSOff)
	var handshake *handshakeError
	if errors.As(err, &handshake) && target.TLS.Mode == TLSOpportunistic && !target.ImplicitTLS && ctx.Err() == nil {
		// Mail that nobody asked to be secret goes in clear rather than not at all (RFC 7435).
		connection, err = open(ctx, target, false)
	}
	if err != nil {
		result := resultOfError(target.Host, err)
		result.HostFailed = true
		return nil, &OpenError{Result: result}
	}
	return connection, nil
}

func open(ctx context.Context, target Target, encrypt bool) (connection *Connection, err error) {
	dialer := &net.Dialer{Timeout: cmp.Or(target.Timeouts.Connect, 30*time.Second)}
	if target.Source.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(target.Source, 0))
	}
	dial := target.Dial
	if dial == nil {
		dial = func(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		}
	}
	raw, err := dial(ctx, dialer, cmp.Or(target.Network, "tcp"), target.Address)
	if err != nil {
		return nil, unreached(target.Address, err)
	}
	c := &Connection{target: target}
	c.use(raw)
	stop := c.closeWith(ctx)
	defer func() {
		if stop() && err != nil {
			_ = raw.Close()
		}
	}()
	if target.ImplicitTLS {
		if err := c.shakeHands(ctx); err != nil {
			return nil, err
		}
	}
	greeting, err := c.read(c.timeouts().Command)
	if err != nil {
		return nil, c.refusal(err)
	}
	if greeting.code != 220 {
		return nil, &replyError{greeting}
	}
	if err := c.hello(); err != nil {
		return nil, err
	}
	if encrypt && !c.encrypted {
		if err := c.startTLS(ctx); err != nil {
			return nil, err
		}
	}
	if target.Authenticate == nil {
		return c, nil
	}
	if mechanism := target.Authenticate(strings.Fields(c.extensions["AUTH"])); mechanism != nil {
		if err := c.authenticate(mechanism); err != nil {
			return nil, fmt.Errorf("authenticate: %w", err)
		}
	}
	return c, nil
}

func (c *Connection) use(conn net.Conn) {
	c.conn = conn
	c.reader = bufio.NewReaderSize(conn, maximumReplyLine)
	c.writer = bufio.NewWriterSize(conn, 64<<10)
}

// closeWith closes the connection when ctx ends, until stop is called, which says whether it was in time.
func (c *Connection) closeWith(ctx context.Context) (stop func() bool) {
	conn := c.conn
	return context.AfterFunc(ctx, func() { _ = conn.Close() })
}

func (c *Connection) timeouts() Timeouts {
	t := c.target.Timeouts
	return Timeouts{Command: cmp.Or(t.Command, 5*time.Minute), Data: cmp.Or(t.Data, 10*time.Minute)}
}

// write sends a command without waiting for its reply.
func (c *Connection) write(line string) error {
	if strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("the command %q has a line break in it", oneLine(line))
	}
	if _, err := c.writer.WriteString(line); err != nil {
		return fmt.Errorf("send a command: %w", err)
	}
	if _, err := c.writer.WriteString("\r\n"); err != nil {
		return fmt.Errorf("send a command: %w", err)
	}
	return nil
}

// read sends what is written and reads one reply.
func (c *Connection) read(within time.Duration) (reply, error) {
	if err := c.conn.SetDeadline(time.Now().Add(within)); err != nil {
		return reply{}, fmt.Errorf("set a deadline: %w", err)
	}
	if c.writer.Buffered() > 0 {
		if err := c.writer.Flush(); err != nil {
			return reply{}, fmt.Errorf("send a command: %w", err)
		}
	}
	return readReply(c.reader)
}

// command sends a command and reads its reply.
func (c *Connection) command(line string) (reply, error) {
	if err := c.write(line); err != nil {
		return reply{}, err
	}
	return c.read(c.timeouts().Command)
}

// hello introduces this host and learns what the other can do. A host that does not know EHLO gets HELO.
func (c *Connection) hello() error {
	verb := "EHLO "
	switch {
	case c.target.LMTP:
		verb = "LHLO "
	case c.target.OldHello:
		verb = "HELO "
	}
	answered, err := c.command(verb + c.target.Hello)
	if err != nil {
		return err
	}
	c.extensions = make(map[string]string)
	if c.target.OldHello && !c.target.LMTP {
		answered.lines = nil
	}
	if !c.target.LMTP && !c.target.OldHello && (answered.code == 500 || answered.code == 502) {
		if answered, err = c.command("HELO " + c.target.Hello); err != nil {
			return err
		}
		answered.lines = nil
	}
	if answered.code != 250 {
		return &replyError{answered}
	}
	for _, line := range answered.lines[min(1, len(answered.lines)):] {
		name, parameters, _ := strings.Cut(line, " ")
		c.extensions[strings.ToUpper(name)] = parameters
	}
	return nil
}

// Offers is whether the host knows an extension.
func (c *Connection) Offers(extension string) bool { return c.offers(extension) }

// offers is whether the host knows an extension.
func (c *Connection) offers(extension string) bool {
	_, offered := c.extensions[extension]
	return offered
}

func (c *Connection) startTLS(ctx context.Context) error {
	if !c.offers("STARTTLS") {
		if c.target.TLS.Mode == TLSOpportunistic {
			return nil
		}
		return &handshakeError{errors.New("the host does not offer STARTTLS, and the policy asks for it")}
	}
	answered, err := c.command("STARTTLS")
	if err != nil {
		return err
	}
	if answered.code != 220 {
		return &handshakeError{&replyError{answered}}
	}
	if c.reader.Buffered() > 0 {
		// Bytes that came in clear behind the reply may be somebody else's (RFC 3207 section 6).
		return &handshakeError{errors.New("the host sent more than its reply before TLS began")}
	}
	if err := c.shakeHands(ctx); err != nil {
		return err
	}
	if err := c.hello(); err != nil {
		return c.refusal(err)
	}
	return nil
}

// refusal is an error of the first reply within TLS, as what the host says of our certificate where it is that.
func (c *Connection) refusal(err error) error {
	if c.own == nil {
		return err
	}
	return c.own.refusal(c.conn, err)
}

func (c *Connection) shakeHands(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeouts().Command)
	defer cancel()
	own, err := c.target.newOwn()
	if err != nil {
		return err
	}
	secured := tls.Client(c.conn, c.target.TLS.config(c.target.Host, own))
	if err := secured.HandshakeContext(ctx); err != nil {
		if isAlert(err) {
			err = own.refusal(c.conn, err)
		}
		return asHandshake(err)
	}
	c.own = own
	c.use(secured)
	c.encrypted = true
	return nil
}

// authenticate proves who we are (RFC 4954).
func (c *Connection) authenticate(mechanism sasl.Client) error {
	name, first, err := mechanism.Start()
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	line := "AUTH " + name
	switch {
	case len(first) > 0:
		line += " " + base64.StdEncoding.EncodeToString(first)
	case first != nil:
		line += " ="
	}
	for {
		answered, err := c.command(line)
		if err != nil {
			return err
		}
		if answered.code == 235 {
			if both, is := mechanism.(proving); is && !both.hasProof() {
				return errUnproved
			}
			return nil
		}
		if answered.code != 334 {
			return &replyError{answered}
		}
		challenge, err := base64.StdEncoding.DecodeString(strings.Join(answered.lines, ""))
		if err != nil {
			return fmt.Errorf("read the challenge: %w", err)
		}
		response, err := mechanism.Next(challenge)
		if err != nil {
			_, _ = c.command("*")
			return fmt.Errorf("answer the challenge: %w", err)
		}
		line = base64.StdEncoding.EncodeToString(response)
	}
}

// Encrypted is whether TLS was agreed on.
func (c *Connection) Encrypted() bool { return c.encrypted }

// Messages is how many messages were sent.
func (c *Connection) Messages() int { return c.messages }

// Ends are where the connection goes to, and whence it comes.
func (c *Connection) Ends() Ends {
	ends := Ends{Host: c.target.Host, Remote: c.remote()}
	if local, is := c.conn.LocalAddr().(*net.TCPAddr); is {
		ends.Source = local.AddrPort().Addr().Unmap().String()
	}
	return ends
}

// remote is the address of the host; "" for a socket of the machine.
func (c *Connection) remote() string {
	if remote, is := c.conn.RemoteAddr().(*net.TCPAddr); is {
		return remote.AddrPort().Addr().Unmap().String()
	}
	return ""
}

// Usable is whether another message can be sent.
func (c *Connection) Usable() bool { return !c.broken }

// Close ends the session, politely where that takes no long wait.
func (c *Connection) Close() {
	if !c.broken && c.write("QUIT") == nil {
		_, _ = c.read(time.Second)
	}
	_ = c.conn.Close()
}
