package verbs

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/verb"
)

// An output is where rows and messages go: standard output, standard error or files, as -o, -r, :out and :error say.
type output struct {
	app        *verb.App
	options    *runOptions
	sink       session.Sink
	text       *session.TextSink // nil for JSON
	plain      session.Format    // that nobody sees, where there is no text
	main       io.Writer
	errors     io.Writer // nil for where the rows go
	files      []io.Closer
	isAllApart bool // PRINT goes where errors go
}

func newOutput(a *verb.App, o *runOptions, server string) (*output, error) {
	out := &output{app: a, options: o, main: a.Stdout}
	if o.output != "" {
		file, err := out.open(o.output)
		if err != nil {
			return nil, err
		}
		out.main = file
	} else if o.errorsTo != "" {
		out.errors, out.isAllApart = a.Stderr, o.errorsTo == "1"
	}
	if a.JSON {
		out.sink = session.NewJSONSink(out.main)
		return out, nil
	}
	out.text = session.NewTextSink(out.main)
	out.text.Server, out.text.Format = server, o.format.Format
	out.text.Messages = func(m *fault.Error) io.Writer {
		if m.IsInformational() && !out.isAllApart {
			return nil
		}
		return out.errors
	}
	out.sink = out.text
	return out, nil
}

// format gives the format that sqlcmd's variables change.
func (o *output) format() *session.Format {
	if o.text == nil {
		return &o.plain
	}
	return &o.text.Format
}

// open makes a file, in UTF-16 with -u.
func (o *output) open(path string) (io.Writer, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("writing to %s: %w", path, err)
	}
	o.files = append(o.files, file)
	if !o.options.isUnicode {
		return file, nil
	}
	encoded := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Writer(file)
	if closer, is := encoded.(io.Closer); is {
		o.files = append(o.files, closer)
	}
	return encoded, nil
}

// close closes the files, the last one first.
func (o *output) close() error {
	var first error
	if o.text != nil {
		first = o.text.Flush()
	}
	for _, file := range slices.Backward(o.files) {
		if err := file.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// say writes a line of the client's own.
func (o *output) say(line string) error {
	if o.text == nil {
		_, err := fmt.Fprintln(o.app.Stderr, line)
		return err
	}
	if err := o.text.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o.main, line)
	return err
}

// echo writes a batch before it runs.
func (o *output) echo(text string) error { return o.say(strings.TrimSuffix(text, "\n")) }

// to gives the place that :out and :error name.
func (o *output) to(place string) (io.Writer, error) {
	switch strings.ToUpper(place) {
	case "STDOUT":
		return o.app.Stdout, nil
	case "STDERR":
		return o.app.Stderr, nil
	}
	return o.open(place)
}

const help = `GO [count]             run the batch, count times
:r FILE                read lines and commands from a file
:setvar NAME [VALUE]   set a variable, or remove it
:listvar               list the variables
:on error exit|ignore  stop at an error or go on
:out FILE|STDOUT|STDERR    where rows go
:error FILE|STDOUT|STDERR  where errors go
:xml on|off            values alone, for FOR XML and FOR JSON
:list                  show the batch so far
:reset                 drop the batch so far
:exit [(query)]        leave; with a query, run the batch and leave with its value
:quit                  leave
`

// command takes the commands of a script that concern the output.
func (c *client) command(command script.Command) error {
	o := c.output
	switch command.Name {
	case ":help":
		return o.say(strings.TrimSuffix(help, "\n"))
	case ":list":
		return o.say(strings.TrimSuffix(command.Batch, "\n"))
	case ":listvar":
		var list bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(command.Variables)) {
			fmt.Fprintf(&list, "%s = \"%s\"\n", name, command.Variables[name])
		}
		return o.say(strings.TrimSuffix(list.String(), "\n"))
	case ":xml":
		o.format().IsStream = strings.EqualFold(command.Argument, "on")
		if !o.format().IsStream && !strings.EqualFold(command.Argument, "off") {
			return verb.Usagef("%s: write :xml on or :xml off", command.Argument)
		}
		return nil
	}
	if o.text == nil {
		return verb.Usagef("it does not go with --json, where all is one stream")
	}
	place, err := o.to(command.Argument)
	if err != nil {
		return err
	}
	if command.Name == ":error" {
		o.errors = place
		return nil
	}
	if o.errors == nil { // what has no place of its own stays where it was
		o.errors = o.main
	}
	o.main = place
	return o.text.Redirect(place)
}
