package server

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/mail/send"
)

// A deliveryKind is a way by which messages reach recipients, as its row in sql/mail/base/delivery_kinds.sql says. This file alone names
// the kinds that the daemon knows.
type deliveryKind struct {
	// ObjectKind is the kind of the objects by which it goes, such as a send connector.
	ObjectKind string `json:"object_kind"`
	// NextHopIsDomain says that the next hop is the domain of the recipients, whose hosts the name servers know.
	NextHopIsDomain bool `json:"next_hop_is_domain"`
}

// deliveryKinds are those that go by objects, by their names.
type deliveryKinds map[string]deliveryKind

// queuesOf gives the beginnings of the queues of an object. An object whose kind of delivery has changed may have queues of both.
func (k deliveryKinds) queuesOf(of object) []string {
	var beginnings []string
	for name, kind := range k {
		if kind.ObjectKind == of.kind {
			beginnings = append(beginnings, name+"/"+of.name+"/")
		}
	}
	slices.Sort(beginnings)
	return beginnings
}

// hopOf reads a lane, KIND/CONNECTOR/NEXT_HOP.
func hopOf(lane string) send.Hop {
	kind, rest, _ := strings.Cut(lane, "/")
	connector, name, _ := strings.Cut(rest, "/")
	return send.Hop{Kind: kind, Connector: connector, Name: name}
}

func laneOf(hop send.Hop) string { return hop.Kind + "/" + hop.Connector + "/" + hop.Name }

// carriers gives who takes messages to next hops, by the kinds of deliveries that a daemon carries.
func (s *Server) carriers() map[string]send.Carrier {
	smtp := &send.SMTPCarrier{
		Resolver: s.resolver, Logger: s.config.Logger,
		Connector: func(name string) (send.Connector, bool) {
			connector, known := s.settings.Load().sending.connectors[name]
			return connector, known
		},
		Self:   s.isOwnName,
		Own:    s.isOwnAddress,
		Domain: s.policies(),
	}
	mailboxes := &send.MailboxCarrier{Store: func(name string) (send.MailboxStore, bool) {
		store, known := s.settings.Load().stores[name]
		return store, known
	}}
	leaving := countingCarrier{Carrier: leavingCarrier{Carrier: smtp, settings: s.settings.Load}, carried: &s.tally.remote}
	local := countingCarrier{Carrier: mailboxes, carried: &s.tally.mailbox}
	return map[string]send.Carrier{"DNS": leaving, "SMART_HOST": leaving, "MAILBOX": local}
}
