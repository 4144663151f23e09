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

func (w *Writer) write(r row) error {
	if !w.isBegun {
		w.isBegun = true
		if w.columns == nil {
			w.columns = r.columns
		}
		w.place = map[string]int{}
		for i, column := range w.columns {
			w.place[column] = i
		}
		if err := w.csv.Write(w.columns); err != nil {
			return err
		}
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
				return &fault.Fault{Message: fmt.Sprintf("element %s below a value", s.Name().Local), Place: s.Place(), Remedy: "send rows whose values are texts"}
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
					return &fault.Fault{Message: fmt.Sprintf("column %q is twice in a row", column), Field: column, Place: r.place, Remedy: "send each value once"}
				}
				r.columns = append(r.columns, column)
				r.values[column] = string(value)
			}
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
	depth := 0
	var r row
	var column string
	isKey := false
	for {
		at := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		if err != nil {
			return &fault.Fault{Message: "this is no JSON: " + err.Error(), Err: err, Place: fault.Place{Byte: at}, Remedy: "send an object, or an array of objects"}
		}
		switch token := token.(type) {
		case json.Delim:
			switch {
			case token == '[' && depth == 0, token == ']' && depth == 1 && r.values == nil:
			case token == '{' && r.values == nil:
				r, isKey = row{values: map[string]string{}, place: fault.Place{Byte: at}}, true
			case token == '}':
				if err := w.write(r); err != nil {
					return err
				}
				r = row{}
			default:
				return &fault.Fault{Message: "a value of a row is an object or array", Field: column, Place: fault.Place{Byte: at}, Remedy: "send rows whose values are texts, numbers or booleans"}
			}
			if token == '[' || token == '{' {
				depth++
			} else {
				depth--
			}
		default:
			if r.values == nil {
				return &fault.Fault{Message: "a row is no object", Place: fault.Place{Byte: at}, Remedy: "send an object, or an array of objects"}
			}
			if isKey {
				column = fmt.Sprint(token)
			} else {
				if token == nil {
					token = ""
				}
				if _, has := r.values[column]; !has {
					r.columns = append(r.columns, column)
				}
				r.values[column] = fmt.Sprint(token)
			}
			isKey = !isKey
		}
	}
}

// Close writes what is left.
func (w *Writer) Close() error {
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return err
	}
	return w.out.Close()
}
