package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// headerTimeout is how long a client may take to send the header of a request; refusedTimeout, to send what nobody reads.
	headerTimeout  = 10 * time.Second
	refusedTimeout = 5 * time.Second
	idleTimeout    = 2 * time.Minute
	headerBytesMax = 64 << 10
	// connectionsMax bounds the connections of a listener.
	connectionsMax = 2000
)

// listeners are those of a process, by their addresses.
type listeners struct {
	mu        sync.Mutex
	byAddress map[string]*listener
}

// listener takes requests in for the locations of one address.
type listener struct {
	address string
	secure  bool
	server  *http.Server
	socket  net.Listener
	failed  chan struct{} // closed when nothing is taken in any more
	err     error         // why; read it behind failed
	logger  *slog.Logger

	mu     sync.RWMutex
	routes map[string]*route
	left   map[string]bool // paths whose locations have gone: they come back, or their clients are told to come later
}

// route leads from a path to the location that takes its requests in.
type route struct {
	location string
	serve    http.HandlerFunc
	// describe gives what a client may see of the location; nil where nobody may.
	describe func(r *http.Request) (description, error)
	// certificate gives that of the location, of a listener that is secure.
	certificate func(ctx context.Context) (*tls.Certificate, error)
	underWay    sync.WaitGroup
}

// join adds a location to the listener of its address, which is opened for the first one.
func (all *listeners) join(ctx context.Context, address, path string, secure bool, r *route, logger *slog.Logger) (*listener, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	l := all.byAddress[address]
	if l == nil {
		var err error
		if l, err = open(ctx, address, secure, logger); err != nil {
			return nil, err
		}
		all.byAddress[address] = l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secure != secure {
		return nil, fmt.Errorf("the address %s is used with and without https; write one of them in all locations", address)
	}
	if other := l.routes[path]; other != nil {
		return nil, fmt.Errorf("the path %s of %s belongs to location %q; give the location another path", path, address, other.location)
	}
	l.routes[path] = r
	return l, nil
}

// leave removes a location, and returns when its requests are answered. With the last one the listener is closed.
func (all *listeners) leave(ctx context.Context, l *listener, path string) {
	all.mu.Lock()
	l.mu.Lock()
	r := l.routes[path]
	delete(l.routes, path)
	l.left[path] = true
	isLast := len(l.routes) == 0
	l.mu.Unlock()
	if isLast {
		if all.byAddress[l.address] == l {
			delete(all.byAddress, l.address)
		}
		_ = l.socket.Close()
	}
	all.mu.Unlock()
	answered := make(chan struct{})
	go func() { r.underWay.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-ctx.Done():
	}
	if isLast {
		if err := l.server.Shutdown(ctx); err != nil {
			_ = l.server.Close()
		}
	}
}

func open(ctx context.Context, address string, secure bool, logger *slog.Logger) (*listener, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	l := &listener{
		address: address, secure: secure, logger: logger, failed: make(chan struct{}), routes: map[string]*route{}, left: map[string]bool{},
		socket: &bounded{Listener: socket, places: make(chan struct{}, connectionsMax), closed: make(chan struct{})},
	}
	l.server = &http.Server{
		Handler: l, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	serve := l.server.Serve
	if secure {
		l.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: l.certificate}
		serve = func(socket net.Listener) error { return l.server.ServeTLS(socket, "", "") }
	}
	go func() {
		l.err = serve(l.socket)
		close(l.failed)
	}()
	return l, nil
}

// certificate chooses the certificate for the name that a client asks for: that of a location which has the name, or any.
func (l *listener) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	l.mu.RLock()
	var routes []*route
	for _, r := range l.routes {
		routes = append(routes, r)
	}
	l.mu.RUnlock()
	var other *tls.Certificate
	var errs []error
	for _, r := range routes {
		certificate, err := r.certificate(hello.Context())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if hello.SupportsCertificate(certificate) == nil {
			return certificate, nil
		}
		other = certificate
	}
	if other == nil {
		return nil, errors.Join(append(errs, errors.New("no location has a certificate"))...)
	}
	return other, nil
}

// ServeHTTP gives a request to the location of its path, which is compared as it is.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(refusedTimeout))
	_ = deadlines.SetWriteDeadline(time.Time{})
	l.mu.RLock()
	to := l.routes[r.URL.Path]
	hasLeft := l.left[r.URL.Path]
	if to != nil {
		to.underWay.Add(1)
	}
	l.mu.RUnlock()
	switch {
	case to != nil:
		defer to.underWay.Done()
		to.serve(w, r)
	case hasLeft:
		refuse(w, http.StatusServiceUnavailable, "nothing is taken here now", 30*time.Second)
	case (r.URL.Path == documentPath || r.URL.Path == descriptionPath) && l.isDescribed():
		l.describe(w, r)
	default:
		refuse(w, http.StatusNotFound, "nothing is taken here", 0)
	}
}

// bounded is a listener with so many connections at once; further ones wait to be accepted.
type bounded struct {
	net.Listener

	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: conn, giveBack: sync.OnceFunc(func() { <-b.places })}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// placed is a connection that gives its place back when it is closed.
type placed struct {
	net.Conn

	giveBack func()
}

func (p *placed) Close() error {
	defer p.giveBack()
	return p.Conn.Close()
}
