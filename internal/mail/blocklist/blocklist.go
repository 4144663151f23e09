// Package blocklist refuses mail from hosts that a DNS block list names (RFC 5782).
package blocklist

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// Resolver asks DNS. A *net.Resolver is one.
type Resolver interface {
	LookupHost(ctx context.Context, name string) ([]string, error)
}

// Filter asks block lists about the peers of a receive connector, at MAIL FROM: a peer that has authenticated may be on a list. Its fields
// are set before it is used.
type Filter struct {
	Zones    []string
	Resolver Resolver
	// Timeout bounds what DNS may take: 5 s where it is zero. A list that does not answer names nobody.
	Timeout time.Duration
	Log     *slog.Logger
}

// Session takes part in a session.
func (f *Filter) Session(context.Context) (receive.FilterSession, error) {
	return &session{filter: f}, nil
}

// session knows the peer that it has asked about: XCLIENT may put another in its place, for which there is another session.
type session struct {
	filter   *Filter
	hasAsked bool
	zone     string
}

// Handle refuses senders of a peer that is listed.
func (s *session) Handle(ctx context.Context, event receive.Event, e *receive.Exchange) receive.Verdict {
	if event != receive.SenderGiven {
		return receive.Verdict{}
	}
	peer := e.Peer.Addr()
	if !s.hasAsked {
		s.zone, s.hasAsked = s.filter.listedBy(ctx, peer), true
	}
	if s.zone == "" {
		return receive.Verdict{}
	}
	reply := receive.NewReply(550, 7, 1, "Your address "+peer.String()+" is on the list "+s.zone)
	return receive.Verdict{Action: receive.Refuse, Reply: reply}
}

// Close has nothing to give back.
func (*session) Close() {}

// listedBy gives the first list that names a peer, or nothing. All are asked at once.
func (f *Filter) listedBy(ctx context.Context, peer netip.Addr) (zone string) {
	timeout := f.Timeout
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	listed := make([]bool, len(f.Zones))
	var asking sync.WaitGroup
	for i, zone := range f.Zones {
		asking.Go(func() { listed[i] = f.isListed(ctx, peer, zone) })
	}
	asking.Wait()
	for i, zone := range f.Zones {
		if listed[i] {
			return zone
		}
	}
	return ""
}

func (f *Filter) isListed(ctx context.Context, peer netip.Addr, zone string) bool {
	found, err := f.Resolver.LookupHost(ctx, reversed(peer)+"."+strings.Trim(zone, ".")+".")
	if err != nil {
		var missing *net.DNSError
		if !errors.As(err, &missing) || !missing.IsNotFound {
			f.Log.Warn("a block list does not answer, and names nobody", "list", zone, "error", err)
		}
		return false
	}
	for _, text := range found {
		answer, err := netip.ParseAddr(text)
		if err != nil || !answer.Is4() || !answer.IsLoopback() {
			continue // an answer outside of 127.0.0.0/8 is none of a list: a provider that answers every name
		}
		if code := answer.As4(); code[1] == 255 && code[2] == 255 {
			f.Log.Warn("a block list refuses to answer us", "list", zone, "answer", text)
			continue // 127.255.255.0/24 is how lists say that they were asked wrongly
		}
		return true
	}
	return false
}

// reversed gives an address as lists are asked for it: its octets, or its half octets in IPv6, from the last to the first.
func reversed(peer netip.Addr) string {
	var labels []string
	if peer.Is4() {
		for _, octet := range peer.As4() {
			labels = append([]string{strconv.Itoa(int(octet))}, labels...)
		}
	} else {
		for _, octet := range peer.As16() {
			labels = append([]string{strconv.FormatUint(uint64(octet&0xf), 16), strconv.FormatUint(uint64(octet>>4), 16)}, labels...)
		}
	}
	return strings.Join(labels, ".")
}
