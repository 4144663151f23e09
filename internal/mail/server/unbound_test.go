package server_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/server"
)

// A binding that another process has keeps the daemon from nothing else, and is taken when it is free.
func TestDaemonStartsWithoutABindingThatIsTaken(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	taken := listen(t)
	h.exec(`select parley_mail.apply(jsonb_build_object('receive connector', jsonb_build_object('taken', jsonb_build_object('usage', 'CLIENT', 'tls', 'OFF',
		'authentication_without_tls', true, 'bindings', jsonb_build_array($1::text)))))`, taken.Addr().String())
	h.start()
	h.await("the other binding", h.listens)
	h.submit("ann@example.org")
	h.await("the mail", func() bool { return len(h.inbox()) == 1 })
	finding := func() string {
		return h.text(`select coalesce(string_agg(f.cause, ' '), '') from parley_mail._p_find_daemon_faults() as f where f.code = 'mail-binding'`)
	}
	h.await("the finding", func() bool { return finding() != "" })
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	h.await("the binding", func() bool {
		conn, err := net.Dial("tcp", taken.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	h.await("the end of the finding", func() bool { return finding() == "" })
}

// A binding that was named for a daemon and is in no connector any more keeps it from nothing else.
func TestDaemonStartsWithoutABindingThatNoConnectorHas(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.run(server.Config{
		NameServers: []string{"127.0.0.1:1"},
		Bindings:    []netip.AddrPort{netip.MustParseAddrPort(mailtest.FreeAddress(t)), netip.MustParseAddrPort(h.address)},
	})
	h.await("the other binding", h.listens)
	h.await("the finding", func() bool {
		return h.text(`select count(*)::text from parley_mail._p_find_daemon_faults() as f where f.code = 'mail-binding' and f.cause like 'no receive connector%'`) == "1"
	})
}
