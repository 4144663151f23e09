package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/spool"
	"github.com/parley-broker/parley/internal/mail/submission"
	"github.com/parley-broker/parley/internal/pgdb"
)

type listenerSettings struct {
	Enabled            bool     `json:"enabled"`
	Bindings           []string `json:"bindings"`
	CertificateFile    string   `json:"certificate_file"`
	CertificateKeyFile string   `json:"certificate_key_file"`
	MaxMessageSize     int64    `json:"max_message_size"`
	MaxRecipients      int      `json:"max_recipients"`
	Nodes              []string `json:"nodes"`
}

// Times of an HTTP listener. How long a body may take depends on its size.
const (
	httpHeaderTime = 10 * time.Second
	httpReadTime   = 40 * time.Second // a body of somebody who may submit has more
	httpIdleTime   = time.Minute
)

// httpHeaderBytes is how large the header of a request may be.
const httpHeaderBytes = 16 << 10

// unknownIterations are those of the verifiers that parley_mail makes.
const unknownIterations = 4096

// listener gives the receiver that takes messages over HTTP.
func (s *Server) listener(ctx context.Context, name string, written listenerSettings, fqdn string, names []string) (func(), error) {
	var secured *tls.Config
	if written.CertificateFile != "" {
		certificates, err := receive.NewCertificates(s.config.Logger,
			s.equipment.files(written.CertificateFile, written.CertificateKeyFile))
		if err != nil {
			return nil, err
		}
		secured = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.Get, NextProtos: []string{"http/1.1"}}
	}
	var listeners []net.Listener
	for _, binding := range written.Bindings {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", binding)
		if err != nil {
			for _, opened := range listeners {
				_ = opened.Close()
			}
			return nil, fmt.Errorf("listen on %s: %w", binding, err)
		}
		if secured != nil {
			listener = tls.NewListener(listener, secured)
		}
		listeners = append(listeners, listener)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "alive")
	})
	mux.Handle("/messages", &submission.Handler{
		Accepter: httpAccepter{s.committer}, Spool: s.receiver.Spool, Log: s.config.Logger, FQDN: fqdn, Names: names, Verify: s.verifyHTTP,
		MaySend: func(user string, sender message.Address) bool {
			return s.settings.Load().receive.MaySendAs(user, sender)
		},
		MaySubmit:    s.mayUserSubmit,
		IsRejected:   s.pressure.refusesFolders,
		MessageBytes: written.MaxMessageSize, Recipients: written.MaxRecipients, Budget: &s.httpBudget,
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: httpHeaderTime, ReadTimeout: httpReadTime, IdleTimeout: httpIdleTime, MaxHeaderBytes: httpHeaderBytes,
	}
	return func() {
		var serving sync.WaitGroup
		for _, listener := range listeners {
			serving.Go(func() {
				if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					s.config.Logger.Error("messages cannot be taken over HTTP", "object", name, "error", err)
				}
			})
		}
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			_ = server.Close()
		}
		serving.Wait()
	}, nil
}

// verifyHTTP verifies a user as AUTH does; a source that fails too often is locked out in both.
func (s *Server) verifyHTTP(ctx context.Context, user, password string, peer netip.Addr) (bool, error) {
	if !s.receiver.MayAuthenticate(peer, user) {
		return false, nil
	}
	isVerified := false
	verifier, err := s.receiver.Credentials.Verifier(ctx, user)
	switch {
	case errors.Is(err, receive.ErrUnknownUser):
		_, _ = receive.NewVerifier(password, []byte(user), unknownIterations) // takes as long as a user who is known
	case err != nil:
		return false, err
	case verifier.Login != nil:
		if isVerified, err = verifier.Login(ctx, password); err != nil {
			return false, err
		}
	default:
		isVerified = verifier.Matches(password)
	}
	return s.receiver.Authenticated(peer, user, isVerified), nil
}

// mayUserSubmit counts a message of a user, and reports whether his rate allows it.
func (s *Server) mayUserSubmit(user string) bool {
	return s.receiver.MaySubmit(user, s.settings.Load().receive.Users[user].MessagesPerMinute)
}

// httpAccepter gives each user keys of his own, and refuses a key that was used for another message.
type httpAccepter struct{ accepter receive.Accepter }

func (a httpAccepter) Accept(envelope message.Envelope, body *spool.Body) (int64, error) {
	if envelope.IdempotencyKey != "" {
		// With the length of the name, or "a:b" with the key "c" and "a" with "b:c" would have one.
		envelope.IdempotencyKey = fmt.Sprintf("http:%d:%s:%s", len(envelope.AuthenticatedAs), envelope.AuthenticatedAs, envelope.IdempotencyKey)
	}
	id, err := a.accepter.Accept(envelope, body)
	if pgdb.SQLState(err) == "PM011" {
		return 0, submission.ErrConflict
	}
	return id, err
}
