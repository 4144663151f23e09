package send

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
)

// refusalWait is how long the alert of a host is waited for that has closed the connection.
const refusalWait = time.Second

// certificateError says that our own certificate cannot be used: it is nothing that the host or the way to it has done.
type certificateError struct{ cause error }

func (e *certificateError) Error() string {
	return "our certificate cannot be used: " + e.cause.Error()
}
func (e *certificateError) Unwrap() error { return e.cause }

// own is our certificate during one handshake: what is shown where the host asks for one.
type own struct {
	certificate *tls.Certificate
	isAsked     bool
}

// newOwn gets the certificate of the target, which may have none.
func (t Target) newOwn() (*own, error) {
	if t.Certificate == nil {
		return &own{}, nil
	}
	certificate, err := t.Certificate()
	if err != nil {
		return nil, &certificateError{err}
	}
	return &own{certificate: certificate}, nil
}

// show answers a host that asks for a certificate. It shows ours whatever authorities the host names: one that knows certificates by
// their fingerprints names none that fits.
func (o *own) show(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	o.isAsked = true
	if o.certificate == nil {
		return new(tls.Certificate), nil
	}
	return o.certificate, nil
}

// refusal makes of an error behind a handshake what the host says of our certificate, where it says so. With TLS 1.3 our side of the
// handshake is over when the host reads the certificate, and its alert comes in the place of a reply.
func (o *own) refusal(conn net.Conn, err error) error {
	var answered *replyError
	if !o.isAsked || errors.As(err, &answered) {
		return err
	}
	if !isAlert(err) {
		// Our write may have failed before the alert was read.
		_ = conn.SetReadDeadline(time.Now().Add(refusalWait))
		_, read := conn.Read(make([]byte, 1))
		if !isAlert(read) {
			return err
		}
		err = read
	}
	switch {
	case o.certificate == nil:
		err = fmt.Errorf("the host asks for a certificate, and the connector has none: %w", err)
	case o.certificate.Leaf != nil:
		err = fmt.Errorf("the host refuses our certificate of %s: %w", o.certificate.Leaf.Subject, err)
	default:
		err = fmt.Errorf("the host refuses our certificate: %w", err)
	}
	return &handshakeError{err}
}

// isAlert is whether the other side of TLS has ended it.
func isAlert(err error) bool {
	failed, is := errors.AsType[*net.OpError](err)
	return is && failed.Op == "remote error"
}

// external proves who we are by the certificate that was shown (RFC 4422 appendix A), to hosts that offer to take it for that. To others
// the certificate itself has to be enough.
func external(user string) func(offered []string) sasl.Client {
	return func(offered []string) sasl.Client {
		if !slices.ContainsFunc(offered, func(name string) bool { return strings.EqualFold(name, "EXTERNAL") }) {
			return nil
		}
		return sasl.NewExternalClient(user)
	}
}
