package trust

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport"
)

// Numbers that Service Broker gives to connections which do not come about (spec 6.12).
const (
	NotYetValid  = 28022 // the certificate is not yet valid
	Expired      = 28023 // the certificate has expired
	NoAlgorithm  = 28027 // no version of TLS that both sides know
	NotPermitted = 28034 // the peer was revoked
	Unknown      = 28035 // the key is not trusted
	WrongPeer    = 28045 // the key is that of another peer than was to be expected
	Rejected     = 28047 // the other side does not let this broker in
	NoCertify    = 9762  // this broker has no certificate
)

// RefusedError is why there is no link: a text for the operator of this side.
type RefusedError struct {
	Number int
	Reason string
}

func (r *RefusedError) Error() string { return fmt.Sprintf("%d: %s", r.Number, r.Reason) }

// LoginEvent is how a trace calls the refusal: one of the peer (authorization), or of a certificate or TLS (authentication).
func (r *RefusedError) LoginEvent() transport.TraceEvent {
	switch r.Number {
	case NotPermitted, Unknown, WrongPeer, Rejected:
		return transport.AuthorizationFailure
	case NoAlgorithm:
		return transport.NegotiateFailure
	}
	return transport.AuthenticationFailure
}

func refuse(number int, format string, arguments ...any) *RefusedError {
	return &RefusedError{Number: number, Reason: fmt.Sprintf(format, arguments...)}
}

// ofDates makes a refusal of an error of [identity.Check]; whose is "the other broker" or such.
func ofDates(err error, whose string) *RefusedError {
	number := Expired
	if errors.Is(err, identity.ErrNotYetValid) {
		number = NotYetValid
	}
	return refuse(number, "%s cannot be used: %v", whose, err)
}

// explain makes a refusal of what a connection has failed with, when that names the cause.
func explain(err error, own identity.Fingerprint) error {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return r
	}
	text := err.Error()
	failed, isNet := errors.AsType[*net.OpError](err)
	switch {
	case isNet && failed.Op == "remote error" && strings.Contains(text, "certificate"):
		return refuse(Rejected, "the other broker does not accept the key of this one, %s: pair them, or let it trust the key (%v)", own, err)
	case strings.Contains(text, "protocol version"), strings.Contains(text, "unsupported versions"):
		return refuse(NoAlgorithm, "the other side does not speak TLS 1.3 (%v)", err)
	case strings.Contains(text, "client didn't provide a certificate"):
		return refuse(Unknown, "the other side shows no certificate (%v)", err)
	}
	return err
}
