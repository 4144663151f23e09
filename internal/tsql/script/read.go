package script

import (
	"fmt"
	"iter"
	"strings"
)

// deepest is how many files may stand in one another by :r.
const deepest = 32

// Options say how a script is read.
type Options struct {
	// Variables are those of -v, by name. Names have no letter case. The map is not changed.
	Variables map[string]string
	// Environment gives variables that neither -v nor :setvar defines; nil gives none.
	Environment func(name string) (value string, found bool)
	// Read gives the content of a file that :r names, a path relative to the file with the :r. Nil refuses :r.
	Read func(from, name string) (path string, content []byte, err error)
	// StopOnError is -b.
	StopOnError bool
	// KeepVariables is -x: $(name) is text.
	KeepVariables bool
	// Terminator stands for GO: -c. Empty is GO.
	Terminator string
	// Command takes the commands that concern the output and the prompt, in the order of the script. Nil refuses them.
	Command func(Command) error
	// Set is told what :setvar sets; value is empty for a variable that is removed. Its error refuses the value. Nil takes all.
	Set func(name, value string) error
}

// A Command is one of sqlcmd's that concerns the output or the prompt.
type Command struct {
	Name      string // with its colon, in lower case
	Argument  string // without quotes, its variables replaced
	Batch     string // the lines of the batch so far
	Variables map[string]string
}

// reader is the state of a script between its lines.
type reader struct {
	options   Options
	variables map[string]string
	stop      bool
	state     state
	text      strings.Builder
	lines     int // of the batch so far
	origins   []origin
	depth     int
	yield     func(*Batch, error) bool
	done      bool
}

// Batches gives the batches of a script in their order. An error is the last element, behind the batches before it: those
// run, as in sqlcmd. The error is an *Error or comes from Options.Read.
func Batches(file, text string, options Options) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		r := newReader(options, yield)
		if err := r.file(file, text); err != nil {
			if !r.done {
				yield(nil, err)
			}
			return
		}
		if !r.done {
			r.flush(1)
		}
	}
}

func newReader(options Options, yield func(*Batch, error) bool) *reader {
	r := &reader{options: options, variables: map[string]string{}, stop: options.StopOnError, yield: yield}
	for name, value := range options.Variables {
		r.variables[strings.ToUpper(name)] = value
	}
	return r
}

// flush ends a batch.
func (r *reader) flush(count int) { r.give(&Batch{Text: r.text.String(), Count: count}) }

// give yields a batch, and begins the next one.
func (r *reader) give(batch *Batch) {
	batch.StopOnError, batch.origins = r.stop, r.origins
	r.forget()
	if (!batch.isBlank() || batch.Exits) && !r.yield(batch, nil) {
		r.done = true
	}
}

// forget drops the lines of the batch so far.
func (r *reader) forget() {
	r.text.Reset()
	r.lines, r.origins, r.state = 0, nil, state{}
}

// file reads the lines of one file.
func (r *reader) file(name, text string) error {
	number := 0
	for text != "" && !r.done {
		line := text
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			line = text[:end+1]
		}
		text = text[len(line):]
		number++
		if err := r.line(line, Origin{File: name, Line: number}); err != nil {
			return err
		}
	}
	return nil
}

// line takes a command, or adds a line to the batch.
func (r *reader) line(line string, at Origin) error {
	if !r.state.isOpen() {
		handled, err := r.command(line, at)
		if err != nil || handled {
			return err
		}
	}
	r.begin(at)
	return r.append(line, at)
}

// begin keeps from where the first line of a batch came.
func (r *reader) begin(at Origin) {
	if r.lines == 0 {
		r.origins = []origin{{line: 1, from: at}}
	}
}

// append adds a line of SQL to the batch.
func (r *reader) append(line string, at Origin) error {
	if r.options.KeepVariables || !strings.Contains(line, "$(") {
		r.state.read(line)
		r.text.WriteString(line)
	} else if err := r.substitute(line, at); err != nil {
		return err
	}
	r.lines++
	return nil
}

// blank leaves an empty line in the place of a command.
func (r *reader) blank(line string, at Origin) {
	r.begin(at)
	if strings.HasSuffix(line, "\n") {
		r.text.WriteByte('\n')
		r.lines++
	}
}

// substitute adds a line with the values of its variables. In comments $(name) is text.
func (r *reader) substitute(line string, at Origin) error {
	rest := line
	for rest != "" {
		begin := strings.Index(rest, "$(")
		if begin < 0 {
			break
		}
		r.state.read(rest[:begin])
		r.text.WriteString(rest[:begin])
		rest = rest[begin:]
		name, length := variableName(rest)
		if name == "" || r.state.inComment() {
			r.state.read("$(")
			r.text.WriteString("$(")
			rest = rest[2:]
			continue
		}
		value, found := r.value(name)
		if !found {
			return &Error{
				Origin: at, Message: fmt.Sprintf("'%s' scripting variable not defined", name),
				Hint: "define it by -v " + name + "=value or by :setvar " + name + " value, or turn variables off by -x",
			}
		}
		r.state.read(value)
		r.text.WriteString(value)
		rest = rest[length:]
	}
	r.state.read(rest)
	r.text.WriteString(rest)
	return nil
}

// variableName takes the name of $(name) and gives its length with the signs, or an empty name where it is none.
func variableName(text string) (name string, length int) {
	end := strings.IndexByte(text, ')')
	if end < 0 {
		return "", 0
	}
	name = text[2:end]
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c < 0x80 {
			return "", 0
		}
	}
	return name, end + 1
}

func (r *reader) value(name string) (string, bool) {
	if value, found := r.variables[strings.ToUpper(name)]; found {
		return value, true
	}
	if r.options.Environment != nil {
		return r.options.Environment(name)
	}
	return "", false
}
