package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

const (
	// deliveredTogether is how long messages may take that are delivered in one transaction: less than what is left of their leases then.
	deliveredTogether = 3 * time.Second
	// deliveredAlone is how long one may take, with all that is done by triggers.
	deliveredAlone = 10 * time.Second
	// aloneLease is how long messages stay ours from the beginning of each that is delivered by itself: longer than grace.
	aloneLease = time.Minute
	// overdue is how much later than the database we cancel a delivery.
	overdue = 2 * time.Second
	// beginnings is how often a delivery is begun that the database rolls back because of others.
	beginnings = 3
	// cancelled is the SQLSTATE of what takes too long.
	cancelled = "57014"
)

// deliverRead delivers what was read. Where the transaction fails, each message is delivered by itself, and the one that makes its own fail
// is tried again later: what one binding does holds up no other. It returns how many were delivered or deferred.
func (s *Server) deliverRead(ctx context.Context, leases, items []int64, parsed [][]byte) (settled int, err error) {
	settled, err = s.deliverItems(ctx, leases, items, parsed, deliveredTogether)
	if _, isOurs := refusal(ctx, err); err == nil || !isOurs {
		return settled, err
	}
	for i, item := range items {
		// A delivery that fails takes back that it has renewed them.
		if _, _, err := mailstore.Renew(ctx, s.config.Pool, leases, aloneLease, true); err != nil {
			return settled, err
		}
		delivered, err := s.deliverItems(ctx, leases, items[i:i+1], parsed[i:i+1], deliveredAlone)
		settled += delivered
		if err == nil {
			continue
		}
		refused, isOurs := refusal(ctx, err)
		if !isOurs {
			return settled, err
		}
		reason := fmt.Sprintf("%s (%s)", refused.Message, refused.Code)
		if refused.Code == cancelled {
			reason = fmt.Sprintf("Its delivery did not end within %v: %s", deliveredAlone, reason)
		}
		if err := s.deferItem(ctx, leases, item, refused.Code, reason); err != nil {
			return settled, err
		}
		settled++
	}
	return settled, nil
}

// deferItem has a message tried again later.
func (s *Server) deferItem(ctx context.Context, leases []int64, item int64, state, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	s.config.Logger.Warn("mail cannot be delivered to a service or a table, and is tried again", "item", item, "error", reason)
	return mailstore.DeferForService(ctx, s.config.Pool, leases, item, state, reason)
}

// deliverItems delivers some items, in as many transactions as that takes. One that the database rolls back because of others is begun
// again at once.
func (s *Server) deliverItems(ctx context.Context, leases, items []int64, parsed [][]byte, limit time.Duration) (delivered int, err error) {
	for begun := 1; ; {
		d, err := s.deliverOnce(ctx, leases, items, parsed, limit)
		if refused, isOurs := refusal(ctx, err); isOurs && strings.HasPrefix(refused.Code, "40") && begun < beginnings {
			begun++
			continue
		}
		if err != nil {
			return delivered, err
		}
		s.tally.toServices.Add(int64(len(d.Ages)))
		for _, age := range d.Ages {
			s.tally.serviceLatency.Observe(age)
		}
		delivered += len(d.Ages)
		if !d.HasMore {
			return delivered, nil
		}
	}
}

func (s *Server) deliverOnce(ctx context.Context, leases, items []int64, parsed [][]byte, limit time.Duration) (mailstore.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+overdue)
	defer cancel()
	return mailstore.DeliverToServices(ctx, s.config.Pool, leases, items, parsed, limit)
}

// refusal is why the database has not delivered, or that it took too long; isOurs is false where it has not said why.
func refusal(ctx context.Context, err error) (refused *pgconn.PgError, isOurs bool) {
	switch refused, isOurs = errors.AsType[*pgconn.PgError](err); {
	case isOurs:
		return refused, true
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &pgconn.PgError{Code: cancelled, Message: "it was cancelled"}, true
	}
	return nil, false
}
