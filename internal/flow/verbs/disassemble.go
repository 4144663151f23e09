package verbs

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xsd"
	"github.com/parley-broker/parley/internal/verb"
)

type disassembly struct {
	env                                            environment
	schema, envelope, header, trailer, root        string
	out, newline, charset, recoverable             string
	validate, requireFinalDelimiter, split, format bool
	csv                                            csvReading
	trial                                          trial
}

func newDisassembleCommand(env environment) *cobra.Command {
	d := &disassembly{env: env, trial: trial{application: application{env: env}}}
	cmd := &cobra.Command{
		Use:   "disassemble --schema S.xsd | --csv | --definitions DIR --pipeline NAME [--envelope E.xsd] [--out DIR] FILE",
		Short: "Take a file apart into its messages, by a schema and without a database",
		Long: `Take a file apart into its messages. A schema with flat file annotations reads a flat file into XML; another XML schema takes
XML messages out of the envelope that --envelope describes; a JSON Schema (.json) holds JSON against it. With --csv the file has a header
line, and needs no schema. With --definitions the file goes through a receive pipeline as a host would run it: the one that --pipeline
names, or that of a receive location; with --json each message has its type and properties. FILE is - for standard input.

The messages go to standard output, one document a line, or with --out into DIR/1.xml and on. Exit code 0: all were good; 1: the file
could not be read, and nothing is left in DIR; 2: the command line is not understood; 3: with --recoverable, bad parts were reported and
the good messages written.`,
		Example: `  parley flow disassemble --schema Orders.xsd --newline any orders.txt
  parley flow disassemble --csv --delimiter ';' --split --into json orders.csv
  parley flow disassemble --schema Orders.xsd --header Header.xsd --recoverable --out messages orders.txt
  parley flow disassemble --definitions flow --location "Orders folder" --json orders.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.run(func() (int, error) { return d.run(cmd.Context(), args[0]) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&d.schema, "schema", "", "schema of the messages: XML Schema, or JSON Schema in a .json file")
	flags.StringVar(&d.envelope, "envelope", "", "schema of the envelope that holds the messages")
	flags.StringVar(&d.header, "header", "", "flat file schema of what stands before the messages")
	flags.StringVar(&d.trailer, "trailer", "", "flat file schema of what stands behind the messages")
	flags.StringVar(&d.root, "root", "", "root element of the schema, where it has several")
	flags.StringVar(&d.out, "out", "", "folder for the messages, made if it is not there")
	flags.StringVar(&d.newline, "newline", "schema", "line ends: schema, as the schema has them, or any, where CR, LF and CR LF are the same")
	flags.StringVar(&d.charset, "charset", "", "charset or code page of the file (default that of the schema, then UTF-8)")
	flags.StringVar(&d.recoverable, "recoverable", "",
		"go on behind bad parts: messages, or records, which leaves bad records out of a message")
	flags.Lookup("recoverable").NoOptDefVal = string(interchange.Messages)
	flags.BoolVar(&d.validate, "validate", false, "hold messages against the types and restrictions of the schema, those of XML as a whole")
	flags.BoolVar(&d.requireFinalDelimiter, "require-final-delimiter", false, "refuse a file whose last delimiter is missing")
	flags.BoolVar(&d.split, "split", false, "make each member of a JSON array, or each line of CSV, a message")
	flags.BoolVar(&d.format, "assert-format", false, "make format a rule of a JSON Schema and not only a note")
	d.csv.add(cmd)
	d.trial.add(cmd)
	// Settings of components are in the definitions.
	for _, own := range []string{"schema", "csv", "envelope", "header", "trailer", "recoverable", "validate", "charset"} {
		cmd.MarkFlagsMutuallyExclusive("definitions", own)
	}
	return cmd
}

// check refuses flags that do not go together.
func (d *disassembly) check(recovery interchange.Recovery) error {
	switch {
	case d.schema == "" && !d.csv.is:
		return verb.Usagef("give --schema, --csv, or --definitions with --pipeline")
	case d.csv.is && (d.schema != "" || d.envelope != "" || d.header != "" || d.trailer != "" || d.validate):
		return verb.Usagef("--csv needs no schema: leave --schema, --envelope, --header, --trailer and --validate out")
	case d.csv.into != "xml" && d.csv.into != "json":
		return verb.Usagef("--into %s: give xml or json", d.csv.into)
	case d.newline != "schema" && d.newline != "any":
		return verb.Usagef("--newline %s: give schema or any", d.newline)
	case recovery != interchange.Nothing && recovery != interchange.Messages && recovery != interchange.Records:
		return verb.Usagef("--recoverable %s: give messages or records", d.recoverable)
	}
	return nil
}

func (d *disassembly) run(ctx context.Context, file string) (exit int, err error) {
	if d.trial.definitions != "" {
		return d.trial.run(ctx, file, d.out)
	}
	recovery := interchange.Recovery(d.recoverable)
	if err := d.check(recovery); err != nil {
		return 0, err
	}
	sink, err := newSink(d.env, d.out, file)
	if err != nil {
		return 0, err
	}
	body, err := d.env.open(file)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if d.csv.is {
		return d.readCSV(ctx, body, recovery, sink, file)
	}
	if strings.EqualFold(filepath.Ext(d.schema), ".json") {
		schema, err := jsonbody.Load(d.schema, d.format)
		if err != nil {
			return 0, err
		}
		sink.extension = ".json"
		settings := jsonbody.Settings{Schema: schema, Split: d.split, Charset: d.charset, Recover: recovery}
		summary, err := jsonbody.Split(ctx, body, settings, sink)
		return sink.finish(fault.InFile(err, file), summary.Disagreement)
	}
	schema, err := xsd.Load(d.schema)
	if err != nil {
		return 0, err
	}
	if d.envelope == "" && flatfile.IsFlatFile(schema) {
		compiled, settings, err := d.flatFile(schema, recovery, d.root)
		if err != nil {
			return 0, err
		}
		settings.Progress = sink.progress.bytes
		summary, err := compiled.Disassemble(ctx, body, settings, sink)
		if err == nil {
			err = sink.aside(summary.Header, summary.Trailer)
		}
		return sink.finish(fault.InFile(err, file), summary.Disagreement)
	}
	return d.readXML(ctx, schema, body, recovery, sink, file)
}

// readXML takes messages out of their envelope, and with --validate holds them against their schema.
func (d *disassembly) readXML(
	ctx context.Context, schema *xsd.Schema, body io.Reader, recovery interchange.Recovery, sink *sink, file string,
) (exit int, err error) {
	settings, around, err := d.xml(schema, recovery)
	if err != nil {
		return 0, err
	}
	settings.Progress = sink.progress.bytes
	sink.isForeign = true
	var target interchange.Sink = sink
	if d.validate {
		v, err := d.env.newValidating(schema, sink, recovery != interchange.Nothing)
		if err != nil {
			return 0, err
		}
		target, settings.Watcher = v, v
	}
	var summary envelope.Summary
	if around != nil && flatfile.IsFlatFile(around) {
		summary, err = d.flatEnvelope(ctx, around, body, settings, target)
	} else {
		summary, err = envelope.Split(ctx, body, settings, target)
	}
	return sink.finish(fault.InFile(err, file), summary.Disagreement)
}

func (d *disassembly) flatFile(
	source *xsd.Schema, recovery interchange.Recovery, root string,
) (*flatfile.Schema, flatfile.ReadSettings, error) {
	compile := flatfile.Settings{Root: root, AnyNewline: d.newline == "any"}
	settings := flatfile.ReadSettings{
		Charset: d.charset, Validate: d.validate, Recover: recovery, RequireFinalDelimiter: d.requireFinalDelimiter,
	}
	schema, err := flatfile.Compile(source, compile)
	if err != nil {
		return nil, settings, err
	}
	compile.Root = ""
	for name, to := range map[string]**flatfile.Schema{d.header: &settings.Header, d.trailer: &settings.Trailer} {
		if name == "" {
			continue
		}
		if *to, err = flatfile.Load(name, compile); err != nil {
			return nil, settings, err
		}
	}
	return schema, settings, nil
}

// xml gives the disassembler of XML messages, with the schema of their envelope, if there is one.
func (d *disassembly) xml(schema *xsd.Schema, recovery interchange.Recovery) (envelope.Settings, *xsd.Schema, error) {
	settings := envelope.Settings{Charset: d.charset, Recover: recovery}
	for _, root := range schema.Elements {
		if d.root == "" || root.Local == d.root {
			settings.Documents = append(settings.Documents, typing.TypeOf(root.Space, root.Local))
		}
	}
	if d.envelope == "" {
		return settings, nil, nil
	}
	around, err := xsd.Load(d.envelope)
	if err != nil {
		return settings, nil, err
	}
	settings.Envelopes, err = envelope.FromSchema(around)
	return settings, around, err
}
