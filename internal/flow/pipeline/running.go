package pipeline

import (
	"fmt"
	"io"
	"maps"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// The properties that pipelines write themselves.
const (
	Space           = "urn:parley:pipeline"
	WarningProperty = Space + "#Warning" // what was odd about the input and was taken, such as two charsets
	HeaderProperty  = Space + "#Header"  // the header of a flat file, as XML

	// StageProperty says from which stage on a part of an input that was bad is run, when it is resubmitted. It is what the stages before it
	// have made. A whole input that failed has no such property, and is run from the beginning.
	StageProperty = Space + "#Stage"
)

// running is one input on its way. It is the sink of the parsers, and gives what they find to the sink of the host.
type running struct {
	pipe      *Receive
	source    Source
	sink      Sink
	sinkErr   error
	measured  measured
	component string // of the disassembler

	// Facts about the messages of the input, which the disassembler gives.
	kind        string // of the next one, empty where its parser says it at its end
	contentType string
	charset     string
	bodyCharset string         // of the input, as the disassembler found it
	written     map[string]any // of each message
	isOpaque    bool           // bodies are not read: they are typed by nobody
	isJSON      bool
	isWatched   bool // the parser of the body shows its tokens
	isConverted bool // messages have another form than the input
	isPart      bool // the input is a part of another one, which is resubmitted
	recovers    bool
	isText      bool // places of bad parts count the bytes of the text in UTF-8, and not those of the body
	documents   []string
	prefix      []byte // without which a bad part of the input cannot be read, such as the header line of CSV

	last      int64 // the number that was given out last
	good, bad int64
	current   *message
	from      int64 // where the message stands that begins
	watched   *typing.Run
	watchedOf *compiledType
	// validators follow the tokens of messages of XML.
	validators []*following
}

// message is one that is being written.
type message struct {
	number    int64
	from      int64 // byte of the input, where the parser says it
	kind      string
	isAborted bool // it was taken back, and something bad follows in its place
	w         io.Writer
	err       *error // of the sink
	values    []typing.Value
	typed     *compiledType
	taps      []*tap
}

// Write implements [io.Writer].
func (m *message) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	if err != nil {
		*m.err = err
		return n, err
	}
	for _, t := range m.taps {
		if _, err := t.Write(p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// opened takes what the charset of a body is.
func (r *running) opened(source *text.Source) {
	r.charset, r.bodyCharset = text.UTF8.Name, source.Charset.Name // messages are written in UTF-8, whatever the input was
	if source.Disagreement != "" {
		r.write(WarningProperty, source.Disagreement)
	}
}

// write writes a property of all messages that follow.
func (r *running) write(name, value string) {
	r.written = maps.Clone(r.written)
	if r.written == nil {
		r.written = map[string]any{}
	}
	r.written[name] = value
}

// Root implements [envelope.Watcher].
func (r *running) Root(messageType string, from int64) {
	r.kind, r.from = messageType, from
	r.releaseRun()
	if c := r.pipe.types.of(messageType); c != nil && c.xml != nil {
		r.watchedOf = c
		r.watched, _ = c.runs.Get().(*typing.Run) // the pool holds nothing else
		r.watched.Reset()
	}
	for _, f := range r.validators {
		f.begin(messageType, r.pipe.types)
	}
}

func (r *running) releaseRun() {
	if r.watched != nil {
		r.watchedOf.runs.Put(r.watched)
		r.watched, r.watchedOf = nil, nil
	}
}

// Token implements [envelope.Watcher].
func (r *running) Token(s *xmlscan.Scanner, kind xmlscan.Kind) {
	if r.watched != nil {
		r.watched.Token(s, kind)
	}
	for _, f := range r.validators {
		f.token(s, kind)
	}
}

// Begin implements [interchange.Sink].
func (r *running) Begin(int64) (io.Writer, error) { return r.begin() }

func (r *running) begin() (io.Writer, error) {
	m, err := r.beginMessage()
	if err != nil {
		return nil, err
	}
	r.current = m
	if err := r.follow(m); err != nil {
		return nil, err
	}
	return m, nil
}

// beginMessage begins a message in the sink.
func (r *running) beginMessage() (*message, error) {
	r.last++
	m := &message{number: r.last, from: r.from, kind: r.kind, err: &r.sinkErr}
	m.w, r.sinkErr = r.sink.Begin(m.number)
	return m, r.sinkErr
}

// follow lets those read the message who find its properties and hold it against its schema.
func (r *running) follow(m *message) error {
	if r.isOpaque && len(r.pipe.validators) == 0 {
		return nil
	}
	c := r.pipe.types.of(m.kind)
	if c != nil && len(c.problems) > 0 {
		return failed(codePipeline, "", Problems(c.problems))
	}
	m.typed = c
	if !r.isOpaque && !r.isWatched && c != nil {
		if read := r.finder(c, m); read != nil {
			m.taps = append(m.taps, &tap{read: read})
		}
	}
	for _, p := range r.pipe.validators {
		if _, isXML := p.run.(*xmlValidator); isXML && r.isWatched {
			continue // it follows the tokens
		}
		v, _ := p.run.(validator) // as the registry makes them
		m.taps = append(m.taps, &tap{part: p, read: v.reading(m.kind, c)})
	}
	return nil
}

// finder gives who finds the values of a message, nil where it has none.
func (r *running) finder(c *compiledType, m *message) func(io.Reader) error {
	switch {
	case r.isJSON && c.json != nil:
		return func(body io.Reader) (err error) {
			m.values, err = c.json.read(body)
			return err
		}
	case !r.isJSON && c.xml != nil:
		return func(body io.Reader) error {
			result, err := c.xml.NewRun().Read(xmlscan.New(body, xmlscan.Limits{}))
			m.values = result.Values
			return err
		}
	}
	return nil
}

// End implements [interchange.Sink].
func (r *running) End(m interchange.Message) error {
	if m.Type == "" {
		m.Type = r.kind
	}
	return r.end(m.Type)
}

func (r *running) end(kind string) error {
	m := r.current
	r.current = nil
	if r.watched != nil {
		m.values = r.watched.Values()
	}
	result := r.result(m.number, kind)
	recovers, failure := r.finish(m)
	if failure == nil && r.recovers && len(r.documents) > 0 {
		recovers, failure = true, r.unrecognized(kind)
	}
	if failure != nil {
		if f, is := fault.Of(failure); is {
			f.Number = m.number
		}
		if !recovers {
			return failure
		}
		r.bad++
		result.Written = with(result.Written, StageProperty, r.stageOfMessage())
		r.sinkErr = r.sink.Bad(result, nil, failure)
		return r.sinkErr
	}
	r.properties(m, &result)
	r.good++
	r.sinkErr = r.sink.End(result)
	r.releaseRun()
	return r.sinkErr
}

// stageOfMessage gives the stage from which on a message that is not valid is run again: where its form is not that of the input, the
// disassembler could not read it.
func (r *running) stageOfMessage() string {
	if r.isConverted {
		return stageValidate
	}
	return stageDisassemble
}

// finish ends the taps of a message, and gives why it is not valid, and whether the others go on.
func (r *running) finish(m *message) (recovers bool, failure error) {
	for _, t := range m.taps {
		err := t.end()
		if err == nil || failure != nil {
			continue
		}
		failure = failed(codePipeline, r.component, err)
		if v, is := t.part.run.(validator); is {
			failure, recovers = failed(codeOf(err, codeValidate), t.part.component, err), v.recovers()
		}
	}
	for _, f := range r.validators {
		if f.err != nil && failure == nil {
			failure, recovers = failed(codeValidate, f.component, f.err), f.recovers
		}
	}
	return recovers, failure
}

// result is a message without the properties of its own.
func (r *running) result(number int64, kind string) Message {
	return Message{
		Number: number, Type: kind, ContentType: r.contentType, Charset: r.charset,
		Promoted: maps.Clone(r.source.Promoted), Written: maps.Clone(r.written),
	}
}

// properties adds the values that were found in the message. One that is too long to be kept stays in the body alone.
func (r *running) properties(m *message, result *Message) {
	c := m.typed
	if c == nil {
		return
	}
	for _, v := range m.values {
		d := c.destinations[v.Property]
		switch {
		case v.IsCut:
			warning := fmt.Sprintf("%s has %d bytes, and is in the body alone", d.name, v.Bytes)
			result.Written = with(result.Written, WarningProperty, warning)
		case d.isPromoted:
			result.Promoted = with(result.Promoted, d.name, v.Text) // the database writes one that is too long to be promoted, and counts it
		default:
			result.Written = with(result.Written, d.name, v.Text)
		}
	}
}

func with(properties map[string]any, name, value string) map[string]any {
	if properties == nil {
		properties = map[string]any{}
	}
	properties[name] = value
	return properties
}

// Abort implements [interchange.Sink].
func (r *running) Abort(int64) error {
	if m := r.current; m != nil {
		m.stop()
		m.isAborted = true
	}
	return nil
}

func (m *message) stop() {
	for _, t := range m.taps {
		t.stop()
	}
	m.taps = nil
}

// close ends what an input that failed has left.
func (r *running) close() {
	r.releaseRun()
	if r.current != nil {
		r.current.stop()
	}
}

var _ interchange.Sink = (*running)(nil)
