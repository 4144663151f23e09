package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// nameServer gives every name the address of one host, and some names that of another.
type nameServer struct {
	address string
	server  *dns.Server
	ended   chan error
}

func serveNames(ctx context.Context, usual string, special map[string]string) (*nameServer, error) {
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for questions about names: %w", err)
	}
	s := &nameServer{address: conn.LocalAddr().String(), ended: make(chan error, 1)}
	ready := make(chan struct{})
	s.server = &dns.Server{
		PacketConn: conn, NotifyStartedFunc: func() { close(ready) },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
			answer := new(dns.Msg).SetReply(question)
			for _, asked := range question.Question {
				if asked.Qtype != dns.TypeA {
					continue
				}
				address := usual
				if other, is := special[strings.ToLower(strings.TrimSuffix(asked.Name, "."))]; is {
					address = other
				}
				answer.Answer = append(answer.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: asked.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 3600}, A: net.ParseIP(address),
				})
			}
			_ = w.WriteMsg(answer)
		}),
	}
	go func() { s.ended <- s.server.ActivateAndServe() }()
	select {
	case <-ready:
		return s, nil
	case err := <-s.ended:
		return nil, fmt.Errorf("answer questions about names: %w", err)
	}
}

func (s *nameServer) close() error {
	return errors.Join(s.server.Shutdown(), <-s.ended)
}

// silentHost takes connections and says nothing.
type silentHost struct {
	listener net.Listener
	serving  sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func listenSilently(ctx context.Context, address string) (*silentHost, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen as a host that is dead: %w", err)
	}
	h := &silentHost{listener: listener}
	h.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns = append(h.conns, conn)
			h.mu.Unlock()
		}
	})
	return h, nil
}

func (h *silentHost) close() {
	_ = h.listener.Close()
	h.serving.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.conns {
		_ = conn.Close()
	}
}
