package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// Codes of messages that maps refuse.
const (
	codeReceiveMap = "receive.map"
	codeSendMap    = "send.map"
)

// portMaps are the maps of a port, by the types of the messages that they take.
type portMaps struct {
	maps     *mapping.Maps
	bySource map[string]string
	types    *pipeline.Types
	role     string // with whose rights functions of the database are called
	code     string // of failures
}

// mapsOf gives the maps of a port; nil: it has none. An error says that one of them cannot run here.
func (h *Host) mapsOf(c *configuration, names []string, code string) (*portMaps, error) {
	if len(names) == 0 {
		return nil, nil //nolint:nilnil // there are none, and nothing is wrong
	}
	bySource, f := c.maps.BySource(names)
	if f != nil {
		return nil, f
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	for _, name := range names {
		if err := c.maps.Prepare(ctx, name); err != nil {
			return nil, err
		}
	}
	return &portMaps{c.maps, bySource, c.types, c.Host.Role, code}, nil
}

// mapOf gives the map for messages of a type; empty: none.
func (p *portMaps) mapOf(messageType string) string {
	if p == nil {
		return ""
	}
	return p.bySource[messageType]
}

// run maps a message and gives it the type and the properties of the result. tx is the transaction in which functions of the database are
// called. A failure is one of the message.
func (p *portMaps) run(
	ctx context.Context, name string, tx adapter.Transaction, m *pipeline.Message, in mapping.Input,
) (*mapping.Body, error) {
	maps := p.maps
	if tx != nil {
		maps = maps.In(mapping.Place{Tx: tx, Role: p.role})
	}
	out, err := maps.Run(ctx, name, []mapping.Input{in})
	if err != nil {
		return nil, p.failure(err)
	}
	m.ContentType, m.Charset = out.ContentType, out.Charset
	if err := p.types.Retype(m, out.Type, name, out.Body.Reader()); err != nil {
		return nil, errors.Join(p.failure(fmt.Errorf("map %s: %w", name, err)), out.Body.Close())
	}
	return out.Body, nil
}

// failure makes a failure of an error that trying again does not help.
func (p *portMaps) failure(err error) error {
	_, isFault := fault.Of(err)
	_, isProblem := errors.AsType[pipeline.Problems](err)
	if !isFault && !isProblem {
		return err
	}
	return &adapter.Failure{Code: p.code, Err: err, Permanent: true}
}

// mapSink puts messages that come out of a receive pipeline through the maps of the port.
type mapSink struct {
	inner       *sink
	transaction func(ctx context.Context) (adapter.Transaction, error) // for maps that are functions of the database
	maps        *portMaps
	stage       string // from which on a message that is refused is run again; empty: it is not
	open        map[int64]*mapping.Body
}

var _ pipeline.Sink = (*mapSink)(nil)

// Begin implements [pipeline.Sink].
func (s *mapSink) Begin(number int64) (io.Writer, error) {
	if s.open == nil {
		s.open = map[int64]*mapping.Body{}
	}
	s.forget(number)
	s.open[number] = &mapping.Body{}
	return s.open[number], nil
}

// End implements [pipeline.Sink].
func (s *mapSink) End(m pipeline.Message) error {
	body := s.open[m.Number]
	defer s.forget(m.Number)
	name := s.maps.mapOf(m.Type)
	if name == "" {
		return s.pass(m, body, nil)
	}
	var tx adapter.Transaction
	if s.maps.maps.IsSQL(name) {
		var err error
		if tx, err = s.transaction(s.inner.ctx); err != nil {
			return err
		}
	}
	mapped := m
	made, err := s.maps.run(s.inner.ctx, name, tx, &mapped, mapping.Input{Open: body.Open, Size: body.Size(), Charset: m.Charset})
	if failure, is := errors.AsType[*adapter.Failure](err); is {
		if s.stage != "" {
			m.Written = withProperty(m.Written, pipeline.StageProperty, s.stage)
		}
		return s.pass(m, body, failure)
	}
	if err != nil {
		return err
	}
	defer made.Close()
	return s.pass(mapped, made, nil)
}

// Bad implements [pipeline.Sink].
func (s *mapSink) Bad(m pipeline.Message, raw []byte, failure error) error {
	defer s.forget(m.Number)
	if raw != nil {
		return s.inner.Bad(m, raw, failure)
	}
	return s.pass(m, s.open[m.Number], failure)
}

// pass gives a message on.
func (s *mapSink) pass(m pipeline.Message, body *mapping.Body, failure error) error {
	if body == nil {
		return fmt.Errorf("the pipeline ends message %d, which it has not begun", m.Number)
	}
	w, err := s.inner.Begin(m.Number)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, body.Reader()); err != nil {
		return err
	}
	return s.inner.end(m, failure)
}

func (s *mapSink) forget(number int64) {
	_ = s.open[number].Close() // a file without a name
	delete(s.open, number)
}

// close forgets what an input that failed has left.
func (s *mapSink) close() {
	for number := range s.open {
		s.forget(number)
	}
}

// transaction gives the transaction of the call, and begins one where there is none.
func (t *take) transaction(ctx context.Context) (adapter.Transaction, error) {
	if t.tx == nil {
		tx, err := t.in.host.pool.Begin(ctx)
		if err != nil {
			return nil, fmt.Errorf("begin a transaction: %w", err)
		}
		t.tx, t.isOwn = tx, true
	}
	return t.tx, nil
}

// mapped puts a message that goes out through the map for its type. Each opening of its body but the first maps it anew, because nobody
// says when the body is of no use any more.
func (h *Host) mapped(ctx context.Context, maps *portMaps, source pipeline.Source) (pipeline.Source, error) {
	name := maps.mapOf(source.Type)
	if name == "" {
		return source, nil
	}
	m, first, err := h.mapOnce(ctx, maps, name, source)
	if err != nil {
		return source, err
	}
	made := pipeline.Source{
		Size: first.Size(), ContentType: m.ContentType, Charset: m.Charset, Type: m.Type, Promoted: m.Promoted, Written: m.Written,
	}
	made.Open = func(ctx context.Context) (io.ReadCloser, error) {
		body := first
		if first = nil; body == nil {
			if _, body, err = h.mapOnce(ctx, maps, name, source); err != nil {
				return nil, err
			}
		}
		return mappedBody{body.Reader(), body}, nil
	}
	return made, nil
}

type mappedBody struct {
	io.Reader
	io.Closer
}

// mapOnce maps a message. Functions of the database are called in a transaction that is rolled back: they read alone.
func (h *Host) mapOnce(
	ctx context.Context, maps *portMaps, name string, source pipeline.Source,
) (m pipeline.Message, body *mapping.Body, err error) {
	m = pipeline.Message{
		Type: source.Type, ContentType: source.ContentType, Charset: source.Charset, Promoted: source.Promoted, Written: source.Written,
	}
	in := mapping.Input{Open: source.Open, Size: source.Size, Charset: source.Charset}
	if !maps.maps.IsSQL(name) {
		body, err = maps.run(ctx, name, nil, &m, in)
		return m, body, err
	}
	err = pgx.BeginTxFunc(ctx, h.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		body, err = maps.run(ctx, name, tx, &m, in)
		return err
	})
	return m, body, err
}

func withProperty(properties map[string]any, name, value string) map[string]any {
	if properties == nil {
		properties = map[string]any{}
	}
	properties[name] = value
	return properties
}

// withMaps adds to the details of deliveries, which tracking keeps, the maps that the messages went through.
func withMaps(deliveries []adapter.Delivery, messages []*adapter.Message) []adapter.Delivery {
	for i := range min(len(deliveries), len(messages)) {
		name := messages[i].Written[pipeline.MapProperty]
		if name == "" || deliveries[i].Err != nil {
			continue
		}
		detail := map[string]any{}
		if len(deliveries[i].Detail) > 0 && json.Unmarshal(deliveries[i].Detail, &detail) != nil {
			continue
		}
		detail["map"] = name
		if written, err := json.Marshal(detail); err == nil { // of what was read as JSON
			deliveries[i].Detail = written
		}
	}
	return deliveries
}
