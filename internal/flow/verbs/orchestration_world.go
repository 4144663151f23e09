package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/flow/process"
)

// fileWorld gives an orchestration bodies, maps and rows of files, and its own time.
type fileWorld struct {
	env    environment
	types  *pipeline.Types
	maps   map[string][]string
	rows   []string
	bodies map[int64][]byte
	seen   map[string]*process.Message
	now    time.Time
	ids    int
}

func newFileWorld(env environment, whole json.RawMessage, rows []string) (*fileWorld, error) {
	var d struct {
		MessageTypes    json.RawMessage `json:"message type"`
		PropertySchemas json.RawMessage `json:"property schema"`
	}
	if err := json.Unmarshal(whole, &d); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	types, err := pipeline.NewTypes(d.MessageTypes, d.PropertySchemas)
	return &fileWorld{
		env: env, types: types, rows: rows, bodies: map[int64][]byte{}, seen: map[string]*process.Message{}, now: time.Now(),
	}, err
}

func (w *fileWorld) file(name string) ([]byte, error) {
	file, err := w.env.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// read gives the message of a file, each file once. A body that does not say its type, such as one of JSON, is of the type that the receive
// asks for.
func (w *fileWorld) read(ctx context.Context, name, port string, asks []match.Predicate) (*process.Message, error) {
	meant := typeIn(asks)
	key := name + "\x00" + meant
	if m, isThere := w.seen[key]; isThere {
		return m, nil
	}
	body, err := w.file(name)
	if err != nil {
		return nil, err
	}
	m, err := w.Type(ctx, process.Message{Body: body, Type: meant})
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	id := int64(len(w.bodies) + 1)
	w.bodies[id] = m.Body
	m.ID, m.Body, m.Size = id, nil, int64(len(m.Body))
	if port != "" {
		m.Promoted["ReceivePortName"] = port
	}
	w.seen[key] = &m
	return &m, nil
}

// typeIn gives the message type that predicates ask for.
func typeIn(asks []match.Predicate) string {
	for _, p := range asks {
		if p.Property == "MessageType" && p.Operator == "=" {
			return p.Value
		}
	}
	return ""
}

func (w *fileWorld) bodyOf(m process.Message) []byte {
	if m.ID == 0 {
		return m.Body
	}
	return w.bodies[m.ID]
}

// Open implements [process.World], as all that follow.
func (w *fileWorld) Open(_ context.Context, m process.Message) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(w.bodies[m.ID])), nil
}

// Type puts the body through the pipeline that is built in for its form.
func (w *fileWorld) Type(ctx context.Context, m process.Message) (process.Message, error) {
	compiled, err := pipeline.CompileReceive(pipeline.BuiltInFor(m.Body), w.types, nil)
	if err != nil {
		return m, err
	}
	sink := &pipeline.Only{}
	source := pipeline.Source{Size: int64(len(m.Body)), Type: w.types.TypeFor(m.Type, m.Body)}
	source.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(m.Body)), nil
	}
	if err := compiled.Run(ctx, source, sink); err != nil {
		return m, err
	}
	found := sink.Message
	m.Type, m.Promoted, m.Written, m.Charset = found.Type, maps.Clone(found.Promoted), found.Written, found.Charset
	if sink.Message.ContentType != "" {
		m.Content = sink.Message.ContentType
	}
	if m.Promoted == nil {
		m.Promoted = map[string]any{}
	}
	if m.Type != "" {
		m.Promoted["MessageType"] = m.Type
	}
	m.Body = sink.Body.Bytes()
	return m, nil
}

// Transform gives the result that the command line names.
func (w *fileWorld) Transform(_ context.Context, name string, _ []process.Message) (process.Message, error) {
	given := w.maps[name]
	if len(given) == 0 {
		return process.Message{}, &process.Fault{Message: "no result of map " + name + " is given", Remedy: "give --map " + name + "=FILE"}
	}
	if len(given) > 1 {
		w.maps[name] = given[1:]
	}
	body, err := w.file(given[0])
	return process.Message{Body: body}, err
}

// Query gives the rows of the next file, or none.
func (w *fileWorld) Query(context.Context, string, []any) ([]map[string]any, error) {
	if len(w.rows) == 0 {
		return nil, nil
	}
	name := w.rows[0]
	w.rows = w.rows[1:]
	body, err := w.file(name)
	if err != nil {
		return nil, err
	}
	var rows []map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&rows); err != nil {
		return nil, &fault.Fault{File: name, Message: err.Error(), Remedy: "write a list of objects, each a row"}
	}
	return rows, nil
}

// Savepoint keeps nothing: rows come of files.
func (*fileWorld) Savepoint(context.Context) (release, back func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	return nothing, nothing, nil
}

func (w *fileWorld) Now() time.Time { return w.now }

// NewID gives the same identifiers in each trial, so that results can be compared.
func (w *fileWorld) NewID() string {
	w.ids++
	return fmt.Sprintf("00000000-0000-0000-0000-%012d", w.ids)
}
