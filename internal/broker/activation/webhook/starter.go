package webhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
)

const formatRaw = "raw"

// Starter makes readers that deliver to web addresses, for one database.
type Starter struct {
	pool       *pgxpool.Pool
	permission Permission
	secrets    Secrets
	logger     *slog.Logger
	named      *http.Client // for hosts that the operator has named
	public     *http.Client // for all others
	requests   chan struct{}
	lease      time.Duration // of claims

	mu     sync.Mutex
	queues map[int]*shared
}

// shared holds the state that the readers of one queue share.
type shared struct {
	// turn is held by the one reader that waits for conversations whose delivery failed; the others wait for it.
	turn chan struct{}

	mu          sync.Mutex
	unavailable int // how often in a row the receiver was not available
}

// definition is the definition of a webhook in the database.
type definition struct {
	URL            string `json:"url"`
	Secret         string `json:"secret"`
	SealedSecret   []byte `json:"sealed_secret"` // base64 is the form of bytes in JSON
	TimeoutMS      int    `json:"timeout_ms"`
	BatchSize      int    `json:"batch_size"`
	Groups         int    `json:"groups"`
	BodyFormat     string `json:"body_format"`
	SystemMessages bool   `json:"system_messages"`
	IsSimple       bool   `json:"is_simple"`       // the queue is simple: its messages are of no conversation
	BrokerInstance string `json:"broker_instance"` // makes the numbers of its messages unique
}

func (d definition) timeout() time.Duration { return time.Duration(d.TimeoutMS) * time.Millisecond }

// NewStarter makes a starter; up to requestsMax requests of its readers are under way at once. A reader takes a connection of the pool to
// claim, to renew and to record, and none while it waits for an answer. Secrets that are not sealed it uses as they are. A nil logger is
// [slog.Default]. Call Close when all readers have ended.
func NewStarter(
	pool *pgxpool.Pool, requestsMax int, permission Permission, secrets Secrets, logger *slog.Logger,
) *Starter {
	return &Starter{
		pool:       pool,
		permission: permission,
		secrets:    secrets,
		logger:     cmp.Or(logger, slog.Default()),
		named:      newClient(false),
		public:     newClient(true),
		requests:   make(chan struct{}, requestsMax),
		lease:      defaultLease,
		queues:     map[int]*shared{},
	}
}

// Close closes the connections that are kept for the next request.
func (s *Starter) Close() {
	s.named.CloseIdleConnections()
	s.public.CloseIdleConnections()
}

// NewReader prepares a reader of a queue.
//
// Errors: [ErrNotAllowed], a definition that makes no sense, or a secret that the master key does not open.
func (s *Starter) NewReader(q activation.Queue, number int) (activation.Reader, error) {
	r := &reader{pool: s.pool, queue: q.Name, queueID: q.ID, client: s.public, requests: s.requests, lease: s.lease}
	if err := json.Unmarshal(q.External, &r.definition); err != nil {
		// The error of the parser may show the secret.
		return nil, errors.New("read the definition of the webhook: it is malformed")
	}
	if err := s.unseal(q.ID, &r.definition); err != nil {
		return nil, err
	}
	if r.BatchSize < 1 || r.TimeoutMS < 1 || r.Secret == "" {
		return nil, errors.New("read the definition of the webhook: something is missing")
	}
	address, isNamed, err := s.permission.check(r.URL)
	if err != nil {
		return nil, err
	}
	if isNamed {
		r.client = s.named
	}
	r.url = address
	r.shared = s.sharedBy(q.ID)
	r.logger = s.logger.With("queue", q.Name, "host", address.Host, "instance", number)
	return r, nil
}

func (s *Starter) sharedBy(queueID int) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[queueID] == nil {
		s.queues[queueID] = &shared{turn: make(chan struct{}, 1)}
	}
	return s.queues[queueID]
}

// recordUnavailable counts, and returns after how many in a row the reader had better fail, so that the engine pauses.
func (s *shared) recordUnavailable() (tooMany bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable++
	return s.unavailable >= unavailableMax
}

func (s *shared) recordAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable = 0
}

// withoutURL takes the address out of an error of net/http: there may be a secret in its query.
func withoutURL(err error) error {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", urlErr.Op, urlErr.Err)
	}
	return err
}
