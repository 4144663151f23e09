package operations_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestHeldDomainsWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	sqltest.Equal(b.Session, true, "select parley_mail.hold_domain('Example.COM', 'their host is moving')")
	id := b.Sent("a", "x@example.com")
	b.Exec("select parley_store.set_lane('mail', 'MAILBOX/example.com/example.com'), parley_store.set_lane('mail', 'DNS/internet/example.net')")
	sqltest.Equal(b.Session, false, "select parley_mail.hold_domain('example.com')")
	sqltest.Equal(b.Session, "DNS/internet/example.com", "select string_agg(lane, ' ') from parley_store.lanes where suspended_for like 'domain held%'")
	sqltest.Equal(b.Session, "SUSPENDED domain held: example.com", "select status || ' ' || suspended_for from parley_store.lanes where lane = 'DNS/internet/example.com'")
	if got := b.StatusOf(id); got != "DNS READY" {
		t.Errorf("held: %s", got)
	}
	if claims := b.ClaimMail(10, 10); len(claims) > 0 {
		t.Errorf("claimed %v", claims)
	}
	sqltest.Equal(b.Session, "example.com", "select string_agg(domain, ' ') from parley_mail.held_domains")
	sqltest.Equal(b.Session, true, "select parley_mail.release_domain('example.com')")
	sqltest.Equal(b.Session, false, "select parley_mail.release_domain('example.com')")
	if claims := b.ClaimMail(10, 10); len(claims) != 1 {
		t.Errorf("claimed %v", claims)
	}
	b.RefusesMail(6, "select parley_mail.hold_domain(null)")
	b.RefusesMail(6, "select parley_mail.hold_domain('a/b')")
}

// Holding a domain of which no queue goes by DNS holds nothing, and a notice says where its mail goes.
func TestHoldingADomainSaysWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"send connector": {"partner": {"address_spaces": [{"pattern": "partner.example"}], "routing": "SMART_HOST", "smart_hosts": [{"host": "relay.example"}]}}}`)
	s, notices := b.Noticing("")
	for domain, want := range map[string]string{
		"example.com": "", "example.org": "mail for example.org is delivered here, and not held",
		"partner.example": "mail for partner.example goes by queue SMART_HOST/partner/relay.example, and is not held",
	} {
		*notices = nil
		s.Exec("select parley_mail.hold_domain($1)", domain)
		got := ""
		for _, n := range *notices {
			got += n.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", domain, got, want)
		}
	}
}
