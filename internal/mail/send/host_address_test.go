package send_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// A domain none of whose hosts has an address takes no mail; where somebody could not be asked or a host did not answer, that may pass. A
// smart host without an address is a mistake in the configuration, with which no mail fails.
func TestHostWithoutAnAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		records []string
		smart   string
		want    string
		class   send.Class
		host    bool
	}{
		{name: "the only exchanger", records: []string{"b.example. 300 IN MX 10 gone.b.example."}, want: "5.4.4", class: send.Failed},
		{name: "the domain itself", records: []string{"b.example. 300 IN TXT nothing"}, want: "5.4.4", class: send.Failed},
		{
			name: "two of two", want: "5.4.4", class: send.Failed,
			records: []string{"b.example. 300 IN MX 10 gone.b.example.", "b.example. 300 IN MX 20 lost.b.example."},
		},
		{
			name: "the first, and the second cannot be looked up", want: "4.4.3", host: true,
			records: []string{"b.example. 300 IN MX 10 gone.b.example.", "b.example. 300 IN MX 20 broken.b.example."},
		},
		{
			name: "the second, and the first cannot be looked up", want: "4.4.3", host: true,
			records: []string{"b.example. 300 IN MX 20 gone.b.example.", "b.example. 300 IN MX 10 broken.b.example."},
		},
		{
			name: "the second, and the first does not answer", want: "4.4.1", host: true,
			records: []string{"b.example. 300 IN MX 20 gone.b.example.", "b.example. 300 IN MX 10 down.b.example.", "down.b.example. 300 IN A 127.0.0.1"},
		},
		{name: "one kind of address cannot be looked up", records: []string{"b.example. 300 IN MX 10 six-broken.b.example."}, want: "4.4.3", host: true},
		{name: "a smart host", smart: "gone.b.example", want: "4.4.4", host: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connector := send.Connector{Port: 1, Hello: "client.example"}
			if c.smart != "" {
				connector.SmartHosts = []send.SmartHost{{Name: c.smart}}
			}
			carrier := &send.SMTPCarrier{
				Resolver: zone(t, false, c.records...), Logger: slog.New(slog.DiscardHandler), Self: func(string) bool { return false },
				Connector: func(string) (send.Connector, bool) { return connector, true },
			}
			_, err := carrier.Connect(t.Context(), send.Hop{Kind: "DNS", Name: "b.example"})
			failed, is := errors.AsType[*send.OpenError](err)
			if !is || failed.Result.Enhanced != c.want || failed.Result.Class != c.class || failed.Result.HostFailed != c.host {
				t.Errorf("it failed with %v (%+v)", err, failed)
			}
		})
	}
}
