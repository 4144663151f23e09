package service

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// keptMax bounds how many conversations a sender knows.
const keptMax = 10_000

// conversations are those that were found or begun, by their keys. One may have ended since, or its begin may have been rolled back: then
// the broker refuses it.
type conversations struct {
	mu    sync.Mutex
	byKey map[string]parley.UUID
}

func (c *conversations) get(key string) (parley.UUID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	handle, ok := c.byKey[key]
	return handle, ok
}

func (c *conversations) keep(key string, handle parley.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil || len(c.byKey) >= keptMax {
		c.byKey = map[string]parley.UUID{}
	}
	c.byKey[key] = handle
}

func (c *conversations) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey) > 0
}

func (c *conversations) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey = nil
}

// group gives the conversation group of a key: always the same one, so that every node finds the conversation that any of them has begun.
func (s *sender) group(key string) parley.UUID {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"parley flow", s.Name, s.settings.FromService, s.at.name, s.settings.Contract, s.settings.BrokerInstance, key,
	}, "\x00")))
	group := parley.UUID(sum[:16])
	group[6], group[8] = group[6]&0x0f|0x80, group[8]&0x3f|0x80 // version 8 of RFC 9562: of our own making
	return group
}

// conversation gives the conversation of a key. One that the far side has ended is ended here too, and another one is begun.
func (s *sender) conversation(ctx context.Context, tx pgx.Tx, key string) (parley.UUID, error) {
	if handle, ok := s.kept.get(key); ok {
		return handle, nil
	}
	group := s.group(key)
	// Two nodes that begin the first conversation of a key at once would begin two.
	_, err := tx.Exec(ctx, "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0))", group.String())
	if err != nil {
		return parley.UUID{}, fmt.Errorf("lock the conversation of a key: %w", err)
	}
	open, gone, err := s.find(ctx, tx, group)
	if err != nil {
		return parley.UUID{}, err
	}
	for _, handle := range gone {
		if err := parley.EndConversation(ctx, tx, handle); err != nil {
			return parley.UUID{}, err
		}
	}
	if open.IsZero() {
		open, err = parley.BeginDialog(ctx, tx, s.settings.FromService, s.at.name, append(s.options(), parley.InGroup(group))...)
		if err != nil {
			return parley.UUID{}, err
		}
	}
	s.kept.keep(key, open)
	return open, nil
}

// find gives the conversation of a group that is open, none where there is no such one, and those that the far side has ended.
func (s *sender) find(ctx context.Context, tx pgx.Tx, group parley.UUID) (open parley.UUID, gone []parley.UUID, err error) {
	var isVisible bool
	err = tx.QueryRow(ctx, `
		select coalesce(pg_catalog.bool_or(pg_catalog.pg_has_role(s.principal_id::oid, 'usage')), false)
		from parley.services as s
		where s.name = $1`, s.settings.FromService).Scan(&isVisible)
	if err != nil {
		return open, nil, fmt.Errorf("find service %q: %w", s.settings.FromService, err)
	}
	if !isVisible {
		return open, nil, fmt.Errorf("%w: let the role of the host own service %q, so that it finds the conversations of the port",
			errNotOwned, s.settings.FromService)
	}
	rows, err := tx.Query(ctx, `
		select e.conversation_handle, e.state in ('SO', 'CO')
		from parley.conversation_endpoints as e
		where e.conversation_group_id = $1 and e.is_initiator = 1 and e.state in ('SO', 'CO', 'DI', 'ER')
		order by e.begun_at`, group)
	if err != nil {
		return open, nil, fmt.Errorf("find the conversation of a key: %w", err)
	}
	var handle parley.UUID
	var isOpen bool
	_, err = pgx.ForEachRow(rows, []any{&handle, &isOpen}, func() error {
		if isOpen {
			open = handle
		} else {
			gone = append(gone, handle)
		}
		return nil
	})
	if err != nil {
		return open, nil, fmt.Errorf("find the conversation of a key: %w", err)
	}
	return open, gone, nil
}
