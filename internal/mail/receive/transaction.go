package receive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// transaction is one message on its way in: from MAIL to the reply behind its data.
type transaction struct {
	connection *connection
	helo       string
	isExtended bool
	sender     message.Address
	announced  int64 // SIZE of MAIL
	most       int64 // octets that the message may have; 0 means no limit
	// mostRecipients is how many recipients the sender may have; 0 means no limit beside that of the connector.
	mostRecipients int
	spf            *authenticity.SenderVerdict // as it was verified at MAIL
	envelope       message.Envelope
	checker        *lineChecker // BDAT has begun
	isFinished     bool
	isDiscarded    bool
	filtered       []filtered
	isLast         bool // a filter wants the connection to end behind the reply

	block   []byte // of the header, until it is complete
	header  message.Header
	hasBody bool // the header is complete
	body    *spool.Body
	pending []byte // of the body, to be spooled
	size    int64
	refusal *Reply // what is wrong with the message, for the reply behind its data
}

// spoolChunk is how much of a body is spooled at once.
const spoolChunk = 32 << 10

// Write takes message data. It never fails: what is wrong is the reply behind the data, and what comes behind it is dropped.
func (t *transaction) Write(p []byte) (int, error) {
	t.size += int64(len(p))
	l := t.connection.connector.Limits
	if t.most > 0 && t.size > t.most {
		t.refuse(errTooLarge())
	}
	if bytes.IndexByte(p, 0) >= 0 {
		t.refuse(NewReply(550, 6, 0, "The message has a NUL byte (RFC 5321 section 4.5.2): encode it"))
	}
	switch {
	case t.isRefused():
		return len(p), nil
	case t.hasBody:
		t.spool(p)
		return len(p), nil
	}
	from := max(0, len(t.block)-3)
	t.block = append(t.block, p...)
	isEnd := bytes.Contains(t.block[from:], []byte("\r\n\r\n")) || bytes.HasPrefix(t.block, []byte("\r\n"))
	if isEnd || l.HeaderBytes > 0 && len(t.block) > l.HeaderBytes {
		t.endHeader(isEnd)
	}
	return len(p), nil
}

func (t *transaction) isRefused() bool { return t.refusal != nil }

func (t *transaction) refuse(reply *Reply) {
	if t.refusal == nil {
		t.refusal = reply
		t.block, t.pending = nil, nil
		_ = t.body.Truncate()
	}
}

// endHeader reads the header block, and checks what limits say of it.
func (t *transaction) endHeader(isEnd bool) {
	header, length, isComplete := message.ParseHeader(t.block)
	l := t.connection.connector.Limits
	hops, local := header.Hops(), header.HopsBy(t.connection.isOwnName)
	switch {
	case !isComplete && !isEnd, l.HeaderBytes > 0 && length > l.HeaderBytes:
		t.refuse(NewReply(552, 3, 4, "The header is larger than this server takes"))
		return
	case l.Hops > 0 && hops > l.Hops, l.LocalHops > 0 && local > l.LocalHops:
		t.refuse(NewReply(554, 4, 6, "The message has come through too many hosts: it goes in a circle"))
		return
	}
	t.header, t.hasBody = header, true
	if refusal := t.authorRefusal(); refusal != nil {
		t.refuse(refusal)
		return
	}
	rest := t.block[length:]
	t.block = t.block[:length:length]
	t.spool(rest)
}

func (t *transaction) spool(p []byte) {
	if len(p) >= spoolChunk/4 {
		t.flush()
		t.write(p)
		return
	}
	t.pending = append(t.pending, p...)
	if len(t.pending) >= spoolChunk {
		t.flush()
	}
}

func (t *transaction) flush() {
	t.write(t.pending)
	t.pending = t.pending[:0]
}

// write adds to the body.
func (t *transaction) write(p []byte) {
	if t.refusal != nil || len(p) == 0 {
		return
	}
	if _, err := t.body.Write(p); err != nil {
		t.connection.server.Log.Error("a message could not be spooled", "error", err)
		t.refuse(NewReply(452, 3, 1, "Insufficient system storage, try again later"))
	}
}

// open gives the transaction a body.
func (t *transaction) open() {
	t.body = t.connection.server.Spool.Open()
}

// close gives back what the transaction holds.
func (t *transaction) close() {
	if t.body != nil {
		_ = t.body.Close()
	}
}

// receiveData reads the data of a message up to the final dot, and gives the reply. An error means that the peer has gone.
func (t *transaction) receiveData(w *wire) (reply *Reply, err error) {
	t.open()
	defer t.close()
	c := t.connection
	if refusal := t.filter(DataBegins); refusal != nil {
		t.refuse(refusal)
	}
	found, err := readData(w.in, t, c.connector.Limits)
	if err != nil {
		return nil, errors.Join(smtp.ErrDataReset, w.failed(err))
	}
	isBare := found.isBare && !c.connector.Limits.IsNormalizing
	reply = t.finish(found, isBare)
	if isBare || t.isLast { // what comes behind the dot may be a message that somebody hid in this one
		w.isLast = true
	}
	return reply, nil
}

// filter asks about an event of the data.
func (t *transaction) filter(event Event) *Reply {
	reply, verdict := t.connection.server.filterWith(t.connection.ctx, t.connection, event, t)
	t.isLast = t.isLast || verdict.Action == Disconnect
	return reply
}

// receiveChunk reads a chunk of a message, and gives the reply to it: that of the message behind its last one, or once it is refused.
func (t *transaction) receiveChunk(in io.Reader, size int64, isLast bool) (reply *Reply, err error) {
	if t.checker == nil {
		t.open()
		t.checker = &lineChecker{sink: t, limits: t.connection.connector.Limits}
	}
	if _, err := io.CopyN(t.checker, in, size); err != nil {
		return nil, err
	}
	if !isLast {
		if t.refusal != nil {
			return t.refusal, nil
		}
		return NewReply(250, 0, 0, strconv.FormatInt(size, 10)+" octets received"), nil
	}
	found, isComplete := t.checker.end()
	if !isComplete {
		_, _ = t.Write([]byte("\r\n"))
	}
	return t.finish(found, found.isBare), nil
}

// finish gives the reply to a message that has come to its end.
func (t *transaction) finish(found lines, isBareRefused bool) *Reply {
	t.isFinished = true
	switch {
	case isBareRefused:
		t.refusal = NewReply(550, 6, 11, "A line ends with CRLF: the message has a CR or LF by itself")
	case found.isTooLong:
		t.refuse(NewReply(554, 6, 0, "The message has a line that is too long"))
	case !t.hasBody && t.refusal == nil:
		t.endHeader(true)
	}
	t.flush()
	reply := t.take()
	if reply.Code < 300 {
		t.connection.server.counters.Messages.Add(1)
		t.connection.server.counters.Bytes.Add(t.size)
	} else {
		t.connection.server.counters.Rejected.Add(1)
	}
	return reply
}

// take verifies a message that is complete, and has it stored.
func (t *transaction) take() *Reply {
	if t.refusal != nil {
		return t.refusal
	}
	c := t.connection
	t.identify()
	t.verify()
	if t.refusal != nil {
		return t.refusal
	}
	for _, event := range []Event{HeaderEnded, DataEnded} {
		if reply := t.filter(event); reply != nil {
			return reply
		}
	}
	t.compose()
	if reply := t.filter(BeforeQueue); reply != nil {
		return reply
	}
	id := t.envelope.NetworkMessageID
	t.addFiltered()
	t.envelope.Took = message.Took(time.Since(t.envelope.ReceivedAt))
	if t.isDiscarded || len(t.envelope.Recipients) == 0 { // a filter has taken the message, or its recipients
		if c.server.Discarded != nil {
			c.server.Discarded(c.ctx, t.envelope, t.body.Size())
		}
		return NewReply(250, 6, 0, "Queued as "+id)
	}
	if _, err := c.server.Accepter.Accept(t.envelope, t.body); err != nil {
		c.server.Log.Error("a message could not be stored", slog.Any("error", err), c.attribute())
		return NewReply(451, 3, 0, "The message could not be stored, try again later")
	}
	return NewReply(250, 6, 0, "Queued as "+id)
}

// compose writes the header as it is stored: what the peer may not set is out, and how the message came is in.
func (t *transaction) compose() {
	c := t.connection
	now := time.Now()
	rights := c.rights()
	header := t.header.WithoutReturnPath().Firewall(message.Trusted{
		Routing: rights.Has(AcceptRoutingHeaders), Organization: rights.Has(AcceptOrganizationHeaders), Forest: rights.Has(AcceptForestHeaders),
	})
	if c.connector.IsSubmission {
		header = header.Completed(c.connector.FQDN, now)
	}
	e := &t.envelope
	if rights.Has(AcceptOrganizationHeaders) && !header.IsFromInside() {
		e.Directionality = message.Incoming
	}
	e.HeaderMessageID, e.Subject, e.Priority = header.MessageID(), header.Value("Subject"), message.PriorityOf(header)
	trace := message.Trace{
		Helo: t.helo, PeerName: c.name(), Peer: c.peer.Addr(),
		By: c.connector.FQDN, With: t.protocol(), TLS: c.tlsText(), ID: e.NetworkMessageID, At: now,
	}
	if len(e.Recipients) == 1 {
		trace.For = e.Recipients[0].Address
	}
	t.header = append(message.Header{trace.Field()}, header...)
	t.body.SetHead(t.header.Bytes())
}

// protocol gives the registered name of how the message came (RFC 3848, RFC 6531).
func (t *transaction) protocol() string {
	name := "SMTP"
	if t.isExtended {
		name = "ESMTP"
	}
	if t.envelope.IsUTF8 {
		name = "UTF8SMTP"
	}
	if t.isExtended && t.connection.tls != nil {
		name += "S"
	}
	if t.isExtended && t.connection.user != "" {
		name += "A"
	}
	return name
}

// describe writes into an exchange what a filter is to see.
func (c *connection) describe(e *Exchange, tx *transaction) {
	e.Peer, e.Local, e.Connector, e.FQDN = c.peer, c.local, c.connector.Name, c.connector.FQDN
	e.TLS, e.AuthenticatedAs, e.PeerName = c.tlsText(), c.user, c.peerName
	e.Envelope, e.Header, e.Body = nil, nil, nil
	if tx != nil {
		e.Envelope, e.Header, e.Body, e.Helo = &tx.envelope, tx.header, tx.body, tx.helo
	}
}

// pressure waits as long as MAIL FROM has to, or gives the refusal.
func (c *connection) pressure(ctx context.Context, isOurSender bool) *Reply {
	if c.server.Governor == nil {
		return nil
	}
	pressure := c.server.Governor.Pressure(c.class(), isOurSender)
	_ = backoff.Wait(ctx, pressure.Delay)
	if pressure.IsRefused {
		return NewReply(452, 3, 1, "Insufficient system resources")
	}
	return nil
}
