package verbs

import (
	"context"
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
}

func newDisassembleCommand(env environment) *cobra.Command {
	d := &disassembly{env: env}
	cmd := &cobra.Command{
		Use:   "disassemble --schema S.xsd [--envelope E.xsd] [--out DIR] FILE",
		Short: "Take a file apart into its messages, by a schema and without a database",
		Long: `Take a file apart into its messages. A schema with flat file annotations reads a flat file into XML; another XML schema takes
XML messages out of the envelope that --envelope describes; a JSON Schema (.json) holds JSON against it. FILE is - for standard input.

The messages go to standard output, one document a line, or with --out into DIR/1.xml and on. Exit code 0: all were good; 1: the file
could not be read, and nothing is left in DIR; 2: the command line is not understood; 3: with --recoverable, bad parts were reported and
the good messages written.`,
		Example: `  parley flow disassemble --schema Orders.xsd --newline any orders.txt
  parley flow disassemble --schema Orders.xsd --header Header.xsd --recoverable --out messages orders.txt`,
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
	flags.BoolVar(&d.validate, "validate", false, "hold values against their types and restrictions")
	flags.BoolVar(&d.requireFinalDelimiter, "require-final-delimiter", false, "refuse a file whose last delimiter is missing")
	flags.BoolVar(&d.split, "split", false, "of a JSON array, make each member a message")
	flags.BoolVar(&d.format, "assert-format", false, "make format a rule of a JSON Schema and not only a note")
	return cmd
}

func (d *disassembly) run(ctx context.Context, file string) (exit int, err error) {
	recovery := interchange.Recovery(d.recoverable)
	switch {
	case d.schema == "":
		return 0, verb.Usagef("give --schema")
	case d.newline != "schema" && d.newline != "any":
		return 0, verb.Usagef("--newline %s: give schema or any", d.newline)
	case recovery != interchange.Nothing && recovery != interchange.Messages && recovery != interchange.Records:
		return 0, verb.Usagef("--recoverable %s: give messages or records", d.recoverable)
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
	settings, around, err := d.xml(schema, recovery)
	if err != nil {
		return 0, err
	}
	settings.Progress = sink.progress.bytes
	sink.isForeign = true
	var summary envelope.Summary
	if around != nil && flatfile.IsFlatFile(around) {
		summary, err = d.flatEnvelope(ctx, around, body, settings, sink)
	} else {
		summary, err = envelope.Split(ctx, body, settings, sink)
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
