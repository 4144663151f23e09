package csvfile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// A Writer writes rows under a header line. The columns are those given, or those of the first row.
type Writer struct {
	csv     *csv.Writer
	out     io.WriteCloser
	columns []string
	place   map[string]int
	isBegun bool
}

// NewWriter begins CSV on w. Lines end with CR LF where crlf is set.
func NewWriter(w io.Writer, delimiter rune, crlf bool, columns []string, output text.Output) (*Writer, error) {
	if delimiter != 0 {
		if err := checkDelimiter(delimiter); err != nil {
			return nil, err
		}
	}
	out, err := output.NewWriter(w)
	if err != nil {
		return nil, err
	}
	writer := &Writer{csv: csv.NewWriter(out), out: out, columns: columns}
	if delimiter != 0 {
		writer.csv.Comma = delimiter
	}
	writer.csv.UseCRLF = crlf
	return writer, nil
}

// row is the values of a line by column, with the columns in their order.
type row struct {
	columns []string
	values  map[string]string
	place   fault.Place
}

// begin writes the header line, unless it is written.
func (w *Writer) begin(columns []string) error {
	if w.isBegun {
		return nil
	}
	w.isBegun = true
	if w.columns == nil {
		w.columns = columns
	}
	w.place = map[string]int{}
	for i, column := range w.columns {
		w.place[column] = i
	}
	return w.csv.Write(w.columns)
}

func (w *Writer) write(r row) error {
	if err := w.begin(r.columns); err != nil {
		return err
	}
	line := make([]string, len(w.columns))
	for _, column := range r.columns {
		i, ok := w.place[column]
		if !ok {
			return &fault.Fault{
				Message: fmt.Sprintf("a row has column %q, which is not in the header line", column), Field: column, Place: r.place,
				Remedy: "name all columns in the settings, or let the first row have them all",
			}
		}
		line[i] = r.values[column]
	}
	if len(line) == 1 && line[0] == "" {
		// An empty line would be passed over when it is read.
		w.csv.Flush()
		_, err := io.WriteString(w.out, "\"\"\n")
		return errors.Join(err, w.csv.Error())
	}
	return w.csv.Write(line)
}

// WriteXML appends the rows of a document: each child of its root is a row, each child of a row a value.
func (w *Writer) WriteXML(document io.Reader) error {
	source, err := text.Open(document, "", true)
	if err != nil {
		return err
	}
	s := xmlscan.New(source, xmlscan.Limits{})
	var r row
	var column string
	var value []byte
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch kind {
		case xmlscan.StartElement:
			switch s.Depth() {
			case 2:
				r = row{values: map[string]string{}, place: s.Place()}
			case 3:
				column, value = columnName(s.Name().Local), value[:0]
			case 4:
				return &fault.Fault{
					Message: fmt.Sprintf("element %s below a value", s.Name().Local), Place: s.Place(),
					Remedy: "send rows whose values are texts",
				}
			}
		case xmlscan.Text, xmlscan.CDATA:
			if s.Depth() == 3 {
				value = append(value, s.Text()...)
			} else if len(bytes.TrimSpace(s.Text())) > 0 {
				return &fault.Fault{Message: "text beside the values of a row", Place: s.Place(), Remedy: "put it into an element of the row"}
			}
		case xmlscan.EndElement:
			switch s.Depth() {
			case 2:
				if err := w.write(r); err != nil {
					return err
				}
			case 3:
				if _, has := r.values[column]; has {
					return &fault.Fault{
						Message: fmt.Sprintf("column %q is twice in a row", column), Field: column, Place: r.place,
						Remedy: "send each value once",
					}
				}
				r.columns = append(r.columns, column)
				r.values[column] = string(value)
			}
		case xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

// WriteJSON appends a row for an object, or for each object of an array. Numbers and booleans are written as they stand; null is empty.
func (w *Writer) WriteJSON(document io.Reader) error {
	source, err := text.Open(document, "", false)
	if err != nil {
		return err
	}
	d := json.NewDecoder(source)
	d.UseNumber()
	o := objects{writer: w}
	for {
		at := fault.Place{Byte: d.InputOffset()}
		token, err := d.Token()
		if errors.Is(err, io.EOF) && o.depth == 0 {
			return nil
		}
		if err != nil {
			return &fault.Fault{
				Message: "this is no JSON: " + err.Error(), Err: err, Place: at, Remedy: "send an object, or an array of objects",
			}
		}
		if bracket, ok := token.(json.Delim); ok {
			err = o.bracket(bracket, at)
		} else {
			err = o.member(token, at)
		}
		if err != nil {
			return err
		}
	}
}

// objects makes rows of the tokens of JSON.
type objects struct {
	writer *Writer
	depth  int
	row    row    // of the object that is open
	column string // name of the member
	isKey  bool   // the next token is the name of a member
}

func (o *objects) bracket(bracket json.Delim, at fault.Place) error {
	switch {
	case bracket == '[' && o.depth == 0, bracket == ']' && o.depth == 1 && o.row.values == nil:
	case bracket == '{' && o.row.values == nil:
		o.row, o.isKey = row{values: map[string]string{}, place: at}, true
	case bracket == '}':
		if err := o.writer.write(o.row); err != nil {
			return err
		}
		o.row = row{}
	default:
		return &fault.Fault{
			Message: "a value of a row is an object or array", Field: o.column, Place: at,
			Remedy: "send rows whose values are texts, numbers or booleans",
		}
	}
	if bracket == '[' || bracket == '{' {
		o.depth++
	} else {
		o.depth--
	}
	return nil
}

// member takes the name or the value of a member.
func (o *objects) member(token json.Token, at fault.Place) error {
	if o.row.values == nil {
		return &fault.Fault{Message: "a row is no object", Place: at, Remedy: "send an object, or an array of objects"}
	}
	if o.isKey {
		o.column = fmt.Sprint(token)
	} else {
		if token == nil {
			token = ""
		}
		if _, has := o.row.values[o.column]; !has {
			o.row.columns = append(o.row.columns, o.column)
		}
		o.row.values[o.column] = fmt.Sprint(token)
	}
	o.isKey = !o.isKey
	return nil
}

// Close writes what is left: the header line too, where there was no row and the columns are known.
func (w *Writer) Close() error {
	if w.columns != nil {
		if err := w.begin(nil); err != nil {
			return err
		}
	}
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return err
	}
	return w.out.Close()
}
