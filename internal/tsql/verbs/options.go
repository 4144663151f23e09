package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/verbs/trust"
	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/verb"
)

// runOptions are the flags of a run. They have the letters of sqlcmd, but for -f, which is its -i.
type runOptions struct {
	files, inputs  []string
	variables      []string
	query, first   string // of -Q and -q
	stops          bool
	checks         bool
	format         formatOptions
	exitSeverity   int
	errorsTo       string // of -r: 0 or 1
	output         string
	isUnicode      bool
	echoes         bool
	keepsVariables bool
	isClosed       bool // -X: no environment
	terminator     string
	database       string
	workstation    string
	masterKey      trust.MasterKeyFlag
	timeout        int // seconds; 0 for none
}

// formatOptions are the flags of the output.
type formatOptions struct{ session.Format }

func newFormat() formatOptions { return formatOptions{session.DefaultFormat()} }

// foreign are letters of sqlcmd that Parley has another way for, each with that way.
var foreign = map[string]string{
	"S": "name the server by --dsn, PARLEY_DSN or DATABASE_URL", "U": "name the role by --dsn",
	"P": "give the password by --dsn or PGPASSWORD",
	"E": "name the role by --dsn",
	"L": "there is no list of servers", "p": "there are no figures of the network",
}

// define adds the flags to the command. The letter h is sqlcmd's, so help has none.
func (o *runOptions) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Bool("help", false, "help for tsql")
	flags.StringArrayVarP(&o.files, "file", "f", nil, "run this script; - is standard input")
	flags.StringSliceVarP(&o.inputs, "input", "i", nil, "run these scripts, as sqlcmd names them: a.sql,b.sql")
	flags.StringVarP(&o.query, "query", "Q", "", "run this batch, and no other")
	flags.StringVarP(&o.first, "first", "q", "", "run this batch before the prompt or the script from standard input")
	flags.StringArrayVarP(&o.variables, "variable", "v", nil, "NAME=VALUE of $(NAME) in the script")
	flags.BoolVarP(&o.keepsVariables, "no-variables", "x", false, "$(NAME) is text")
	flags.BoolVarP(&o.isClosed, "no-environment", "X", false, "no variable comes from the environment")
	flags.StringVarP(&o.database, "database", "d", "", "begin in this database")
	flags.StringVarP(&o.workstation, "workstation", "H", "", "what HOST_NAME() gives")
	flags.StringVarP(&o.terminator, "terminator", "c", "", "the word that ends a batch (default GO)")
	flags.IntVarP(&o.timeout, "timeout", "t", 0, "seconds after which a batch is cancelled")
	flags.BoolP("quoted-identifier", "I", true, "double quotes are those of names; for Parley they always are")
	flags.BoolVarP(&o.stops, "stop-on-error", "b", false, "stop at the first batch with an error, with exit code 1")
	flags.IntVarP(&o.exitSeverity, "exit-severity", "V", 0, "the exit code is the greatest severity of the errors, from this one on")
	flags.StringVarP(&o.output, "output", "o", "", "write to this file")
	flags.BoolVarP(&o.isUnicode, "unicode", "u", false, "write files in UTF-16")
	flags.StringVarP(&o.errorsTo, "errors-to-stderr", "r", "", "0: errors go to standard error; 1: all messages do")
	flags.BoolVarP(&o.echoes, "echo", "e", false, "write each batch before it runs")
	flags.IntVarP(&o.format.ErrorLevel, "error-level", "m", 0, "the least severity of messages that are shown; -1 shows all with headers")
	flags.IntVarP(&o.format.HeadingRows, "headings", "h", 0, "rows between two headings; 0 for one heading, -1 for none")
	flags.StringVarP(&o.format.Separator, "separator", "s", " ", "the character between columns")
	flags.BoolVarP(&o.format.IsTrimmed, "trim", "W", false, "no blanks at the end of columns")
	flags.IntVarP(&o.format.Width, "width", "w", 0, "characters of a line, 9 to 65535 (default no end)")
	flags.IntVarP(&o.format.MaxVariable, "max-width", "y", o.format.MaxVariable, "characters of (max) types and xml; 0 for all")
	flags.IntVarP(&o.format.MaxFixed, "fixed-width", "Y", 0, "characters of other text and binary types; 0 for all")
	flags.IntVarP(&o.format.Control, "control", "k", 0, "control characters: 1 a blank for each, 2 a blank for several")
	o.masterKey.AddFlag(cmd)
	flags.BoolVar(&o.checks, "check", false, "list what the files use and what is refused, and run nothing")
	for letter := range foreign {
		if letter == "S" || letter == "U" || letter == "P" {
			flags.StringP("sqlcmd-"+letter, letter, "", "")
		} else {
			flags.BoolP("sqlcmd-"+letter, letter, false, "")
		}
		flags.Lookup("sqlcmd-" + letter).Hidden = true
	}
}

// validate refuses values that sqlcmd refuses.
func (o *runOptions) validate(isGiven func(flag string) bool) error {
	for letter, way := range foreign {
		if isGiven("sqlcmd-" + letter) {
			return verb.WithHint(verb.Usagef("-%s of sqlcmd is not there", letter), way)
		}
	}
	for _, v := range o.variables {
		if name, _, found := strings.Cut(v, "="); !found || name == "" {
			return verb.Usagef("-v %q is no NAME=VALUE", v)
		}
	}
	hasFiles := len(o.files)+len(o.inputs) > 0
	o.files = append(o.files, o.inputs...)
	switch {
	case hasFiles && (isGiven("query") || isGiven("first")):
		return verb.Usagef("-Q and -q do not go with -f and -i: give one of them")
	case isGiven("query") && isGiven("first"):
		return verb.Usagef("-Q and -q exclude one another")
	case o.format.HeadingRows < -1:
		return verb.Usagef("-h %d: give the rows between two headings, 0 or -1", o.format.HeadingRows)
	case utf8.RuneCountInString(o.format.Separator) != 1:
		return verb.Usagef("-s %q: give one character", o.format.Separator)
	case isGiven("width") && (o.format.Width < 9 || o.format.Width > 65535):
		return verb.Usagef("-w %d: give 9 to 65535", o.format.Width)
	case o.format.IsTrimmed && (isGiven("max-width") || isGiven("fixed-width")):
		return verb.Usagef("-W does not go with -y and -Y")
	case o.format.MaxVariable < 0 || o.format.MaxFixed < 0:
		return verb.Usagef("-y and -Y take a number of characters, or 0 for all")
	case o.format.Control < 0 || o.format.Control > 2:
		return verb.Usagef("-k %d: give 1 or 2", o.format.Control)
	case o.errorsTo != "" && o.errorsTo != "0" && o.errorsTo != "1":
		return verb.Usagef("-r %s: give 0 or 1", o.errorsTo)
	case isGiven("timeout") && (o.timeout < 1 || o.timeout > 65534):
		return verb.Usagef("-t %d: give 1 to 65534 seconds", o.timeout)
	case isGiven("exit-severity") && (o.exitSeverity < 0 || o.exitSeverity > 25):
		return verb.Usagef("-V %d: give a severity from 0 to 25", o.exitSeverity)
	}
	return nil
}

// ofScripts gives the flags in the form in which scripts are read.
func (o *runOptions) ofScripts() script.Options {
	variables := map[string]string{}
	for _, v := range o.variables {
		name, value, _ := strings.Cut(v, "=")
		variables[name] = strings.Trim(value, "\"")
	}
	options := script.Options{
		Variables: variables, Read: readFile, StopOnError: o.stops, KeepVariables: o.keepsVariables, Terminator: o.terminator,
	}
	if !o.isClosed {
		options.Environment = os.LookupEnv
	}
	return options
}

// readFile reads a file that :r names, relative to the folder in which the command was started, as sqlcmd does, or else to that of the
// file with the :r. Its path may have backslashes.
func readFile(from, name string) (path string, content []byte, err error) {
	path = filepath.FromSlash(strings.ReplaceAll(name, `\`, "/"))
	content, err = os.ReadFile(path)
	if err == nil || !os.IsNotExist(err) || filepath.IsAbs(path) || from == "" {
		return path, content, err
	}
	beside := filepath.Join(filepath.Dir(from), path)
	found, missing := os.ReadFile(beside)
	if missing != nil {
		return path, nil, err
	}
	return beside, found, nil
}
