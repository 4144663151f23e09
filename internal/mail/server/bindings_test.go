package server

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/parleytest"
)

// Several daemons on one machine have a binding each: none takes that of another, whatever is configured anew.
func TestDaemonListensOnItsOwnBindingsAlone(t *testing.T) {
	t.Parallel()
	var bindings []netip.AddrPort
	for range 2 {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		bindings = append(bindings, netip.MustParseAddrPort(listener.Addr().String()))
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := New(Config{Pool: pool, NameServers: []string{"127.0.0.1:1"}, Bindings: bindings[:1], Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	connector := receive.NewConnector("in", receive.Internet)
	connector.Bindings, connector.FQDN = bindings, "hub.example.org"
	s.settings.Store(&settings{receive: &receive.Configuration{Connectors: []*receive.Connector{connector}}})
	if err := s.receiver.Configure(s.settings.Load().receive); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.receiver.Run(ctx, nil) }()
	isOpen := func(binding netip.AddrPort) bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", binding.String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	parleytest.Until(t, "its own binding", func() bool {
		s.openWaysIn(ctx)
		return isOpen(bindings[0])
	})
	if isOpen(bindings[1]) {
		t.Error("it listens on the binding of another daemon")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A daemon that is stopped while it reads its configuration or opens its ways in leaves no finding behind.
func TestDaemonThatStopsMeanwhileReportsNoProblem(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := New(Config{Pool: pool, NameServers: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	connector := receive.NewConnector("in", receive.Internet)
	connector.Bindings, connector.FQDN = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, "hub.example.org"
	s.settings.Store(&settings{receive: &receive.Configuration{Connectors: []*receive.Connector{connector}}, sending: &sending{}})
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.readSettings(stopped); err == nil {
		t.Error("the configuration is read by a daemon that has stopped")
	}
	s.openWaysIn(stopped)
	if found := s.governing.problems(time.Now()); len(found) != 0 {
		t.Errorf("it reports %+v", found)
	}
	if err := s.readSettings(t.Context()); err == nil {
		t.Error("the configuration is read from a server that is not there")
	}
	if found := s.governing.problems(time.Now()); len(found) != 1 || found[0].Code != problemConfiguration {
		t.Errorf("it reports %+v", found)
	}
}
