package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/downgrade"
)

// Message is a message that a connection sends.
type Message struct {
	// ID is a name of the message that stays the same when it is sent again.
	ID string
	// Sender is the reverse path; "" for the null sender.
	Sender string
	// Return is FULL or HDRS, and EnvelopeID the sender's name for this message; "" when it gave none (RFC 3461).
	Return, EnvelopeID string
	// Size is that of the body in bytes.
	Size int64
	// Received is when it came to us, or was submitted.
	Received time.Time
	// EightBit is whether the message was said to have bytes above 127, and UTF8 whether an address or the header was; a host that does
	// not know such messages gets those of which it is not so.
	EightBit, UTF8 bool
	// IsOriginating is whether somebody of ours submitted it here, and nobody from outside brought it.
	IsOriginating bool
	Recipients    []Recipient
	// Open opens the body; its lines end with CRLF. It is called once for each transaction, and before that where a host does not know what
	// the message may need.
	Open func(ctx context.Context) (io.ReadCloser, error)
	// Confirm is asked before the end of the body is sent or a file put into its place: an error keeps the message from being taken. Nil
	// means that nothing keeps it.
	Confirm func(ctx context.Context) error
}

// confirm asks Confirm.
func (m Message) confirm(ctx context.Context) error {
	if m.Confirm == nil {
		return nil
	}
	return m.Confirm(ctx)
}

// Recipient is one of the recipients of a message.
type Recipient struct {
	Address string
	// Notify are the kinds of reports asked for, such as "SUCCESS,FAILURE"; "" when nothing was said.
	Notify string
	// Original is the original recipient with its type, such as "rfc822;who@example.com"; "" when there is none.
	Original string
	// ReturnPath is the reverse path of this recipient, to whom the message goes in a transaction of its own (VERP); "" where it is the
	// sender. All recipients of a message have one, or none.
	ReturnPath string
}

// Send sends a message and says what became of each recipient, in their order. A host that takes no more recipients in one transaction
// gets the rest in another, and so does each recipient with a return path of its own. When ctx ends, the connection is closed, and what was
// not answered is deferred or unknown.
func (c *Connection) Send(ctx context.Context, message Message) []Result {
	results := make([]Result, len(message.Recipients))
	if refusal := c.refuse(ctx, &message); refusal != nil {
		for i := range results {
			results[i] = *refusal
		}
		return results
	}
	stop := c.closeWith(ctx)
	defer stop()
	before := c.messages
	left := make([]int, 0, len(results))
	for i, recipient := range message.Recipients {
		if !ascii(recipient.Address) && !c.offers("SMTPUTF8") {
			results[i] = Result{
				Class: Failed, Enhanced: "5.6.7", Text: "the address is not in ASCII, and the host does not know SMTPUTF8", Host: c.target.Host,
			}
			continue
		}
		left = append(left, i)
	}
	for len(left) > 0 {
		now, later := left, []int(nil)
		if most := c.target.Recipients; most > 0 && len(left) > most {
			now, later = left[:most:most], left[most:]
		}
		if path := message.Recipients[left[0]].ReturnPath; path != "" {
			now, later, message.Sender = left[:1:1], left[1:], path
			c.messages++
		}
		again := c.transaction(ctx, message, now, results)
		if c.broken {
			for _, i := range later {
				results[i] = untried(c.target.Host)
			}
			break
		}
		// Recipients without room in one transaction come behind one that had: there are fewer each time.
		left = slices.Concat(again, later)
	}
	if c.messages == before {
		c.messages++
	}
	for i := range results {
		if results[i].Host != "" {
			results[i].Address = c.remote()
		}
	}
	return results
}

// refuse says why the host cannot be given a message, whoever gets it, from what it said of itself.
func (c *Connection) refuse(ctx context.Context, message *Message) *Result {
	refusal := func(enhanced, text string) *Result {
		return &Result{Class: Failed, Enhanced: enhanced, Text: text, Host: c.target.Host}
	}
	if most, err := strconv.ParseInt(c.extensions["SIZE"], 10, 64); err == nil && most > 0 && message.Size > most {
		return refusal("5.3.4", fmt.Sprintf("the message has %d bytes, and the host takes %d", message.Size, most))
	}
	if err := c.need(ctx, message); err != nil {
		return &Result{Enhanced: "4.3.0", Text: oneLine(err.Error())}
	}
	if message.UTF8 && !c.offers("SMTPUTF8") {
		if !ascii(message.Sender) {
			return refusal("5.6.7", "the sender's address is not in ASCII, and the host does not know SMTPUTF8")
		}
		return refusal("5.6.9", "the header is not in ASCII, and the host does not know SMTPUTF8")
	}
	if message.EightBit && !c.offers("8BITMIME") {
		err := SevenBit(ctx, message)
		switch {
		case errors.Is(err, downgrade.ErrAddress):
			return refusal("5.6.9", "the header is not in ASCII, and the host does not know 8BITMIME: "+err.Error())
		case errors.Is(err, downgrade.ErrStructure):
			return refusal("5.6.3", "the message has bytes above 127, and the host does not know 8BITMIME: "+err.Error())
		case err != nil:
			return &Result{Enhanced: "4.3.0", Text: oneLine(err.Error())}
		}
	}
	return nil
}

// transaction gives the message to the recipients left, and returns those that the host had no room for.
func (c *Connection) transaction(ctx context.Context, message Message, left []int, results []Result) (again []int) {
	commands := make([]string, 0, len(left)+2)
	commands = append(commands, c.mailFrom(message))
	for _, i := range left {
		commands = append(commands, c.rcptTo(message.Recipients[i]))
	}
	commands = append(commands, "DATA")
	replies, err := c.converse(commands)
	all := func(result Result) {
		for _, i := range left {
			results[i] = result
		}
	}
	if err != nil {
		c.broken = true
		all(resultOfError(c.target.Host, err))
		return nil
	}
	if replies[0].code/100 != 2 {
		all(resultOf(c.target.Host, replies[0]))
		c.settle(replies)
		return nil
	}
	var accepted []int
	for n, i := range left {
		answered := replies[n+1]
		results[i] = resultOfRecipient(c.target.Host, answered)
		switch {
		case c.broken:
			results[i] = untried(c.target.Host)
		case answered.code/100 == 2:
			accepted = append(accepted, i)
		case (answered.code == 452 || answered.code == 552) && results[i].Class == Deferred && len(accepted) > 0:
			again = append(again, i)
		case answered.code == 421:
			c.broken = true
			// Recipients that the host accepted before it closed get nothing either.
			for _, before := range slices.Concat(accepted, again) {
				results[before] = untried(c.target.Host)
			}
		}
	}
	if len(accepted) == 0 || c.broken {
		c.settle(replies)
		return nil
	}
	data := replies[len(replies)-1]
	if data.code != 354 {
		for _, i := range accepted {
			results[i] = resultOfMessage(c.target.Host, data)
			if data.code/100 == 2 {
				results[i].Class, results[i].Enhanced = Deferred, outOfTurn
			}
		}
		c.broken = c.broken || data.code == 421
		c.settle(nil)
		return nil
	}
	c.data(ctx, message, accepted, results)
	return again
}

// untried is for a recipient of whom nothing was said: the connection ended at another.
func untried(host string) Result {
	return Result{Enhanced: "4.4.2", Text: "the connection was lost before this recipient was tried", Host: host, Untried: true}
}

// converse sends the commands of a transaction and reads their replies. After 421 the host closes the connection and answers nothing
// else, so that is the reply to all that follows.
func (c *Connection) converse(commands []string) ([]reply, error) {
	if c.offers("PIPELINING") {
		for _, command := range commands {
			if err := c.write(command); err != nil {
				return nil, err
			}
		}
		return c.replies(commands, func(string) (reply, error) { return c.read(c.timeouts().Command) })
	}
	return c.replies(commands, c.command)
}

// replies asks for the reply to each command. Where they are sent one by one, those that have become pointless are not asked for: their
// replies have the code 0.
func (c *Connection) replies(commands []string, ask func(string) (reply, error)) ([]reply, error) {
	replies := make([]reply, len(commands))
	pipelined, accepted := c.offers("PIPELINING"), false
	for i, command := range commands {
		pointless := (i > 0 && replies[0].code/100 != 2) || (i == len(commands)-1 && !accepted)
		if pointless && !pipelined {
			continue
		}
		answered, err := ask(command)
		if err != nil {
			return nil, err
		}
		if answered.code == 421 {
			for rest := i; rest < len(replies); rest++ {
				replies[rest] = answered
			}
			return replies, nil
		}
		replies[i] = answered
		accepted = accepted || (i > 0 && answered.code/100 == 2)
	}
	return replies, nil
}

// settle leaves a transaction that came to nothing, so that the connection can be used again.
func (c *Connection) settle(replies []reply) {
	if c.broken {
		return
	}
	if len(replies) > 0 {
		if replies[0].code == 421 {
			c.broken = true
			return
		}
		if replies[len(replies)-1].code == 354 {
			// The host wants a message although nobody receives it; an empty one ends that (RFC 2920 section 3.1).
			if answered, err := c.command("."); err != nil || answered.code == 421 {
				c.broken = true
				return
			}
		}
	}
	if answered, err := c.command("RSET"); err != nil || answered.code != 250 {
		c.broken = true
	}
}

// data sends the body, and reads what became of the accepted recipients: one reply for all, or with LMTP one for each.
func (c *Connection) data(ctx context.Context, message Message, accepted []int, results []Result) {
	all := func(result Result) {
		c.broken = true
		for _, i := range accepted {
			results[i] = result
		}
	}
	body, err := message.Open(ctx)
	if err != nil {
		// The host waits for a message that cannot be read: only closing the connection keeps it from accepting a part of one.
		all(Result{Enhanced: "4.3.0", Text: oneLine("read the message: " + err.Error())})
		return
	}
	defer func() { _ = body.Close() }()
	end, err := c.writeBody(body, message.Size)
	if err == nil {
		if err := message.confirm(ctx); err != nil {
			// Without its end the host takes nothing.
			all(Result{Enhanced: "4.3.2", Text: oneLine("the message was not sent to its end: " + err.Error())})
			return
		}
		err = c.endBody(end)
	}
	if err != nil {
		result := resultOfError(c.target.Host, err)
		result.HostFailed = !strings.HasPrefix(result.Text, readFailed)
		all(result)
		return
	}
	for n, i := range accepted {
		if n > 0 && !c.target.LMTP {
			results[i] = results[accepted[0]]
			continue
		}
		answered, err := c.read(c.timeouts().Data)
		if err != nil {
			c.broken = true
			for _, rest := range accepted[n:] {
				results[rest] = Result{
					Class: Unknown, Enhanced: "4.4.2", Host: c.target.Host, HostFailed: true,
					Text: oneLine("the message was sent and not answered: " + err.Error()),
				}
			}
			return
		}
		results[i] = resultOfMessage(c.target.Host, answered)
		results[i].Relayed = results[i].Class == Delivered && !c.target.LMTP && !c.offers("DSN")
		c.broken = c.broken || answered.code == 421
	}
}

func (c *Connection) mailFrom(message Message) string {
	var line strings.Builder
	line.WriteString("MAIL FROM:<" + message.Sender + ">")
	if c.offers("SIZE") {
		line.WriteString(" SIZE=" + strconv.FormatInt(message.Size, 10))
	}
	if message.EightBit {
		line.WriteString(" BODY=8BITMIME")
	}
	if message.UTF8 {
		line.WriteString(" SMTPUTF8")
	}
	if c.offers("DSN") {
		if message.Return != "" {
			line.WriteString(" RET=" + message.Return)
		}
		if message.EnvelopeID != "" {
			line.WriteString(" ENVID=" + xtext(message.EnvelopeID))
		}
	}
	return line.String()
}

func (c *Connection) rcptTo(recipient Recipient) string {
	line := "RCPT TO:<" + recipient.Address + ">"
	if c.offers("DSN") {
		if recipient.Notify != "" {
			line += " NOTIFY=" + recipient.Notify
		}
		if kind, address, found := strings.Cut(recipient.Original, ";"); found {
			encode := xtext
			if strings.EqualFold(kind, "utf-8") {
				encode = unicodeText
			}
			line += " ORCPT=" + kind + ";" + encode(address)
		}
	}
	return line
}

// unicodeText writes an address as an original recipient that any host with DSN takes (RFC 6533 section 3, utf-8-addr-xtext).
func unicodeText(address string) string {
	var encoded strings.Builder
	for _, r := range address {
		if r > ' ' && r < 0x7f && r != '+' && r != '=' && r != '\\' {
			encoded.WriteRune(r)
		} else {
			fmt.Fprintf(&encoded, "\\x{%02X}", r)
		}
	}
	return encoded.String()
}

// xtext writes a value as a parameter of a command (RFC 3461 section 4).
func xtext(value string) string {
	var encoded strings.Builder
	for i := range len(value) {
		if b := value[i]; b > ' ' && b < 0x7f && b != '+' && b != '=' {
			encoded.WriteByte(b)
		} else {
			fmt.Fprintf(&encoded, "+%02X", b)
		}
	}
	return encoded.String()
}
