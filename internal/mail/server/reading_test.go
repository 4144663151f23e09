package server // The parts read of a configuration are not exported.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
)

// kindsOfTests are those of sql/mail/base/delivery_kinds.sql that go by objects, as a configuration has them.
const kindsOfTests = `{"DNS": {"object_kind": "send connector", "next_hop_is_domain": true}, "SMART_HOST": {"object_kind": "send connector"},
	"MAILBOX": {"object_kind": "mailbox store"}, "SERVICE": {"object_kind": "service binding"}}`

// read reads a configuration for a daemon called d on the host h, which may use no folder.
func read(t *testing.T, text string) *settings {
	t.Helper()
	text = strings.Replace(text, "{", `{"kinds": `+kindsOfTests+", ", 1)
	folders, err := hostfolders.Permit()
	if err != nil {
		t.Fatal(err)
	}
	s, err := reading{host: "h", names: []string{"d", "h"}, folders: folders}.settings(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	for of, err := range s.unusable {
		t.Errorf("%s is left out: %v", of, err)
	}
	return s
}

// Each limit of a receive connector is the one that its setting gives, in its unit.
func TestEachSettingOfAReceiveConnectorIsItsLimit(t *testing.T) {
	t.Parallel()
	const connector = `{"organization": {"organization": {"fqdn": "mx.example.org", "default_domain": "example.org", "max_receive_size": 201,
			"max_send_size": 202, "max_recipients": 203, "max_connections_per_node": 204, "connection_rate_per_node": 205%s}},
		"receive connector": {"in": {"enabled": true, "usage": "INTERNET", "bindings": ["192.0.2.1:25"], "remote_ranges": ["0.0.0.0/0"],
			"max_connections": 101, "max_connections_per_source": 102, "max_connections_per_source_percent": 3, "connection_rate": 104,
			"connection_timeout": 206, "inactivity_timeout": 106, "message_rate": 107, "message_rate_source": "BOTH", "max_message_size": 108,
			"size_mode": "%s", "max_header_size": 109, "max_recipients": 110, "max_hops": 111, "max_local_hops": 112, "max_protocol_errors": 113,
			"max_authentication_failures": 114, "authentication_lockout": 115, "tarpit": 116, "max_pipelined_commands": 117, "max_command_line": 118,
			"max_text_line": 119, "bare_line_ends": "%s", "tls": "REQUIRED", "spf": "REJECT", "dkim": "RECORD", "dmarc": "OFF",
			"refuse_reserved_domains": true, "trusted_networks": ["192.0.2.0/24"], "peer_server_networks": ["192.0.3.0/24"],
			"xclient_networks": ["192.0.4.0/24"], "proxy_networks": ["192.0.5.0/24"]}}}`
	want := receive.Limits{
		Connections: 101, ConnectionsPerSource: 102, PercentPerSource: 3, ConnectionsPerMinute: 104, MessagesPerMinute: 107, RateOf: receive.RateOfBoth,
		ConnectionTimeout: 206 * time.Second, InactivityTimeout: 106 * time.Second, MessageBytes: 108, HeaderBytes: 109, Recipients: 110,
		Hops: 111, LocalHops: 112, ProtocolErrors: 113, FailedAuth: 114, LockoutFailures: 10, LockoutTime: 115 * time.Second, Tarpit: 116 * time.Second,
		PipelinedCommands: 117, CommandLine: 118, TextLine: 119,
	}
	for _, c := range []struct {
		name, organization, size, ends string
		change                         func(*receive.Limits)
	}{
		{"as it is", "", "ENABLED", "REFUSE", nil},
		{"without SIZE", "", "DISABLED", "REFUSE", func(l *receive.Limits) { l.IsSizeOff, l.IsSizeUnadvertised = true, true }},
		{"without the value of SIZE", "", "ENABLED_WITHOUT_VALUE", "REFUSE", func(l *receive.Limits) { l.IsSizeUnadvertised = true }},
		{"with line ends that are mended", "", "ENABLED", "NORMALIZE", func(l *receive.Limits) { l.IsNormalizing = true }},
		{"with fewer hops in the organization", `, "max_hops": 7, "max_local_hops": 5`, "ENABLED", "REFUSE", func(l *receive.Limits) { l.Hops, l.LocalHops = 7, 5 }},
		{"with more hops in the organization", `, "max_hops": 199, "max_local_hops": 199`, "ENABLED", "REFUSE", nil},
	} {
		s := read(t, `{"objects": `+fmt.Sprintf(connector, c.organization, c.size, c.ends)+`}`)
		limits := want
		if c.change != nil {
			c.change(&limits)
		}
		got := s.receive.Connectors[0]
		if got.Limits != limits {
			t.Errorf("%s: the limits are\n%+v, want\n%+v", c.name, got.Limits, limits)
		}
		if got.TLS != receive.TLSRequired || got.IsDisabled || !got.IsReservedRefused || got.FQDN != "mx.example.org" ||
			got.Checks != (authenticity.Checks{SPF: authenticity.Enforce, DKIM: authenticity.Record, DMARC: authenticity.Off}) {
			t.Errorf("%s: the connector is %+v", c.name, got)
		}
		for address, ranges := range map[string][]receive.Range{
			"192.0.2.9": got.Secured, "192.0.3.9": got.PeerServers, "192.0.4.9": got.XClientRange, "192.0.5.9": got.ProxyRanges, "198.51.100.1": got.RemoteRanges,
		} {
			if len(ranges) != 1 || !ranges[0].Contains(netip.MustParseAddr(address)) {
				t.Errorf("%s: the ranges with %s are %v", c.name, address, ranges)
			}
		}
		of := s.receive
		if of.ReceiveBytes != 201 || of.SendBytes != 202 || of.Recipients != 203 || of.Node != (receive.NodeLimits{Connections: 204, ConnectionsPerMinute: 205}) {
			t.Errorf("%s: the organization has %d, %d, %d, %+v", c.name, of.ReceiveBytes, of.SendBytes, of.Recipients, of.Node)
		}
	}
}

// Each right of a permission group is the one of its name, for those whom the group is of.
func TestEachRightOfAPermissionGroupIsItsRight(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]receive.Rights{
		"SUBMIT": receive.Submit, "ANY_RECIPIENT": receive.AnyRecipient, "ANY_SENDER": receive.AnySender,
		"AUTHORITATIVE_DOMAIN_SENDER": receive.AuthoritativeSender, "AUTHENTICATED_FLAG": receive.AuthenticatedFlag,
		"BYPASS_ANTI_SPAM": receive.BypassFilters, "BYPASS_SIZE_LIMIT": receive.BypassSizeLimit, "ACCEPT_ROUTING_HEADERS": receive.AcceptRoutingHeaders,
		"ACCEPT_ORGANIZATION_HEADERS": receive.AcceptOrganizationHeaders, "ACCEPT_FOREST_HEADERS": receive.AcceptForestHeaders,
		"XCLIENT": receive.XClient, "PROXY_FROM": 0, "SHADOW": 0,
	} {
		c := receive.NewConnector("in", receive.Internet)
		groups := map[string]permissionGroup{
			"some": {Rights: []string{name}, Principals: []string{"ANONYMOUS", "PARTNER"}}, "more": {Rights: []string{"SUBMIT"}, Principals: []string{"PARTNER"}},
			"ann": {Rights: []string{name}, Principals: []string{"PEER_SERVER"}, Credentials: []string{"ann"}},
			"not": {Rights: []string{"SUBMIT", "XCLIENT"}, Principals: []string{"AUTHENTICATED"}},
		}
		if err := admit(c, []string{"some", "more", "ann"}, groups); err != nil {
			t.Fatal(err)
		}
		if c.Rights[receive.Anonymous] != want || c.Rights[receive.Partners] != want|receive.Submit || c.Grants["ann"] != want || len(c.Rights) != 2 ||
			slices.Contains(c.Groups, receive.Users) || slices.Contains(c.Groups, receive.PeerServers) {
			t.Errorf("%s: rights %v, grants %v, groups %v", name, c.Rights, c.Grants, c.Groups)
		}
	}
	if err := admit(new(receive.Connector), []string{"some"}, map[string]permissionGroup{"some": {Rights: []string{"SUBMITTED"}}}); err == nil {
		t.Error("what is no right is taken")
	}
}

// Each setting of a send connector is what the sender holds.
func TestEachSettingOfASendConnectorIsItsLimit(t *testing.T) {
	t.Parallel()
	s := read(t, `{"objects": {"organization": {"organization": {"fqdn": "mx.example.org"}}, "send connector": {
		"out": {"enabled": true, "routing": "SMART_HOST", "smart_hosts": [{"host": "a.example", "port": 587, "weight": 3}, {"host": "b.example"}],
			"smart_host_order": "LISTED", "port": 26, "authentication": "PLAIN", "username": "u", "password": "p", "tls": "DOMAIN", "tls_domain": "c.example",
			"implicit_tls": true, "mta_sts": true, "max_messages_per_connection": 11, "max_connections": 12, "max_recipients_per_message": 13,
			"inactivity_timeout": 14, "connect_timeout": 15, "force_helo": true, "source_addresses": ["192.0.2.1", "2001:db8::1"], "sign": true,
			"keep_headers": ["FOREST"], "rates": [{"key": "sender"}], "nodes": ["x"]},
		"plain": {"enabled": true, "routing": "DNS", "smart_hosts": [{"host": "unused.example"}], "tls": "DANE", "authentication": "NONE", "helo": "out.example.org", "rates": [{"key": "host"}],
			"source_nodes": ["other"]}}}}`)
	out := s.sending.connectors["out"]
	if out.Limits != (send.Limits{MessagesEach: 11, Connections: 12, IsRated: true}) || out.Recipients != 13 || out.Port != 26 ||
		out.Timeouts != (send.Timeouts{Connect: 15 * time.Second, Command: 14 * time.Second, Data: 14 * time.Second}) {
		t.Errorf("the limits are %+v, %d, %+v", out.Limits, out.Recipients, out.Timeouts)
	}
	if out.Mechanism != "PLAIN" || out.User != "u" || out.Password != "p" || out.TLS != send.TLSVerified || !slices.Equal(out.Names, []string{"c.example"}) ||
		!out.ImplicitTLS || !out.UsesMTASTS || out.DANE || !out.OldHello || out.Hello != "mx.example.org" || out.Order != send.ListedOrder {
		t.Errorf("the connector is %+v", out)
	}
	if fmt.Sprint(out.SmartHosts, out.Source4, out.Source6) != "[{a.example:587 3} {b.example 0}] [192.0.2.1] [2001:db8::1]" {
		t.Errorf("hosts and sources are %v, %v, %v", out.SmartHosts, out.Source4, out.Source6)
	}
	if s.sending.leaving["out"] != (leaving{signs: true, keeps: message.Trusted{Forest: true}}) || s.sending.leaving["plain"] != (leaving{}) {
		t.Errorf("on the way out: %+v", s.sending.leaving)
	}
	plain := s.sending.connectors["plain"]
	if !plain.DANE || plain.TLS != send.TLSOpportunistic || plain.Mechanism != "" || plain.Hello != "out.example.org" || !plain.Limits.IsRatedByHost || plain.OldHello ||
		len(plain.SmartHosts) > 0 {
		t.Errorf("the connector is %+v", plain)
	}
	// Its routing may have changed while messages waited.
	if got := s.passedBy("d", "h"); !slices.Equal(got, []string{"DNS/plain/", "SMART_HOST/plain/"}) {
		t.Errorf("left to others are %v", got)
	}
	if got := s.passedBy("d", "other"); len(got) > 0 {
		t.Errorf("on the host that is named, left to others are %v", got)
	}
}

// Unusable objects are left out by a daemon that starts, and by one that runs only those that it left out before or may not use.
func TestDaemonThatRunsKeepsItsConfiguration(t *testing.T) {
	t.Parallel()
	wrong, of := errors.New("wrong"), object{"send connector", "out"}
	for _, c := range []struct {
		name   string
		used   *settings
		err    error
		isLeft bool
	}{
		{name: "it starts", err: wrong, isLeft: true},
		{name: "it runs", used: &settings{}, err: wrong},
		{name: "it runs without it", used: &settings{unusable: map[object]error{of: wrong}}, err: wrong, isLeft: true},
		{name: "it may not use it", used: &settings{}, err: fmt.Errorf("x: %w", hostfolders.ErrNotPermitted), isLeft: true},
	} {
		s := &settings{unusable: make(map[object]error)}
		if err := (reading{used: c.used}).leaveOut(s, of.kind, of.name, c.err); (err == nil) != c.isLeft || (s.unusable[of] != nil) != c.isLeft {
			t.Errorf("%s: %v, left out %v", c.name, err, s.unusable)
		}
	}
}

// Of two limits the smaller one holds, and none where there is none.
func TestLesserOfTwoLimitsHolds(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]int64{{1, 2, 1}, {2, 1, 1}, {0, 2, 2}, {2, 0, 2}, {0, 0, 0}, {3, 3, 3}} {
		if got := lesser(c[0], c[1]); got != c[2] {
			t.Errorf("of %d and %d it is %d", c[0], c[1], got)
		}
	}
}

// A part of the daemon works again at once while there is more, and otherwise when its interval is over or it is woken, though not at the
// same moment as often as it is woken.
func TestPartsAreRepeatedInTheirInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, wake, began := &Server{config: Config{Logger: slog.New(slog.DiscardHandler)}}, make(chan struct{}), time.Now()
		var worked []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			s.repeat(ctx, "it fails", wake, time.Second, func(context.Context) (bool, error) {
				worked = append(worked, time.Since(began))
				<-time.After(10 * time.Millisecond)
				return len(worked) == 2, nil
			})
		})
		pass := func(duration time.Duration) {
			select {
			case <-time.After(duration):
			case <-t.Context().Done():
			}
		}
		pass(1500 * time.Millisecond)
		for range 3 {
			wake <- struct{}{}
		}
		pass(1500 * time.Millisecond)
		cancel()
		running.Wait()
		first := []time.Duration{0, 1010 * time.Millisecond, 1020 * time.Millisecond, 1500 * time.Millisecond}
		if len(worked) != 7 || !slices.Equal(worked[:4], first) {
			t.Fatalf("it worked at %v", worked)
		}
		for i, at := range worked[4:6] {
			if since := at - worked[3+i]; since != 30*time.Millisecond {
				t.Errorf("woken after 10 ms of work it works again after %v", since)
			}
		}
	})
}
