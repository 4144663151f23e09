package csvfile

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Settings say how CSV is written and what becomes of it.
type Settings struct {
	Delimiter rune   // default a comma
	Comment   rune   // lines that begin with it are passed over; 0: none
	Charset   string // default UTF-8; a byte-order mark overrides it
	AsJSON    bool   // messages are JSON objects, and not XML
	Split     bool   // each line is a message
	Root, Row string // names of the elements, Rows and Row by default
	Namespace string // of the root
	// Columns are those that the header line has to name, in any order and beside others; none: it may name any.
	Columns []string
	// Known are names of elements, or members of JSON, one of which at least a column has to have; none: they may be any.
	Known   []string
	Recover interchange.Recovery
	Opened  func(*text.Source) // once, before the first line
	// HeaderRead gets the header line with its end, once; nil where it is very long.
	HeaderRead func(line []byte)
}

func (s Settings) orDefault() Settings {
	if s.Delimiter == 0 {
		s.Delimiter = ','
	}
	if s.Root == "" {
		s.Root = "Rows"
	}
	if s.Row == "" {
		s.Row = "Row"
	}
	return s
}

func (s Settings) checkComment() error {
	if s.Comment == s.Delimiter {
		return &fault.Fault{
			Message: fmt.Sprintf("%q delimits values, and begins comments", s.Comment), Remedy: "give one of the two another character",
		}
	}
	if s.Comment == 0 {
		return nil
	}
	return checkDelimiter(s.Comment)
}

// A Summary is what a file held.
type Summary struct {
	Columns       []string
	Rows          int64
	Messages, Bad int64
	Disagreement  string
}

type reader struct {
	Settings
	csv     *csv.Reader
	lines   lines
	sink    interchange.Sink
	summary Summary
	names   []string // of elements, or members of JSON with their colons
	out     io.Writer
	buf     []byte
}

// Read reads CSV whose first line names the columns.
func Read(ctx context.Context, body io.Reader, settings Settings, sink interchange.Sink) (Summary, error) {
	settings = settings.orDefault()
	if err := errors.Join(checkDelimiter(settings.Delimiter), settings.checkComment()); err != nil {
		return Summary{}, err
	}
	source, err := text.Open(body, settings.Charset, false)
	if err != nil {
		return Summary{}, err
	}
	if settings.Opened != nil {
		settings.Opened(source)
	}
	r := &reader{Settings: settings, lines: lines{r: source}, sink: sink}
	r.csv = csv.NewReader(&r.lines)
	r.csv.Comma, r.csv.Comment, r.csv.ReuseRecord = r.Delimiter, r.Comment, true
	r.summary.Disagreement = source.Disagreement
	if err := r.header(); err != nil {
		return r.summary, err
	}
	if settings.HeaderRead != nil {
		settings.HeaderRead(bytes.Clone(r.lines.between(0, r.csv.InputOffset())))
	}
	err = r.rows(ctx)
	if err != nil && r.out != nil {
		err = errors.Join(err, sink.Abort(r.summary.Messages+1))
	}
	return r.summary, err
}

func (r *reader) header() error {
	columns, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return &fault.Fault{
			Message: "the file is empty", Expected: "a line with the names of the columns",
			Remedy: "send the file with its header line",
		}
	}
	if err != nil {
		return r.explain(err, 0)
	}
	for i, column := range columns {
		line, position := r.csv.FieldPos(i)
		place := fault.Place{Line: int64(line), Column: position}
		if column == "" {
			return &fault.Fault{Message: fmt.Sprintf("column %d has no name", i+1), Place: place, Remedy: "name it in the header line"}
		}
		if slices.Contains(r.summary.Columns, column) {
			return &fault.Fault{
				Message: fmt.Sprintf("two columns are named %q", column), Place: place, Remedy: "give each column a name of its own",
			}
		}
		r.summary.Columns = append(r.summary.Columns, column)
		name := ElementName(column)
		if r.AsJSON {
			quoted, err := json.Marshal(column)
			if err != nil {
				return err
			}
			name = string(quoted) + ":"
		}
		r.names = append(r.names, name)
	}
	return r.checkColumns()
}

func (r *reader) rows(ctx context.Context) error {
	if !r.Split {
		if err := r.begin(); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := r.csv.InputOffset()
		r.lines.forget(from)
		row, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		switch _, isOfLine := errors.AsType[*csv.ParseError](err); {
		case err == nil && r.summary.Rows == 0 && r.isOfOtherDelimiter(row):
			return r.wrongDelimiter()
		case err == nil:
			r.buf, err = r.appendRow(r.buf[:0], row)
		case isOfLine:
			err = r.explain(err, from)
		default: // an error of the source, such as a byte that is no character: nothing comes behind it
			if _, isFault := fault.Of(err); isFault {
				err = &interchange.UnreadableError{From: from, Err: err}
			}
			return err
		}
		if f, isFault := fault.Of(err); isFault && r.Recover != interchange.Nothing && !errors.Is(f, errUnreadable) {
			r.summary.Bad++
			f.End = r.csv.InputOffset()
			if err := r.sink.Bad(interchange.Bad{Fault: f, From: from, To: f.End, Raw: r.lines.between(from, f.End)}); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, errUnreadable) {
			return &interchange.UnreadableError{From: from, Err: err}
		}
		if err != nil {
			return err
		}
		if err := r.write(); err != nil {
			return err
		}
	}
	if r.Split {
		return nil
	}
	return r.end()
}

func (r *reader) begin() error {
	w, err := r.sink.Begin(r.summary.Messages + 1)
	if err != nil {
		return err
	}
	r.out = w
	switch {
	case r.AsJSON && !r.Split:
		_, err = io.WriteString(w, "[")
	case !r.AsJSON:
		_, err = io.WriteString(w, r.rootTag())
	}
	return err
}

func (r *reader) rootTag() string {
	if r.Namespace == "" {
		return "<" + r.Root + ">"
	}
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(r.Namespace)) // a bytes.Buffer takes everything
	return "<ns0:" + r.Root + ` xmlns:ns0="` + b.String() + `">`
}

func (r *reader) end() error {
	tail := "</" + r.Root + ">"
	switch {
	case r.AsJSON && r.Split:
		tail = ""
	case r.AsJSON:
		tail = "]"
	case r.Namespace != "":
		tail = "</ns0:" + r.Root + ">"
	}
	if _, err := io.WriteString(r.out, tail); err != nil {
		return err
	}
	r.out = nil
	r.summary.Messages++
	kind := ""
	if !r.AsJSON {
		kind = r.Root
		if r.Namespace != "" {
			kind = r.Namespace + "#" + r.Root
		}
	}
	return r.sink.End(interchange.Message{Number: r.summary.Messages, Type: kind})
}

func (r *reader) write() error {
	if r.Split {
		if err := r.begin(); err != nil {
			return err
		}
	} else if r.AsJSON && r.summary.Rows > 0 {
		if _, err := io.WriteString(r.out, ","); err != nil {
			return err
		}
	}
	r.summary.Rows++
	if _, err := r.out.Write(r.buf); err != nil {
		return err
	}
	if r.Split {
		return r.end()
	}
	return nil
}

func (r *reader) appendRow(to []byte, row []string) ([]byte, error) {
	if r.AsJSON {
		to = append(to, '{')
		for i, value := range row {
			if i > 0 {
				to = append(to, ',')
			}
			quoted, err := json.Marshal(value)
			if err != nil {
				return to, err
			}
			to = append(append(to, r.names[i]...), quoted...)
		}
		return append(to, '}'), nil
	}
	b := bytes.NewBuffer(append(to, "<"+r.Row+">"...))
	for i, value := range row {
		for _, c := range value {
			if c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff {
				line, column := r.csv.FieldPos(i)
				return to, &fault.Fault{
					Message: fmt.Sprintf("character U+%04X, which XML does not have", c),
					Field:   r.summary.Columns[i], Place: fault.Place{Line: int64(line), Column: column},
					Remedy: "remove it from the file, or read the file as JSON",
				}
			}
		}
		if value == "" {
			b.WriteString("<" + r.names[i] + "/>")
			continue
		}
		b.WriteString("<" + r.names[i] + ">")
		if err := xml.EscapeText(b, []byte(value)); err != nil {
			return to, err
		}
		b.WriteString("</" + r.names[i] + ">")
	}
	b.WriteString("</" + r.Row + ">")
	return b.Bytes(), nil
}

// errUnreadable marks quotes that do not match: where the next line begins is not certain.
var errUnreadable = errors.New("quotes do not match")

// explain gives an error of encoding/csv, in a line that begins at a byte of the text, its place and remedy.
func (r *reader) explain(err error, from int64) error {
	parse, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return err
	}
	f := &fault.Fault{Place: fault.Place{Byte: from, Line: int64(parse.Line), Column: parse.Column}}
	if parse.Line == parse.StartLine {
		f.Place.Byte += int64(parse.Column - 1)
	}
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		f.Message = "the line has another number of values than the header line"
		f.Expected = fmt.Sprintf("%d values", len(r.summary.Columns))
		f.Remedy = "add the missing values, or put quotes around a value that contains the delimiter"
		if _, other := likelyDelimiter(r.summary.Columns); other != "" {
			f.Remedy = "set the delimiter: the header line is one name with " + other + " in it; or write as many values as it has names"
		}
	default:
		f.Message, f.Err = "a quote within a value, or one that is not closed", errUnreadable
		f.Remedy = `put quotes around the whole value and write "" for a quote in it`
	}
	return f
}
