package receive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// Listen opens the listeners of all bindings. One that cannot be opened is an error beside those that can; Rebind tries it again.
func Listen(ctx context.Context, configuration *Configuration) (map[netip.AddrPort]net.Listener, error) {
	listeners, wanted := map[netip.AddrPort]net.Listener{}, configuration.bindings()
	var failed []error
	for _, binding := range slices.SortedFunc(maps.Keys(wanted), netip.AddrPort.Compare) {
		listener, err := listen(ctx, wanted[binding], binding)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		listeners[binding] = listener
	}
	return listeners, errors.Join(failed...)
}

// listened is logged of each binding.
const listened = "a binding is listened on"

// Run serves the listeners, by the binding of the configuration that each stands for, until the context is cancelled. Then idle connections
// are closed with 421, and messages under way have Grace to be taken. Configure comes first.
func (s *Server) Run(ctx context.Context, listeners map[netip.AddrPort]net.Listener) error {
	if s.configuration.Load() == nil {
		return errors.New("receiving mail needs a configuration: call Configure first")
	}
	s.open, s.wires = map[*connection]struct{}{}, make(chan net.Conn)
	s.secret = make([]byte, 32)
	_, _ = rand.Read(s.secret) // never fails
	s.library = smtp.NewServer(smtp.BackendFunc(newLibrarySession))
	s.library.MaxLineLength, s.library.AllowInsecureAuth = 0, true
	s.library.EnableDSN, s.library.EnableSMTPUTF8 = true, true
	s.library.ErrorLog = libraryLog{s.Log}

	connectionsCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var library sync.WaitGroup
	library.Go(func() { _ = s.library.Serve(wireListener{s.wires}) })
	s.listening.begin(func(binding netip.AddrPort, listener net.Listener) {
		s.acceptLoop(ctx, connectionsCtx, binding, listener)
	}, listeners)
	connectors := s.configuration.Load().bindings()
	for _, binding := range slices.SortedFunc(maps.Keys(listeners), netip.AddrPort.Compare) {
		s.Log.Info(listened, "binding", binding.String(), "connector", connectors[binding])
	}
	<-ctx.Done()
	s.listening.end()
	s.stopConnections(cancel)
	close(s.wires)
	library.Wait()
	return nil
}

// listening are the listeners while the server runs.
type listening struct {
	mu    sync.Mutex
	serve func(netip.AddrPort, net.Listener) // nothing while the server does not run
	open  map[netip.AddrPort]net.Listener
	loops sync.WaitGroup
}

func (l *listening) begin(serve func(netip.AddrPort, net.Listener), listeners map[netip.AddrPort]net.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serve, l.open = serve, map[netip.AddrPort]net.Listener{}
	for binding, listener := range listeners {
		l.add(binding, listener)
	}
}

// add serves a listener. The caller holds mu.
func (l *listening) add(binding netip.AddrPort, listener net.Listener) {
	serve := l.serve // which end takes away
	l.open[binding] = listener
	l.loops.Go(func() { serve(binding, listener) })
}

// end closes all listeners and waits for their loops.
func (l *listening) end() {
	l.mu.Lock()
	for _, listener := range l.open {
		_ = listener.Close()
	}
	l.serve, l.open = nil, nil
	l.mu.Unlock()
	l.loops.Wait()
}

// Addresses gives where the server listens.
func (s *Server) Addresses() []netip.AddrPort {
	s.listening.mu.Lock()
	defer s.listening.mu.Unlock()
	addresses := make([]netip.AddrPort, 0, len(s.listening.open))
	for _, listener := range s.listening.open {
		addresses = append(addresses, addrPort(listener.Addr()))
	}
	return addresses
}

// Rebind closes the listeners of bindings that a configuration does not have, and opens those that are new. Connections that are open go
// on. A listener that cannot be opened is an error, and can be tried again. Before Run there is nothing to do.
func (s *Server) Rebind(ctx context.Context, configuration *Configuration) error {
	l := &s.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serve == nil {
		return nil
	}
	wanted := configuration.bindings()
	for binding, listener := range l.open {
		if wanted[binding] == "" {
			_ = listener.Close()
			delete(l.open, binding)
			s.Log.Info("a binding is no longer listened on", "binding", binding.String())
		}
	}
	var failed []error
	for _, binding := range slices.SortedFunc(maps.Keys(wanted), netip.AddrPort.Compare) {
		connector := wanted[binding]
		if l.open[binding] != nil {
			continue
		}
		listener, err := listen(ctx, connector, binding)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		l.add(binding, listener)
		s.Log.Info(listened, "binding", binding.String(), "connector", connector)
	}
	return errors.Join(failed...)
}

// bindings gives the bindings of the connectors that are enabled, each with the name of one of them.
func (c *Configuration) bindings() map[netip.AddrPort]string {
	all := map[netip.AddrPort]string{}
	for _, connector := range c.Connectors {
		for _, binding := range connector.Bindings {
			if !connector.IsDisabled && all[binding] == "" {
				all[binding] = connector.Name
			}
		}
	}
	return all
}

// listen listens on a binding. 0.0.0.0 and [::] are two bindings: with the network tcp either would take the other's connections too.
func listen(ctx context.Context, connector string, binding netip.AddrPort) (net.Listener, error) {
	network := "tcp6"
	if binding.Addr().Is4() {
		network = "tcp4"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, binding.String())
	if err != nil {
		return nil, fmt.Errorf("listen for receive connector %q on %s: %w", connector, binding, err)
	}
	return listener, nil
}

// stopConnections has idle connections end now, and the others within Grace.
func (s *Server) stopConnections(cancel context.CancelFunc) {
	s.mu.Lock()
	for c := range s.open {
		c.closing()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.wait.Wait(); close(ended) }()
	grace := time.NewTimer(s.Grace)
	defer grace.Stop()
	select {
	case <-ended:
		return
	case <-grace.C:
	}
	cancel()
	s.mu.Lock()
	for c := range s.open {
		_ = c.socket.Close()
	}
	s.mu.Unlock()
	<-ended
}

func (s *Server) acceptLoop(ctx, connectionsCtx context.Context, binding netip.AddrPort, listener net.Listener) {
	for ctx.Err() == nil {
		socket, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				s.Log.Error("accepting a connection failed", "binding", binding.String(), "error", err)
				select { // no more files, most likely
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			return
		}
		s.wait.Go(func() { s.serve(connectionsCtx, ctx, binding, socket) })
	}
}
