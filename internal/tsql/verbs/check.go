package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/verb"
)

// checkedPlace is where a construct stands.
type checkedPlace struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// checkedConstruct is a construct of a file; a stable format.
type checkedConstruct struct {
	Name   string         `json:"construct"`
	State  check.State    `json:"state"`
	Reason string         `json:"reason,omitempty"`
	Places []checkedPlace `json:"places"`
}

// checkedFault is a batch that is refused, or a fault of the script around the batches; a stable format.
type checkedFault struct {
	checkedPlace
	Number   int    `json:"number,omitempty"`
	Message  string `json:"message"`
	Expected string `json:"expected,omitempty"`
}

// checkedFile is all that --check says of a file; a stable format.
type checkedFile struct {
	File       string             `json:"file"`
	Encoding   string             `json:"encoding"`
	Batches    int                `json:"batches"`
	Faults     []checkedFault     `json:"faults"`
	Constructs []checkedConstruct `json:"constructs"`
	parsed     []parsedBatch
}

// parsedBatch is a batch that has no fault.
type parsedBatch struct {
	batch *script.Batch
	tree  *ast.Batch
}

// checkFiles lists what files of T-SQL use and what is refused, and runs none of it. The exit code is 1 where something is
// refused or does not run yet.
func checkFiles(a *verb.App, files []string, options script.Options) error {
	if len(files) == 0 {
		return verb.Usagef("--check needs the files to check")
	}
	checker := check.New()
	all := make([]checkedFile, 0, len(files))
	for _, name := range files {
		content, err := readScript(a, name)
		if err != nil {
			return err
		}
		file := parseFile(name, content, options)
		for _, batch := range file.parsed {
			checker.Define(batch.tree)
		}
		all = append(all, file)
	}
	good := true
	for i := range all {
		all[i].use(checker)
		good = good && all[i].isGood()
	}
	if a.JSON {
		if err := verb.EncodeJSON(a.Stdout, all); err != nil {
			return err
		}
	} else {
		for i := range all {
			all[i].write(a.Stdout)
		}
	}
	if !good {
		return verb.ExitWith(nil, 1)
	}
	return nil
}

// readScript reads a file, or standard input for -.
func readScript(a *verb.App, name string) (content []byte, err error) {
	if name == "-" {
		content, err = io.ReadAll(a.Stdin)
	} else {
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	return content, nil
}

// parseFile reads the batches of a file, and finds its faults.
func parseFile(name string, content []byte, options script.Options) checkedFile {
	text, encoding := script.Decode(content)
	file := checkedFile{File: name, Encoding: encoding, Faults: []checkedFault{}, Constructs: []checkedConstruct{}}
	quotes := parser.Options{} // as a session of the runner begins
	for batch, err := range script.Batches(name, text, options) {
		if err != nil {
			file.Faults = append(file.Faults, faultOfScript(name, err))
			break
		}
		file.Batches++
		tree, err := parser.Parse(batch.Text, quotes)
		if err != nil {
			file.Faults = append(file.Faults, faultOfBatch(batch, err))
			continue
		}
		quotes.StringsInDoubleQuotes = quotesBehind(tree, quotes.StringsInDoubleQuotes)
		file.parsed = append(file.parsed, parsedBatch{batch, tree})
	}
	return file
}

// use lists the constructs of the batches, those first that stop the file.
func (f *checkedFile) use(checker *check.Checker) {
	for _, parsed := range f.parsed {
		for _, use := range checker.Batch(parsed.tree) {
			f.add(use, placeIn(parsed.batch, use.Line, use.Column))
		}
	}
	slices.SortStableFunc(f.Constructs, func(a, b checkedConstruct) int { return cmp.Compare(rank(a.State), rank(b.State)) })
}

// quotesBehind gives the setting of QUOTED_IDENTIFIER behind a batch: true where "text" is a string.
func quotesBehind(batch *ast.Batch, quotes bool) bool {
	for _, statement := range batch.Statements {
		if set, is := statement.(*ast.SetOptions); is && slices.Contains(set.Options, "QUOTED_IDENTIFIER") {
			quotes = !set.On
		}
	}
	return quotes
}

func placeIn(batch *script.Batch, line, column int) checkedPlace {
	origin := batch.Origin(line)
	return checkedPlace{File: origin.File, Line: origin.Line, Column: column}
}

func faultOfScript(name string, err error) checkedFault {
	if fault, is := errors.AsType[*script.Error](err); is {
		at := checkedPlace{File: fault.File, Line: fault.Line, Column: 1}
		return checkedFault{checkedPlace: at, Message: fault.Message, Expected: fault.Hint}
	}
	return checkedFault{checkedPlace: checkedPlace{File: name, Line: 1, Column: 1}, Message: err.Error()}
}

func faultOfBatch(batch *script.Batch, err error) checkedFault {
	fault, is := errors.AsType[*parser.Error](err)
	if !is {
		return checkedFault{checkedPlace: placeIn(batch, 1, 1), Message: err.Error()}
	}
	return checkedFault{
		checkedPlace: placeIn(batch, fault.Line, fault.Column), Number: fault.Number, Message: fault.Message, Expected: fault.Expected,
	}
}

// rank puts first what stops a file.
func rank(state check.State) int {
	return slices.Index([]check.State{check.Refused, check.Later, check.Informs, check.Runs}, state)
}

func (f *checkedFile) add(use check.Use, place checkedPlace) {
	for i := range f.Constructs {
		if c := &f.Constructs[i]; c.Name == use.Name && c.Reason == use.Reason {
			c.Places = append(c.Places, place)
			return
		}
	}
	f.Constructs = append(f.Constructs, checkedConstruct{Name: use.Name, State: use.State, Reason: use.Reason, Places: []checkedPlace{place}})
}

func (f *checkedFile) isGood() bool {
	return len(f.Faults) == 0 && !slices.ContainsFunc(f.Constructs, func(c checkedConstruct) bool {
		return c.State == check.Refused || c.State == check.Later
	})
}

// write prints a file for people: faults, then each construct with its reason and its lines.
func (f *checkedFile) write(out io.Writer) {
	fmt.Fprintf(out, "%s: %s, batches: %d\n", f.File, f.Encoding, f.Batches)
	for _, fault := range f.Faults {
		number := ""
		if fault.Number != 0 {
			number = fmt.Sprintf("error %d: ", fault.Number)
		}
		fmt.Fprintf(out, "  %-8s %s%s%s\n", "fault", place(f.File, fault.checkedPlace), number, fault.Message)
		if fault.Expected != "" {
			fmt.Fprintf(out, "  %-8s   expected: %s\n", "", fault.Expected)
		}
	}
	for _, c := range f.Constructs {
		reason := ""
		if c.Reason != "" {
			reason = ": " + c.Reason
		}
		fmt.Fprintf(out, "  %-8s %s%s%s\n", c.State, c.Name, reason, lines(f.File, c.Places))
	}
}

// place names a line, with its file where that is another.
func place(file string, at checkedPlace) string {
	if at.File != file {
		return fmt.Sprintf("%s:%d:%d: ", at.File, at.Line, at.Column)
	}
	return fmt.Sprintf("%d:%d: ", at.Line, at.Column)
}

// mostLines is how many places of one construct people are shown; programs get all.
const mostLines = 10

func lines(file string, places []checkedPlace) string {
	var all []string
	for _, at := range places {
		text := fmt.Sprint(at.Line)
		if at.File != file {
			text = fmt.Sprintf("%s:%d", at.File, at.Line)
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	word := "line"
	if len(all) > 1 {
		word = "lines"
	}
	more := ""
	if len(all) > mostLines {
		more = fmt.Sprintf(" and %d more", len(all)-mostLines)
		all = all[:mostLines]
	}
	return fmt.Sprintf(" (%s %s%s)", word, strings.Join(all, ", "), more)
}
