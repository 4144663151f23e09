package blocklist_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"github.com/parley-broker/parley/internal/mail/blocklist"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// zone holds the answers of DNS by name.
type zone map[string][]string

func (z zone) LookupHost(_ context.Context, name string) ([]string, error) {
	if name == "2.2.0.192.away.example." {
		return nil, errors.New("no answer")
	}
	if answers := z[name]; answers != nil {
		return answers, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestHostThatAListNamesIsRefused(t *testing.T) {
	t.Parallel()
	dns := zone{
		"1.2.0.192.list.example.": {"127.0.0.2"}, "3.2.0.192.list.example.": {"127.255.255.254"}, "4.2.0.192.list.example.": {"198.51.100.1"},
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.list.example.": {"127.0.0.4"},
	}
	f := &blocklist.Filter{Zones: []string{"away.example", "list.example"}, Resolver: dns, Log: slog.New(slog.DiscardHandler)}
	for peer, isListed := range map[string]bool{
		"192.0.2.1": true, "2001:db8::1": true,
		"192.0.2.2": false, // one list does not answer, the other does not name it
		"192.0.2.3": false, // the list refuses to answer
		"192.0.2.4": false, // no answer of a list
	} {
		session, err := f.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e := &receive.Exchange{Peer: netip.AddrPortFrom(netip.MustParseAddr(peer), 25)}
		if v := session.Handle(t.Context(), receive.Connected, e); v.Action != receive.Continue {
			t.Errorf("%s: refused before MAIL", peer)
		}
		v := session.Handle(t.Context(), receive.SenderGiven, e)
		if got := v.Action == receive.Refuse && v.Reply.Code == 550; got != isListed {
			t.Errorf("%s: %+v", peer, v)
		}
		session.Close()
	}
}
