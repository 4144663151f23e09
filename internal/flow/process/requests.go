package process

import (
	"fmt"
	"maps"
	"slices"
)

// TokenProperty is by which an answer finds who has asked. A request has it written, so that nothing routes by it, and an answer promoted.
const TokenProperty = "CorrelationToken"

// tokenOf gives the token of a request.
func (r *run) tokenOf(n *node, request reference) (string, *Fault) {
	m, fault := r.content(n, request)
	if fault != nil {
		return "", fault
	}
	if token, is := m.Written[TokenProperty].(string); is && token != "" {
		return token, nil
	}
	return "", &Fault{
		Code: codeCorrelation, Path: n.shape.place, Message: fmt.Sprintf("message %s is no request", request.name),
		Remedy: "give its receive port responds: true, or send to a port instead",
	}
}

// asks reports whether a set is initialised by whose token the answer comes.
func asks(sets []setReference) bool {
	return slices.ContainsFunc(sets, func(s setReference) bool { return slices.Equal(s.properties, []string{TokenProperty}) })
}

// withoutToken gives a message that is sent on without the token by which it came as an answer: it answers nothing any more.
func withoutToken(m Message) Message {
	if _, has := m.Promoted[TokenProperty]; has {
		m.Promoted = maps.Clone(m.Promoted)
		delete(m.Promoted, TokenProperty)
	}
	return m
}

// withToken gives a message that is sent a token of its own, and the message as correlation sets see it.
func (r *run) withToken(m Message) (sent Message, known *Message) {
	token := r.world.NewID()
	sent = m
	sent.Written, sent.Promoted = maps.Clone(m.Written), maps.Clone(m.Promoted)
	if sent.Written == nil {
		sent.Written = map[string]any{}
	}
	delete(sent.Promoted, TokenProperty)
	sent.Written[TokenProperty] = token
	seen := sent
	seen.Promoted = maps.Clone(sent.Promoted)
	if seen.Promoted == nil {
		seen.Promoted = map[string]any{}
	}
	seen.Promoted[TokenProperty] = token
	return sent, &seen
}
