package verbs

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/csvfile"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/verb"
)

// csvReading is CSV that is taken apart.
type csvReading struct {
	is                       bool
	delimiter, comment, into string
	row, namespace           string
}

func (c *csvReading) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.is, "csv", false, "read CSV whose first line names the columns; no schema is needed")
	flags.StringVar(&c.delimiter, "delimiter", ",", `of CSV, the character between values; \t is a tab`)
	flags.StringVar(&c.comment, "comment", "", "of CSV, the character with which lines begin that are passed over")
	flags.StringVar(&c.into, "into", "xml", "of CSV, the form of the messages: xml or json")
	flags.StringVar(&c.row, "row", "Row", "of CSV, the name of the element of a line")
	flags.StringVar(&c.namespace, "namespace", "", "of CSV, the namespace of the root element")
}

// character reads a flag of one character.
func character(flag, written string) (rune, error) {
	if written == `\t` {
		return '\t', nil
	}
	r, size := utf8.DecodeRuneInString(written)
	if size != len(written) {
		return 0, verb.Usagef("--%s %s: give one character", flag, written)
	}
	return r, nil
}

func (d *disassembly) readCSV(ctx context.Context, body io.Reader, recovery interchange.Recovery, sink *sink, file string) (int, error) {
	c := d.csv
	delimiter, err := character("delimiter", c.delimiter)
	if err != nil {
		return 0, err
	}
	settings := csvfile.Settings{
		Delimiter: delimiter, Charset: d.charset, AsJSON: c.into == "json", Split: d.split, Root: d.root, Row: c.row, Namespace: c.namespace,
		Recover: recovery,
	}
	if c.comment != "" {
		if settings.Comment, err = character("comment", c.comment); err != nil {
			return 0, err
		}
	}
	for flag, name := range map[string]string{"root": d.root, "row": c.row} {
		if name != "" && csvfile.ElementName(name) != name {
			return 0, verb.Usagef("--%s %s: give a name of XML", flag, name)
		}
	}
	sink.isForeign = !settings.AsJSON // values may have line ends
	if settings.AsJSON {
		sink.extension = ".json"
	}
	summary, err := csvfile.Read(ctx, body, settings, sink)
	return sink.finish(fault.InFile(err, file), summary.Disagreement)
}

// csvWriting is CSV that is put together.
type csvWriting struct {
	is, crlf  bool
	delimiter string
	columns   []string
}

func (c *csvWriting) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.is, "csv", false, "write CSV with a header line: a line for each child of a root, or JSON object; no schema is needed")
	flags.StringVar(&c.delimiter, "delimiter", ",", `of CSV, the character between values; \t is a tab`)
	flags.StringSliceVar(&c.columns, "columns", nil, "of CSV, the columns in their order, as A,B (default those of the first line)")
	flags.BoolVar(&c.crlf, "crlf", false, "of CSV, end lines with CR LF")
}

func (a *assembly) writeCSV(out io.Writer, files []string) error {
	delimiter, err := character("delimiter", a.csv.delimiter)
	if err != nil {
		return err
	}
	w, err := csvfile.NewWriter(out, delimiter, a.csv.crlf, a.csv.columns, text.Output{Charset: a.charset, Mark: a.mark})
	if err != nil {
		return err
	}
	for _, name := range files {
		body, err := a.env.open(name)
		if err != nil {
			return err
		}
		write := w.WriteXML
		if strings.EqualFold(filepath.Ext(name), ".json") {
			write = w.WriteJSON
		}
		err = write(body)
		if err = errors.Join(err, body.Close()); err != nil {
			return fault.InFile(err, name)
		}
	}
	return w.Close()
}
