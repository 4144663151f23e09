package send

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/mail/nexthop"
)

// Class is the kind of a recipient's fate.
type Class int

const (
	// Deferred recipients are tried again.
	Deferred Class = iota
	// Delivered recipients are the next hop's from now on.
	Delivered
	// Failed recipients are given up.
	Failed
	// Unknown is for a message that was sent whole and got no reply: it may have been delivered.
	Unknown
	// Rerouted recipients are elsewhere: their way is to be found anew.
	Rerouted
)

// String is the name of the class.
func (c Class) String() string {
	return [...]string{"deferred", "delivered", "failed", "unknown", "rerouted"}[c]
}

// Result is the fate of one recipient.
type Result struct {
	Class Class
	// Code is the reply of the host, such as 250 or 450; 0 when it gave none.
	Code int
	// Enhanced is the status code of RFC 3463, such as 4.2.0.
	Enhanced string
	// Text is the reply behind its code, as it was received, or what went wrong here.
	Text string
	// Host is the host that replied, and Address its address; "" when none did.
	Host, Address string
	// Duplicate is whether the mailbox had the message before.
	Duplicate bool
	// Relayed is whether the host does not know delivery reports, so that nobody else will send one (RFC 3461 section 5.2.2).
	Relayed bool
	// HostFailed is whether it is the host or the way to it that failed, and not this message: the whole queue has to wait.
	HostFailed bool
	// Untried is whether nothing was said about this recipient, because the connection ended at another of the same message.
	Untried bool
}

// OpenError is why there is no connection, as a result for each of the recipients.
type OpenError struct{ Result Result }

// Error is the result as a sentence.
func (e *OpenError) Error() string {
	return fmt.Sprintf("connect to %s: %d %s", e.Result.Host, e.Result.Code, e.Result.Reason())
}

// unreachedError is why an address takes no connection.
type unreachedError struct {
	address string
	cause   error
}

func (e *unreachedError) Error() string { return e.address + ": " + e.cause.Error() }
func (e *unreachedError) Unwrap() error { return e.cause }

// unreached reads why a connection to an address failed. Package net puts around it the address again, and that it connects.
func unreached(address string, err error) error {
	if dialed, is := errors.AsType[*net.OpError](err); is {
		err = dialed.Err
	}
	if called, is := errors.AsType[*os.SyscallError](err); is && called.Syscall == "connect" {
		err = called.Err
	}
	return &unreachedError{address, err}
}

// outOfTurn is the status of a reply that says neither yes nor no where one of them is asked for: another status of the protocol. A wait
// has a status of class 4 (RFC 3463 section 2).
const outOfTurn = "4.5.0"

// resultOf reads a reply.
func resultOf(host string, answered reply) Result {
	result := Result{Code: answered.code, Enhanced: answered.enhanced(), Text: answered.text(), Host: host}
	switch answered.code / 100 {
	case 2:
		result.Class = Delivered
	case 5:
		result.Class = Failed
	case 4:
	default:
		result.Enhanced = outOfTurn
	}
	result.HostFailed = answered.code == 421
	return result
}

// Reason is the status and what was said, the status once where the host has said it.
func (r Result) Reason() string {
	if first, _, _ := strings.Cut(r.Text, " "); first == r.Enhanced {
		return r.Text
	}
	return strings.TrimSpace(r.Enhanced + " " + r.Text)
}

// resultOfMessage reads the reply to a recipient or a message. A host that closes the connection then has said so to this message; whether
// it takes others shows the next connection.
func resultOfMessage(host string, answered reply) Result {
	result := resultOf(host, answered)
	result.HostFailed = false
	return result
}

// resultOfRecipient reads the reply to a recipient. A host that says 552 has no room for more recipients, as RFC 821 had it (RFC 5321
// section 4.5.3.1.10); with a code for the size of the message it means that.
func resultOfRecipient(host string, answered reply) Result {
	result := resultOfMessage(host, answered)
	if answered.code == 552 && !slices.Contains([]string{"5.2.3", "5.3.4"}, result.Enhanced) {
		result.Class, result.Enhanced = Deferred, "4"+result.Enhanced[1:]
	}
	return result
}

// resultOfError reads what went wrong. An error that is no reply of the host is the failure of the host, or of the way to it.
func resultOfError(host string, err error) Result {
	var answered *replyError
	var unresolved *nexthop.Error
	var handshake *handshakeError
	var certificate *certificateError
	var silent *unreachedError
	switch {
	case errors.As(err, &answered):
		return resultOf(host, answered.reply)
	case errors.As(err, &unresolved):
		result := Result{Enhanced: unresolved.Enhanced, Text: oneLine(unresolved.Error()), HostFailed: !unresolved.Permanent}
		if unresolved.Permanent {
			result.Class = Failed
		}
		return result
	case errors.As(err, &handshake):
		return Result{Enhanced: "4.7.5", Text: oneLine(err.Error()), Host: host, HostFailed: true}
	case errors.As(err, &certificate):
		return Result{Enhanced: "4.3.5", Text: oneLine(err.Error()), HostFailed: true}
	case errors.As(err, &silent):
		return Result{Enhanced: "4.4.1", Text: oneLine(silent.Error()), Host: host, HostFailed: true}
	default:
		return Result{Enhanced: "4.4.2", Text: oneLine(err.Error()), Host: host, HostFailed: true}
	}
}
