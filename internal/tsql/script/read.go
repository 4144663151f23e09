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
		r := &reader{options: options, variables: map[string]string{}, stop: options.StopOnError, yield: yield}
		for name, value := range options.Variables {
			r.variables[strings.ToUpper(name)] = value
		}
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

// flush ends a batch.
func (r *reader) flush(count int) {
	batch := &Batch{Text: r.text.String(), Count: count, StopOnError: r.stop, origins: r.origins}
	r.text.Reset()
	r.lines, r.origins, r.state = 0, nil, state{}
	if !batch.isBlank() && !r.yield(batch, nil) {
		r.done = true
	}
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
		at := Origin{File: name, Line: number}
		if !r.state.isOpen() {
			handled, err := r.command(line, at)
			if err != nil {
				return err
			}
			if handled {
				continue
			}
		}
		r.begin(at)
		if err := r.append(line, at); err != nil {
			return err
		}
	}
	return nil
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
