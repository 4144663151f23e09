package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/mail/parts"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

const (
	// deliveredAtOnce is how much of what was read goes into one transaction that delivers, in bytes of JSON.
	deliveredAtOnce = 8 << 20
	// readingLease is how long messages stay ours that are read, and how often that is said.
	readingLease, readingRenewal = 10 * time.Second, time.Second
	// releasePatience is how long giving back may take.
	releasePatience = 5 * time.Second
)

// deliverToServices delivers to services and tables of the database, and says whether more may wait. It ends what it has begun when the
// daemon stops, like categorize.
func (s *Server) deliverToServices(ctx context.Context) (bool, error) {
	claimed, err := mailstore.ClaimForServices(ctx, s.config.Pool, categorizedAtOnce)
	if err != nil {
		return false, fmt.Errorf("deliver: %w", err)
	}
	if len(claimed.Leases) == 0 {
		return false, nil
	}
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	delivered, err := s.deliverClaimed(working, claimed)
	if err != nil {
		// No session died: see categorize.
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
		defer cancel()
		mailstore.ReleaseForServices(releasing, s.config.Pool, claimed.Leases)
		return false, fmt.Errorf("deliver: %w", err)
	}
	return delivered > 0, nil
}

// deliverClaimed reads what was claimed, before the transactions that deliver it, and delivers it: all in one, unless that were too much.
// It returns how many messages were delivered, or have to be tried again because their delivery made a transaction fail.
func (s *Server) deliverClaimed(ctx context.Context, claimed mailstore.ForServices) (delivered int, err error) {
	var items []int64
	var parsed [][]byte
	size, renewed := 0, time.Now()
	for i, m := range claimed.Messages {
		if time.Since(renewed) > readingRenewal {
			if _, _, err := mailstore.Renew(ctx, s.config.Pool, claimed.Leases, readingLease, true); err != nil {
				return delivered, err
			}
			renewed = time.Now()
		}
		encoded, err := s.readParts(ctx, m)
		switch {
		case err == nil:
			items, parsed = append(items, m.Item), append(parsed, encoded)
		case isIncomplete(err):
			// Its receiver would take a part of it for the whole.
			if err := s.deferItem(ctx, claimed.Leases, m.Item, incomplete, err.Error()); err != nil {
				return delivered, err
			}
			delivered++
		default:
			return delivered, err
		}
		if size += len(encoded); len(items) == 0 || size < deliveredAtOnce && i < len(claimed.Messages)-1 {
			continue
		}
		settled, err := s.deliverRead(ctx, claimed.Leases, items, parsed)
		delivered += settled
		if err != nil {
			return delivered, err
		}
		items, parsed, size = nil, nil, 0
	}
	return delivered, nil
}

// unreadable is the text about a message that is not where it should be.
var unreadable = []byte(`{"parsed": {"state": "` + parts.None + `", "problems": [{"problem": "UNREADABLE"}]}}`)

// readParts reads of what a message is made, as JSON. How it is built is no error, nor is a body that is gone.
func (s *Server) readParts(ctx context.Context, m mailstore.ForService) ([]byte, error) {
	if m.BodyHolder == 0 {
		return nil, nil
	}
	body := s.deliveries.open(ctx, mailstore.Claimed{Body: m.Body, Content: m.Content, BodyHolder: m.BodyHolder})
	defer func() { _ = body.Close() }()
	message, err := parts.Read(body, parts.Usual)
	if err != nil {
		if isGone(err) {
			s.config.Logger.Warn("a message for a service cannot be read", "message", m.BodyHolder, "error", err)
			return unreadable, nil
		}
		return nil, fmt.Errorf("message %d: %w", m.BodyHolder, err)
	}
	var encoded bytes.Buffer
	to := json.NewEncoder(&encoded)
	to.SetEscapeHTML(false)
	if err := to.Encode(message); err != nil {
		return nil, fmt.Errorf("write what was read of message %d: %w", m.BodyHolder, err)
	}
	return encoded.Bytes(), nil
}
