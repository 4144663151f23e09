package verbs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xsd"
	"github.com/parley-broker/parley/internal/verb"
)

type assembly struct {
	env                                      environment
	schema, envelope, root, out, charset     string
	header, headerData, trailer, trailerData string
	mark, declaration, truncate              bool
	csv                                      csvWriting
}

func newAssembleCommand(env environment) *cobra.Command {
	a := &assembly{env: env}
	cmd := &cobra.Command{
		Use:   "assemble --schema S.xsd | --csv FILE...",
		Short: "Put XML messages together into one file, by a schema and without a database",
		Long: `Put XML messages together into one file: a flat file, if the schema has flat file annotations, or XML in the envelope that
--envelope describes. With --csv messages of XML, and of JSON in .json files, become lines under a header line. FILE is - for standard
input. The file goes to standard output, or where --out says; one that could not be written to its end is removed.`,
		Example: `  parley flow assemble --schema Orders.xsd messages/1.xml messages/2.xml > orders.txt
  parley flow assemble --schema Orders.xsd --header Header.xsd --header-data header.xml --charset windows-1252 --out orders.txt order.xml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.run(func() (int, error) { return 0, a.run(cmd.Context(), args) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.schema, "schema", "", "XML schema of the messages")
	flags.StringVar(&a.envelope, "envelope", "", "schema of the envelope that is to hold XML messages")
	flags.StringVar(&a.root, "root", "", "root element of the schema, where it has several")
	flags.StringVar(&a.header, "header", "", "flat file schema of the header")
	flags.StringVar(&a.headerData, "header-data", "", "XML document of the header")
	flags.StringVar(&a.trailer, "trailer", "", "flat file schema of the trailer")
	flags.StringVar(&a.trailerData, "trailer-data", "", "XML document of the trailer")
	flags.StringVar(&a.out, "out", "", "file to write (default standard output)")
	flags.StringVar(&a.charset, "charset", "", "charset or code page of the file (default that of the schema, then UTF-8)")
	flags.BoolVar(&a.mark, "mark", false, "begin the file with a byte-order mark")
	flags.BoolVar(&a.declaration, "declaration", false, "begin XML with a declaration")
	flags.BoolVar(&a.truncate, "truncate", false, "cut values that are too long for their positions, as BizTalk does")
	a.csv.add(cmd)
	return cmd
}

func (a *assembly) run(ctx context.Context, files []string) (err error) {
	switch {
	case a.schema == "" && !a.csv.is:
		return verb.Usagef("give --schema, or --csv")
	case a.csv.is && (a.schema != "" || a.envelope != "" || a.header != "" || a.trailer != ""):
		return verb.Usagef("--csv needs no schema: leave --schema, --envelope, --header and --trailer out")
	case (a.header == "") != (a.headerData == ""), (a.trailer == "") != (a.trailerData == ""):
		return verb.Usagef("a header or trailer needs its schema and its data: give both")
	}
	var source *xsd.Schema
	if !a.csv.is {
		if source, err = xsd.Load(a.schema); err != nil {
			return err
		}
	}
	out := a.env.Stdout
	if a.out != "" {
		file, err := os.Create(a.out)
		if err != nil {
			return &fault.Fault{Message: err.Error(), Err: err, Remedy: "name a file that can be written"}
		}
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				err = errors.Join(err, os.Remove(a.out))
			}
		}()
		out = file
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	switch {
	case a.csv.is:
		err = a.writeCSV(buffered, files)
	case a.envelope == "" && flatfile.IsFlatFile(source):
		err = a.flatFile(ctx, source, buffered, files)
	default:
		err = a.xml(buffered, files)
	}
	if err != nil {
		return err
	}
	return buffered.Flush()
}

func (a *assembly) flatFile(ctx context.Context, source *xsd.Schema, out io.Writer, files []string) error {
	schema, err := flatfile.Compile(source, flatfile.Settings{Root: a.root})
	if err != nil {
		return err
	}
	assembler, err := schema.NewAssembler(out, flatfile.WriteSettings{Charset: a.charset, Mark: a.mark, Truncate: a.truncate})
	if err != nil {
		return err
	}
	write := func(schema *flatfile.Schema, name string) error {
		body, err := a.env.open(name)
		if err != nil {
			return err
		}
		defer body.Close()
		return fault.InFile(assembler.Write(ctx, schema, body), name)
	}
	aside := func(schema, data string) error {
		if schema == "" {
			return nil
		}
		compiled, err := flatfile.Load(schema, flatfile.Settings{})
		if err != nil {
			return err
		}
		return write(compiled, data)
	}
	if err := aside(a.header, a.headerData); err != nil {
		return err
	}
	for _, name := range files {
		if err := write(schema, name); err != nil {
			return err
		}
	}
	if err := aside(a.trailer, a.trailerData); err != nil {
		return err
	}
	return assembler.Close()
}

func (a *assembly) xml(out io.Writer, files []string) error {
	var wrapping *envelope.Envelope
	if a.envelope != "" {
		source, err := xsd.Load(a.envelope)
		if err != nil {
			return err
		}
		all, err := envelope.FromSchema(source)
		if err != nil {
			return err
		}
		wrapping = &all[0]
	} else if len(files) > 1 {
		return verb.Usagef("several XML messages need an envelope: give --envelope")
	}
	wrapper, err := envelope.NewWrapper(out, wrapping, text.Output{Charset: a.charset, Mark: a.mark, Declaration: a.declaration})
	if err != nil {
		return err
	}
	for _, name := range files {
		body, err := a.env.open(name)
		if err != nil {
			return err
		}
		err = wrapper.Add(body, "", nil)
		if err = errors.Join(err, body.Close()); err != nil {
			return fault.InFile(err, name)
		}
	}
	return wrapper.Close()
}
