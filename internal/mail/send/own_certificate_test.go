package send_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/send"
)

// A host that asks for a certificate gets that of the connector, by which it knows who we are, with AUTH EXTERNAL where it offers that. A
// failure is one of the way to the host, whose queue waits, and the error says whose fault it is.
func TestConnectorProvesWhoItIsByItsCertificate(t *testing.T) {
	t.Parallel()
	known, outsider := mailtest.Certificate(t, "hub.example"), mailtest.Certificate(t, "outsider.example")
	clients := x509.NewCertPool()
	clients.AddCert(known.Leaf)
	asks := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	asksByTLS12 := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MaxVersion: tls.VersionTLS12}
	show := func(c *tls.Certificate) func() (*tls.Certificate, error) {
		return func() (*tls.Certificate, error) { return c, nil }
	}
	for _, c := range []struct {
		name      string
		connector send.Connector
		asks      *tls.Config
		offers    string
		answer    string
		isClear   bool
		fails     string // enhanced code and a part of the text
		shown     []string
		says      string
	}{
		{name: "a host that does not ask sees none", connector: send.Connector{Certificate: show(known)}},
		{name: "a host that asks sees it", connector: send.Connector{Certificate: show(known)}, asks: asks, shown: []string{"hub.example"}},
		{name: "in TLS 1.2 too", connector: send.Connector{Certificate: show(known)}, asks: asksByTLS12, shown: []string{"hub.example"}},
		{
			name: "whatever authorities the host names", connector: send.Connector{Certificate: show(outsider)},
			asks: &tls.Config{ClientAuth: tls.RequireAnyClientCert, ClientCAs: clients}, shown: []string{"outsider.example"},
		},
		{name: "there is none", connector: send.Connector{TLS: send.TLSRequired}, asks: asks, fails: "4.7.5 the host asks for a certificate, and the connector has none"},
		{name: "there is none, in TLS 1.2", connector: send.Connector{TLS: send.TLSRequired}, asks: asksByTLS12, fails: "4.7.5 the host asks for a certificate, and the connector has none"},
		{name: "it is refused", connector: send.Connector{TLS: send.TLSRequired, Certificate: show(outsider)}, asks: asks, fails: "4.7.5 the host refuses our certificate of CN=outsider.example"},
		{name: "it is refused, in TLS 1.2", connector: send.Connector{TLS: send.TLSRequired, Certificate: show(outsider)}, asks: asksByTLS12, fails: "4.7.5 the host refuses our certificate of CN=outsider.example"},
		{name: "it is refused, in TLS from the first byte", connector: send.Connector{ImplicitTLS: true, Certificate: show(outsider)}, asks: asks, fails: "4.7.5 the host refuses our certificate of CN=outsider.example"},
		{name: "in TLS from the first byte", connector: send.Connector{ImplicitTLS: true, Certificate: show(known)}, asks: asks, shown: []string{"hub.example"}},
		{
			name: "it cannot be read", connector: send.Connector{Certificate: func() (*tls.Certificate, error) { return nil, errors.New("no such file") }}, asks: asks,
			fails: "4.3.5 our certificate cannot be used: no such file",
		},
		{name: "EXTERNAL", connector: send.Connector{Mechanism: "EXTERNAL", Certificate: show(known)}, asks: asks, offers: "AUTH PLAIN EXTERNAL", shown: []string{"hub.example"}, says: "AUTH EXTERNAL ="},
		{name: "EXTERNAL for a user", connector: send.Connector{Mechanism: "EXTERNAL", User: "hub", Certificate: show(known)}, asks: asks, offers: "AUTH external", shown: []string{"hub.example"}, says: "AUTH EXTERNAL aHVi"},
		{name: "EXTERNAL that is not offered", connector: send.Connector{Mechanism: "EXTERNAL", Certificate: show(known)}, asks: asks, offers: "AUTH PLAIN", shown: []string{"hub.example"}},
		{
			name: "EXTERNAL that is refused", connector: send.Connector{Mechanism: "EXTERNAL", Certificate: show(known)}, asks: asks, offers: "AUTH EXTERNAL", answer: "535 5.7.8 not you",
			shown: []string{"hub.example"}, says: "AUTH EXTERNAL =", fails: "5.7.8 not you",
		},
		{name: "EXTERNAL, and a host without TLS", connector: send.Connector{Mechanism: "EXTERNAL", Certificate: show(known)}, isClear: true, offers: "AUTH EXTERNAL", fails: "4.7.5"},
		{name: "EXTERNAL that is refused in the handshake does not go in clear", connector: send.Connector{Mechanism: "EXTERNAL", Certificate: show(outsider)}, asks: asksByTLS12, fails: "4.7.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &host{certificate: mailtest.Certificate(t, "relay.example"), asks: c.asks, isImplicit: c.connector.ImplicitTLS}
			if c.offers != "" {
				h.extensions = append(h.extensions, c.offers)
			}
			if !c.isClear && !c.connector.ImplicitTLS {
				h.extensions = append(h.extensions, "STARTTLS")
			}
			h.answer = func(line string) string {
				switch {
				case !strings.HasPrefix(line, "AUTH"):
					return ""
				case c.answer != "":
					return c.answer
				}
				return "235 2.7.0 welcome"
			}
			connector := c.connector
			connector.SmartHosts = []send.SmartHost{{Name: "[127.0.0.1]:" + strconv.Itoa(portOf(t, h.serve(t)))}}
			connector.Hello = "hub.example"
			carrier := &send.SMTPCarrier{
				Resolver: zone(t, false), Logger: slog.New(slog.DiscardHandler),
				Connector: func(string) (send.Connector, bool) { return connector, true },
			}
			way, err := carrier.Connect(t.Context(), send.Hop{Kind: "SMART_HOST", Name: "host"})
			if err == nil {
				if got := outcome(way.Send(t.Context(), letter("Subject: x\r\n\r\nx\r\n", "a@b.example"))); got != "delivered 2.0.0" {
					t.Errorf("the result is %s", got)
				}
				way.Close()
			}
			failed, is := errors.AsType[*send.OpenError](err)
			switch {
			case (c.fails != "") != (err != nil):
				t.Errorf("connected with %v", err)
			case is && (!failed.Result.HostFailed || !strings.Contains(failed.Result.Enhanced+" "+strings.TrimPrefix(failed.Result.Text, "agree on TLS: "), c.fails)):
				t.Errorf("it failed with %+v", failed.Result)
			}
			_, lines := h.received()
			h.mu.Lock()
			defer h.mu.Unlock()
			if !slices.Equal(h.shown, c.shown) {
				t.Errorf("it was shown %q", h.shown)
			}
			said := slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "AUTH") })
			if strings.Join(said, ", ") != c.says {
				t.Errorf("it received %q", said)
			}
		})
	}
}
