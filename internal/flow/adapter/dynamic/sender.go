package dynamic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sender sends messages by senders of other adapters, one for each destination.
type sender struct {
	adapter.Endpoint
	find Find
	port port

	mu           sync.Mutex
	destinations map[string]*destination
}

// destination is an adapter with an address and settings.
type destination struct {
	sender adapter.Sender
	made   error
	once   sync.Once
	users  int       // guarded by the mutex of the sender, as are the next two
	used   time.Time // last
	rests  time.Time // until when it is not tried, since it is away
	away   error
}

// mostDestinations is how many senders are kept that nobody uses.
const mostDestinations = 100

func newSender(find Find, e adapter.Endpoint) (adapter.Sender, error) {
	p, problems := read(find, e.Address, e.Settings, nil)
	for _, problem := range problems {
		if slices.Contains(problem.Path, "secrets") {
			continue // the host has checked them
		}
		return nil, fmt.Errorf("%s: %s. %s", strings.Join(problem.Path, "."), problem.Message, problem.Remedy)
	}
	return &sender{Endpoint: e, find: find, port: p, destinations: map[string]*destination{}}, nil
}

// Close closes the senders of all destinations.
func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.destinations {
		if d.sender != nil {
			errs = append(errs, d.sender.Close())
		}
	}
	clear(s.destinations)
	return errors.Join(errs...)
}

// group has the messages of a batch that go to one destination.
type group struct {
	kind     adapter.Kind
	address  string
	settings json.RawMessage
	through  through
	indexes  []int
}

// Send sends messages to their destinations, those of different ones side by side.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	groups := map[string]*group{}
	for i, m := range messages {
		g, err := s.route(m)
		if err != nil {
			deliveries[i].Err = refused(err)
			continue
		}
		key := g.kind.Name + "\x00" + g.address + "\x00" + string(g.settings)
		if groups[key] == nil {
			groups[key] = g
		}
		groups[key].indexes = append(groups[key].indexes, i)
	}
	var sending sync.WaitGroup
	for key, g := range groups {
		sending.Go(func() {
			batch := make([]*adapter.Message, len(g.indexes))
			for n, i := range g.indexes {
				batch[n] = messages[i]
			}
			sent := s.sendTo(ctx, key, g, batch)
			for n, i := range g.indexes {
				deliveries[i] = sent[n]
			}
		})
	}
	sending.Wait()
	return deliveries
}

func refused(err error) error {
	return &adapter.Failure{Code: "send.refused", Permanent: true, Err: err}
}

// route finds where a message goes, and how.
func (s *sender) route(m *adapter.Message) (*group, error) {
	name := m.Property(s.port.AdapterProperty)
	if name == "" && len(s.port.Adapters) == 1 {
		for only := range s.port.Adapters {
			name = only
		}
	}
	t, isPermitted := s.port.Adapters[name]
	kind, known := s.find(name)
	if !isPermitted || !known {
		return nil, fmt.Errorf("the message goes by adapter %q (property %s), and the port permits %s", name, s.port.AdapterProperty,
			strings.Join(slices.Sorted(maps.Keys(s.port.Adapters)), ", "))
	}
	g := &group{kind: kind, address: m.Property(s.port.AddressProperty), through: t}
	if err := s.port.checkAddress(g.address); err != nil {
		return nil, err
	}
	settings := maps.Clone(t.Settings)
	for setting, property := range t.Properties {
		if value := m.Property(property); value != "" {
			if settings == nil {
				settings = map[string]json.RawMessage{}
			}
			settings[setting] = typed(kind, g.address, setting, value)
		}
	}
	var err error
	if g.settings, err = json.Marshal(settings); err != nil {
		return nil, err
	}
	if kind.Check != nil {
		for _, p := range kind.Check(adapter.Send, g.address, g.settings, t.Secrets) {
			return nil, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy)
		}
	}
	return g, nil
}

// typed gives the value of a property as the setting wants it: a text, or what the text says where the setting is none.
func typed(kind adapter.Kind, address, setting, value string) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil || kind.Check == nil {
		return text
	}
	isTaken := func(value json.RawMessage) bool {
		written, err := json.Marshal(map[string]json.RawMessage{setting: value})
		return err == nil && !slices.ContainsFunc(kind.Check(adapter.Send, address, written, nil), func(p adapter.Problem) bool {
			return len(p.Path) > 1 && p.Path[1] == setting
		})
	}
	if raw := json.RawMessage(value); !isTaken(text) && json.Valid(raw) && isTaken(raw) {
		return raw
	}
	return text
}

// sendTo sends messages to a destination. One that is away rests for a while, and holds up nobody but its own messages.
func (s *sender) sendTo(ctx context.Context, key string, g *group, batch []*adapter.Message) []adapter.Delivery {
	all := func(err error) []adapter.Delivery {
		deliveries := make([]adapter.Delivery, len(batch))
		for i := range deliveries {
			deliveries[i].Err = err
		}
		return deliveries
	}
	d := s.enter(key)
	defer s.leave(d)
	s.mu.Lock()
	away := d.away
	isResting := time.Now().Before(d.rests)
	s.mu.Unlock()
	if isResting {
		return all(&adapter.Failure{Code: "send.unreachable", Err: fmt.Errorf("%s was away a moment ago: %w", g.address, away)})
	}
	d.once.Do(func() { d.sender, d.made = g.kind.NewSender(s.endpoint(g)) })
	if d.made != nil {
		s.drop(key, d)
		return all(refused(fmt.Errorf("send to %s: %w", g.address, d.made)))
	}
	deliveries := d.sender.Send(ctx, batch)
	if len(deliveries) != len(batch) {
		return all(fmt.Errorf("the adapter gave %d outcomes of %d messages", len(deliveries), len(batch)))
	}
	for i := range deliveries {
		deliveries[i].Err = s.judge(d, g, deliveries[i].Err)
	}
	return deliveries
}

// judge says what follows an error for a port with many destinations: one that is away is not the port.
func (s *sender) judge(d *destination, g *group, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, adapter.ErrNotPermitted) {
		return refused(fmt.Errorf("send to %s: %w", g.address, err))
	}
	f, is := errors.AsType[*adapter.Failure](err)
	if !is || !f.Unreachable {
		return err
	}
	s.mu.Lock()
	d.rests, d.away = time.Now().Add(time.Duration(s.port.Rest)), f.Err
	s.mu.Unlock()
	ofOne := *f
	ofOne.Unreachable = false
	return &ofOne
}

// endpoint gives what a sender of another adapter needs. Of the secrets it gets those that the port gives it.
func (s *sender) endpoint(g *group) adapter.Endpoint {
	e := s.Endpoint
	e.Address, e.Settings = g.address, g.settings
	e.Secret = func(ctx context.Context, name string) (string, bool, error) {
		if !slices.Contains(g.through.Secrets, name) {
			return "", false, nil
		}
		return s.Secret(ctx, name)
	}
	return e
}

func (s *sender) enter(key string) *destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.destinations[key]
	if d == nil {
		s.evict()
		d = &destination{}
		s.destinations[key] = d
	}
	d.users++
	return d
}

func (s *sender) leave(d *destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.users--
	d.used = time.Now()
}

// drop forgets a destination that cannot be used, so that it is made anew.
func (s *sender) drop(key string, d *destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.destinations[key] == d {
		delete(s.destinations, key)
	}
}

// evict closes the sender that was not used for the longest time. The caller holds mu.
func (s *sender) evict() {
	if len(s.destinations) < mostDestinations {
		return
	}
	oldest := ""
	for key, d := range s.destinations {
		if d.users == 0 && (oldest == "" || d.used.Before(s.destinations[oldest].used)) {
			oldest = key
		}
	}
	if oldest == "" {
		return
	}
	if made := s.destinations[oldest].sender; made != nil {
		if err := made.Close(); err != nil {
			s.Logger.Warn("a sender could not be closed", "address", oldest, "error", err)
		}
	}
	delete(s.destinations, oldest)
}
