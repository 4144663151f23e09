package receive_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// The settings that a connector needs, and those that no two may share. Beside the connector there is another, on the same binding for all
// peers.
func TestConfigurationThatIsNotWhatItSeemsIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*receive.Connector)
		want   string // of the error; nothing where it is taken
	}{
		"as it is to be": {func(*receive.Connector) {}, ""},
		"no name":        {func(c *receive.Connector) { c.Name = "" }, `receive connector "" needs a name, a binding and a remote range`},
		"no binding":     {func(c *receive.Connector) { c.Bindings = nil }, `receive connector "b" needs a name, a binding and a remote range`},
		"no range":       {func(c *receive.Connector) { c.RemoteRanges = nil }, `receive connector "b" needs a name, a binding and a remote range`},
		"no FQDN":        {func(c *receive.Connector) { c.FQDN = "" }, `receive connector "b": its FQDN "" is no domain`},
		"an FQDN of two": {func(c *receive.Connector) { c.FQDN = "mx one" }, `receive connector "b": its FQDN "mx one" is no domain`},
		"connections end before peers are silent": {
			func(c *receive.Connector) {
				c.Limits.ConnectionTimeout, c.Limits.InactivityTimeout = time.Minute, time.Minute
			},
			`receive connector "b": give it a connection timeout above its inactivity timeout`,
		},
		"connections end behind": {
			func(c *receive.Connector) {
				c.Limits.ConnectionTimeout, c.Limits.InactivityTimeout = time.Minute+1, time.Minute
			}, "",
		},
		"connections do not end": {func(c *receive.Connector) { c.Limits.ConnectionTimeout = 0 }, ""},
		"the name of another":    {func(c *receive.Connector) { c.Name = "a" }, `two receive connectors have the name "a"`},
		"TLS at once, beside one without": {
			func(c *receive.Connector) { c.Implicit = true }, `receive connectors "b" and "a" share 127.0.0.1:25, and only one begins with TLS`,
		},
		"TLS at once, elsewhere": {
			func(c *receive.Connector) {
				c.Implicit, c.Bindings = true, []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:465")}
			}, "",
		},
		"the range of another": {
			func(c *receive.Connector) { c.RemoteRanges = prefixes("10.0.0.0/8", "0.0.0.0/0") },
			`receive connectors "b" and "a" both have the range 0.0.0.0-255.255.255.255 on 127.0.0.1:25`,
		},
		"the range of another, elsewhere": {
			func(c *receive.Connector) {
				c.RemoteRanges, c.Bindings = prefixes("0.0.0.0/0"), []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:465")}
			}, "",
		},
	} {
		other := named("b", "10.0.0.0/8")
		c.change(other)
		got := ""
		if err := (&receive.Configuration{Connectors: []*receive.Connector{named("a", "0.0.0.0/0"), other}}).Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
