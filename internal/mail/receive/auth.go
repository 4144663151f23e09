package receive

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/xdg-go/scram"
)

// Mechanisms of AUTH.
const (
	mechanismPlain     = "PLAIN"
	mechanismLogin     = "LOGIN"
	mechanismScram     = "SCRAM-SHA-256"
	mechanismScramPlus = "SCRAM-SHA-256-PLUS"
)

// mechanisms lists the mechanisms with which the peer may authenticate now.
func (c *connection) mechanisms() (offered []string) {
	if c.server.Credentials == nil || c.user != "" || c.tls == nil && !c.connector.IsClearAuth {
		return nil
	}
	for _, mechanism := range c.connector.Mechanisms {
		if mechanism != mechanismScramPlus || c.channelBinding() != nil {
			offered = append(offered, mechanism)
		}
	}
	return offered
}

// channelBinding gives the value that ties SCRAM to this TLS connection: the exporter of TLS 1.3, or nil.
func (c *connection) channelBinding() *scram.ChannelBinding {
	if c.tls == nil || c.tls.Version < tls.VersionTLS13 {
		return nil
	}
	binding, err := scram.NewTLSExporterBinding(c.tls)
	if err != nil {
		return nil
	}
	return &binding
}

// authRefusal gives the reply to AUTH where it has no place.
func (c *connection) authRefusal(s *session, argument string) *Reply {
	mechanism, _, _ := strings.Cut(argument, " ")
	switch {
	case !s.wire.isExtended || len(c.connector.Mechanisms) == 0 || c.server.Credentials == nil:
		return NewReply(502, 5, 1, "No authentication here")
	case c.user != "":
		return NewReply(503, 5, 1, "Authenticated already")
	case s.tx != nil:
		return NewReply(503, 5, 1, "Not within a mail transaction")
	case c.tls == nil && !c.connector.IsClearAuth:
		return NewReply(538, 7, 11, "Say STARTTLS first: nobody authenticates in the clear")
	case !slices.Contains(c.mechanisms(), strings.ToUpper(mechanism)):
		return NewReply(504, 5, 4, "The mechanism is not offered")
	case c.server.accounts.isLockedOut(c.source, time.Now()):
		return NewReply(454, 7, 0, "Too many failed authentications from your address, try again later")
	}
	return nil
}

// AuthMechanisms is for the library, which asks and is not believed: hello says what is offered.
func (s *session) AuthMechanisms() []string { return s.wire.connection.mechanisms() }

// Auth gives the library what goes through an authentication.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	c := s.wire.connection
	c.attempted = ""
	switch strings.ToUpper(mechanism) {
	case mechanismPlain:
		return &passwordServer{connection: c, plain: true}, nil
	case mechanismLogin:
		return &passwordServer{connection: c}, nil
	case mechanismScram, mechanismScramPlus:
		return newScramServer(c, strings.EqualFold(mechanism, mechanismScramPlus))
	}
	return nil, NewReply(504, 5, 4, "The mechanism is not offered")
}

// authenticated is called when the library has said 235.
func (s *session) authenticated() {
	c := s.wire.connection
	c.user = c.claimed
	c.failedAuth = 0
	c.server.counters.Authenticated.Add(1)
	c.server.accounts.authSucceeded(c.source, c.user, time.Now())
	c.server.Log.Debug("a user has authenticated", slog.String("user", c.user), c.attribute())
	c.server.announce(c.ctx, c, Authenticated)
}

// errAuthFailed is the reply to a peer that cannot prove who it is, whatever the reason.
func (c *connection) errAuthFailed() error {
	c.server.counters.AuthFailures.Add(1)
	c.server.Log.Warn("an authentication failed", c.attribute())
	return NewReply(535, 7, 8, "Authentication failed")
}

// userRefusal gives the reply to a message of somebody who has authenticated and may no longer submit: connections live on for minutes.
func (c *connection) userRefusal() *Reply {
	if c.user == "" || c.server.Credentials == nil {
		return nil
	}
	may, err := c.server.Credentials.MaySubmit(c.ctx, c.user)
	switch {
	case err != nil:
		c.server.Log.Error("it cannot be asked whether a user may submit", "error", err)
		return NewReply(451, 3, 0, "It cannot be asked now whether you may submit, try again later")
	case !may:
		return NewReply(550, 7, 1, "You may no longer submit mail here")
	}
	return nil
}

// verifier gives the verifier of a user, one that fits no password for a user who does not exist.
func (c *connection) verifier(user string) (Verifier, error) {
	if user == "" || len(user) > 256 || strings.ContainsRune(user, 0) {
		return unknownVerifier(c.server.secret, user), nil
	}
	c.attempted = user
	if c.server.accounts.isAccountLocked(user, c.source, time.Now()) {
		return Verifier{}, NewReply(454, 7, 0, "Too many failed authentications as this user, try again later")
	}
	v, err := c.server.Credentials.Verifier(c.ctx, user)
	switch {
	case errors.Is(err, ErrUnknownUser):
		return unknownVerifier(c.server.secret, user), nil
	case err != nil:
		c.server.Log.Error("a user could not be verified", "error", err)
		return Verifier{}, NewReply(454, 7, 0, "Users cannot be verified now, try again later")
	}
	return v, nil
}

// passwordServer goes through PLAIN (RFC 4616) or LOGIN.
type passwordServer struct {
	connection *connection
	plain      bool
	step       int
	user       string
}

// Next takes a response and gives the next challenge.
func (p *passwordServer) Next(response []byte) (challenge []byte, isDone bool, err error) {
	p.step++
	if p.plain {
		if response == nil && p.step == 1 {
			return nil, false, nil
		}
		parts := strings.Split(string(response), "\x00")
		if len(parts) != 3 || parts[0] != "" && parts[0] != parts[1] {
			return nil, false, p.connection.errAuthFailed()
		}
		return nil, true, p.connection.verifyPassword(parts[1], parts[2])
	}
	switch {
	case p.step == 1 && response == nil:
		return []byte("Username:"), false, nil
	case p.user == "":
		if p.user = string(response); p.user == "" {
			return nil, false, p.connection.errAuthFailed()
		}
		return []byte("Password:"), false, nil
	}
	return nil, true, p.connection.verifyPassword(p.user, string(response))
}

func (c *connection) verifyPassword(user, password string) error {
	v, err := c.verifier(user)
	if err != nil {
		return err
	}
	isRight := password != ""
	switch {
	case !isRight:
	case v.Login != nil:
		if isRight, err = v.Login(c.ctx, password); err != nil {
			c.server.Log.Error("a user could not be verified", "error", err)
			return NewReply(454, 7, 0, "Users cannot be verified now, try again later")
		}
	default:
		isRight = v.Matches(password)
	}
	if !isRight || c.isLockedMeanwhile(user) {
		return c.errAuthFailed()
	}
	c.claimed = user
	return nil
}

// isLockedMeanwhile reports whether failures of others have locked the source or the account while a password was verified. A peer that
// guesses on many connections at the same time gets no more attempts for that; a right guess is answered like a wrong one.
func (c *connection) isLockedMeanwhile(user string) bool {
	return !c.server.accounts.mayAuthenticate(user, c.source, time.Now())
}

// scramServer goes through SCRAM-SHA-256 (RFC 7677), with or without channel binding.
type scramServer struct {
	connection   *connection
	conversation *scram.ServerConversation
	isPlus       bool
	temporary    error
}

func newScramServer(c *connection, isPlus bool) (*scramServer, error) {
	s := &scramServer{connection: c, isPlus: isPlus}
	server, err := scram.SHA256.NewServer(func(user string) (scram.StoredCredentials, error) {
		v, err := c.verifier(user)
		if err != nil {
			s.temporary = err
			return scram.StoredCredentials{}, err
		}
		if v.Login != nil {
			v = unknownVerifier(c.server.secret, user)
		}
		return scram.StoredCredentials{
			KeyFactors: scram.KeyFactors{Salt: string(v.Salt), Iters: v.Iterations}, StoredKey: v.StoredKey, ServerKey: v.ServerKey,
		}, nil
	})
	if err != nil {
		return nil, NewReply(454, 7, 0, "Users cannot be verified now, try again later")
	}
	binding := c.channelBinding()
	switch isOffered := slices.Contains(c.connector.Mechanisms, mechanismScramPlus) && binding != nil; {
	case isPlus && binding != nil:
		s.conversation = server.NewConversationWithChannelBindingRequired(*binding)
	case isOffered: // a client that could bind and believes that we cannot is being deceived by somebody between us
		s.conversation = server.NewConversationWithChannelBinding(*binding)
	default:
		s.conversation = server.NewConversation()
	}
	return s, nil
}

// Next takes a response and gives the next challenge.
func (s *scramServer) Next(response []byte) (challenge []byte, isDone bool, err error) {
	if response == nil {
		return nil, false, nil
	}
	if s.conversation.Done() {
		if len(response) > 0 || !s.conversation.Valid() {
			return nil, false, s.connection.errAuthFailed()
		}
		s.connection.claimed = s.conversation.Username()
		return nil, true, nil
	}
	text, err := s.conversation.Step(string(response))
	switch {
	case s.temporary != nil:
		return nil, false, s.temporary
	case err != nil:
		return nil, false, s.connection.errAuthFailed()
	}
	user := s.conversation.Username()
	if s.conversation.AuthzID() != "" && s.conversation.AuthzID() != user {
		return nil, false, s.connection.errAuthFailed()
	}
	if s.conversation.Done() && s.connection.isLockedMeanwhile(user) { // what we would say now proves the password
		return nil, false, s.connection.errAuthFailed()
	}
	return []byte(text), false, nil
}
