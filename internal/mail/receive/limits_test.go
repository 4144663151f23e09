package receive

import (
	"net/netip"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
)

func TestRatesCountByAddressByUserOrByBoth(t *testing.T) {
	t.Parallel()
	one, other := sourceOf(netip.MustParseAddr("192.0.2.1")), sourceOf(netip.MustParseAddr("192.0.2.2"))
	for _, c := range []struct {
		of      RateSource
		allowed []bool // ann from one, ann from the other, bob from one, nobody from one
	}{
		{RateOfAddress, []bool{true, true, false, false}},
		{RateOfUser, []bool{true, false, true, true}},
		{RateOfBoth, []bool{true, false, false, false}},
	} {
		a, connector, now := newAccounts(), &Connector{Name: "in", Limits: Limits{MessagesPerMinute: 1, RateOf: c.of}}, time.Unix(1, 0)
		got := []bool{
			a.message(connector, one, "ann", 0, now), a.message(connector, other, "ann", 0, now), a.message(connector, one, "bob", 0, now),
			a.message(connector, one, "", 0, now),
		}
		for i := range got {
			if got[i] != c.allowed[i] {
				t.Errorf("rate of %d, message %d: allowed %v", c.of, i, got[i])
			}
		}
	}
	a := newAccounts()
	for i, name := range []string{"in", "submission", ""} {
		if got := a.message(&Connector{Name: name}, one, "ann", 2, time.Unix(1, 0)); got != (i < 2) {
			t.Errorf("message %d of a user with a rate of his own, on %q: %v", i, name, got)
		}
	}
}

func TestRangesAreNetworksAndPairsOfAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][3]bool{ // 10.0.0.1, 10.0.0.200, 2001:db8::5
		"10.0.0.0/8": {true, true, false}, "10.9.9.9/8": {true, true, false}, "10.0.0.0/25": {true, false, false}, "10.0.0.1": {true, false, false},
		"10.0.0.1-10.0.0.9": {true, false, false}, "2001:db8::/32": {false, false, true}, "2001:db8::1-2001:db8::9": {false, false, true},
		"0.0.0.0/0": {true, true, false}, "::/0": {false, false, true},
	} {
		r, err := ParseRange(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i, address := range []string{"10.0.0.1", "10.0.0.200", "2001:db8::5"} {
			if got := r.Contains(netip.MustParseAddr(address)); got != want[i] {
				t.Errorf("%s contains %s: %v", text, address, got)
			}
		}
	}
	for _, wrong := range []string{"", "10.0.0.9-10.0.0.1", "10.0.0.1-::1", "10.0.0.0/33", "here", "1-2", "10.0.0.1-"} {
		if r, err := ParseRange(wrong); err == nil {
			t.Errorf("%q is %v", wrong, r)
		}
	}
}

// Without each right, what it stands for is refused.
func TestRightsAreWhatEachSays(t *testing.T) {
	t.Parallel()
	ours, theirs := message.Address{Local: "ann", Domain: "example.com"}, message.Address{Local: "x", Domain: "example.net"}
	configuration := &Configuration{AcceptedDomains: []string{"example.com"}, ReceiveBytes: 1000, SendBytes: 2000}
	all := Submit | AnyRecipient | AnySender | AuthoritativeSender
	for _, c := range []struct {
		name      string
		rights    Rights
		sender    message.Address
		recipient message.Address
		refusal   string
		bytes     int64
	}{
		{"everything", all | AuthenticatedFlag, theirs, theirs, "", 2000},
		{"not to submit", all &^ Submit, theirs, ours, "This peer may not submit mail here", 1000},
		{"not to relay", all &^ AnyRecipient, theirs, theirs, "Unable to relay", 1000},
		{"not to relay, to us", all &^ AnyRecipient, theirs, ours, "", 1000},
		{"not as anybody", all &^ AnySender, theirs, ours, "The domain of the sender is none of ours", 1000},
		{"not as one of ours", all &^ AuthoritativeSender, ours, ours, "This peer may not send under a domain of ours", 1000},
		{"any size", all | BypassSizeLimit, theirs, ours, "", 0},
	} {
		connector := &Connector{Groups: []Group{Anonymous}, Rights: map[Group]Rights{Anonymous: c.rights}, Limits: Limits{MessageBytes: 5000}}
		peer := &connection{server: &Server{}, configuration: configuration, connector: connector}
		refusal := peer.senderRefusal(peer.rights(), c.sender, configuration.isAccepted(c.sender.Domain))
		if refusal == nil {
			refusal = (&transaction{connection: peer, sender: c.sender}).recipientRefusal(c.recipient, false)
		}
		text := ""
		if refusal != nil {
			text = refusal.Message
		}
		if text != c.refusal || peer.messageBytes() != c.bytes {
			t.Errorf("%s: %q, %d bytes", c.name, text, peer.messageBytes())
		}
	}
}

func TestUsersWithoutAConnectorSendUnderOurDomainsOrTheirOwnSenders(t *testing.T) {
	t.Parallel()
	configuration := &Configuration{
		AcceptedDomains: []string{"example.org"}, Users: map[string]User{"ann": {}, "shop": {Senders: []string{"shop.example"}}},
	}
	for _, c := range []struct {
		user, domain string
		may          bool
	}{
		{"ann", "example.org", true},
		{"ann", "bank.example", false},
		{"shop", "shop.example", true},
		{"shop", "example.org", false},
	} {
		if may := configuration.MaySendAs(c.user, message.Address{Local: "x", Domain: c.domain}); may != c.may {
			t.Errorf("%s may send under %s: %v", c.user, c.domain, may)
		}
	}
}

// Failures of AUTH count for as long as the lockout lasts that they lead to.
func TestFailuresOfAuthenticationAreForgottenInTime(t *testing.T) {
	t.Parallel()
	a, limits, source := newAccounts(), Limits{LockoutFailures: 2, LockoutTime: time.Minute}, sourceOf(netip.MustParseAddr("192.0.2.1"))
	now := time.Unix(1, 0)
	for _, step := range []struct {
		after    time.Duration
		isLocked bool
	}{{0, false}, {61 * time.Second, false}, {59 * time.Second, true}} {
		now = now.Add(step.after)
		a.authFailed(limits, source, "ann", now)
		if a.isLockedOut(source, now) != step.isLocked {
			t.Errorf("%v after the failure before: locked out %v, want %v", step.after, !step.isLocked, step.isLocked)
		}
	}
	if now = now.Add(time.Minute); a.isLockedOut(source, now) {
		t.Error("a lockout lasts for ever")
	}
	// However long that is: what is swept out in between does not count any more.
	limits.LockoutTime = 24 * time.Hour
	for _, step := range []struct {
		after    time.Duration
		isLocked bool
	}{{48 * time.Hour, false}, {23 * time.Hour, true}} {
		now = now.Add(step.after)
		a.connect(&Connector{}, NodeLimits{}, source, now.Add(-time.Minute))
		a.authFailed(limits, source, "ann", now)
		if a.isLockedOut(source, now) != step.isLocked || a.isAccountLocked("ann", source, now) != step.isLocked {
			t.Errorf("%v after the failure before, of a day: locked out %v, want %v", step.after, !step.isLocked, step.isLocked)
		}
	}
	limits.LockoutTime = time.Minute
	now = now.Add(48 * time.Hour)
	for range 3 {
		a.authFailed(limits, source, "ann", now)
		a.authSucceeded(source, "ann", now)
	}
	if a.isLockedOut(source, now) {
		t.Error("somebody who succeeded in between is locked out")
	}
}
