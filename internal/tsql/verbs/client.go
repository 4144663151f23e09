package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/verb"
)

// A client runs batches in one session, and knows when to stop.
type client struct {
	app     *verb.App
	options *runOptions
	session *interpreter.Session
	output  *output
	seen    *watcher
	timeout time.Duration // of a batch; 0 for none
	// exit is the exit code that a batch asked for, by EXIT(query) or by RAISERROR with state 127.
	exit    int
	hasExit bool
}

// errStopped says that a batch had an error, and that the script asked to stop there. The error was printed already.
var errStopped = errors.New("a batch failed")

func run(ctx context.Context, a *verb.App, o *runOptions) (err error) {
	id, err := identity(ctx, a, o)
	if err != nil {
		return err
	}
	out, err := newOutput(a, o, id.Server)
	if err != nil {
		return err
	}
	db := connection.New(a.ConnectTo)
	db.StartIn(o.database)
	c := &client{
		app: a, options: o, session: runner.NewWithKeys(id, db, ownKeys{&o.masterKey}), output: out, seen: &watcher{Sink: out.sink},
		timeout: time.Duration(o.timeout) * time.Second,
	}
	defer func() {
		ended := errors.Join(c.session.Close(context.WithoutCancel(ctx)), out.close())
		if err == nil && ended != nil {
			err = fmt.Errorf("closing the session: %w", ended)
		}
	}()
	// As with sqlcmd, a script without tables says whether the server that was named is there.
	if a.NamesDatabase() {
		if err := db.Open(ctx); err != nil {
			return err
		}
	}
	return c.exitCode(c.runAll(ctx, id))
}

// runAll runs what the flags name: files, a query, the prompt, or standard input.
func (c *client) runAll(ctx context.Context, id interpreter.Identity) error {
	options := c.scriptOptions(id)
	if start := os.Getenv("SQLCMDINI"); start != "" && !c.options.isClosed {
		if err := c.runFile(ctx, start, options); err != nil {
			return err
		}
	}
	for _, query := range []string{c.options.query, c.options.first} {
		if query == "" {
			continue
		}
		if err := c.runText(ctx, "", query, options); err != nil {
			return err
		}
	}
	switch {
	case c.options.query != "":
		return nil
	case len(c.options.files) == 0 && isTerminal(c.app.Stdin) && isTerminal(c.app.Stdout) && !c.app.JSON:
		return c.prompt(ctx, options)
	case len(c.options.files) == 0:
		c.options.files = []string{"-"}
	}
	for _, file := range c.options.files {
		if file != "-" {
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("reading the script: %w", err) // none runs where one is missing
			}
		}
	}
	for _, file := range c.options.files {
		if err := c.runFile(ctx, file, options); err != nil {
			return err
		}
	}
	return nil
}

// exitCode gives the exit code that the batches ask for.
func (c *client) exitCode(err error) error {
	isStop := errors.Is(err, errStopped)
	switch {
	case c.hasExit:
		return verb.ExitWith(nil, c.exit)
	case err != nil && !isStop:
		return err
	case c.options.exitSeverity > 0 && c.seen.worst >= c.options.exitSeverity:
		return verb.ExitWith(nil, c.seen.worst)
	case isStop:
		return verb.ExitWith(nil, 1)
	}
	return nil
}

func (c *client) runFile(ctx context.Context, file string, o script.Options) error {
	content, err := readScript(c.app, file)
	if err != nil {
		return err
	}
	if file == "-" {
		file = ""
	}
	text, _ := script.Decode(content)
	return c.runText(ctx, file, text, o)
}

func (c *client) runText(ctx context.Context, file, text string, o script.Options) error {
	for batch, err := range script.Batches(file, text, o) {
		if err != nil {
			return explained(err)
		}
		if err := c.runBatch(ctx, batch); err != nil || c.hasExit {
			return err
		}
	}
	return nil
}

// explained gives a fault of the script with its remedy.
func explained(err error) error {
	if fault, is := errors.AsType[*script.Error](err); is {
		return verb.WithHint(err, fault.Hint)
	}
	return err
}

// errTimeout is the cause of a batch that took longer than -t says.
var errTimeout = fmt.Errorf("%w: -t has passed", session.ErrAttention)

// runBatch runs a batch as often as GO says.
func (c *client) runBatch(ctx context.Context, batch *script.Batch) error {
	least := max(c.options.exitSeverity, 11)
	for range batch.Count {
		before := c.seen.count(least)
		c.seen.begin()
		if c.options.echoes {
			if err := c.output.echo(batch.Text); err != nil {
				return err
			}
		}
		if err := c.runOnce(ctx, batch.Text); err != nil {
			return err
		}
		if c.seen.ends {
			c.exit, c.hasExit = c.seen.endsWith, true
			return nil
		}
		if batch.Exits {
			c.exit, c.hasExit = c.seen.exitCode(before < c.seen.count(least)), true
			return nil
		}
		if batch.StopOnError && c.seen.count(least) > before {
			return errStopped
		}
	}
	return nil
}

func (c *client) runOnce(ctx context.Context, text string) error {
	if c.timeout == 0 {
		return c.session.Run(ctx, text, c.seen)
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	err := c.session.Run(limited, text, c.seen)
	if err == nil && errors.Is(context.Cause(limited), errTimeout) {
		c.seen.worst, c.seen.timeouts = max(c.seen.worst, 11), c.seen.timeouts+1
		err = c.output.say("Timeout expired")
	}
	return err
}

// identity has the role and the database that the command line names, and the user of this process where it names none: a script
// without tables starts no server.
func identity(ctx context.Context, a *verb.App, o *runOptions) (interpreter.Identity, error) {
	id := interpreter.Identity{User: "dbo", Program: "parley", Process: 51, Database: o.database}
	if u, err := user.Current(); err == nil {
		id.Login = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		id.Host, id.Server = host, host
	}
	if o.workstation != "" {
		id.Host = o.workstation
	}
	if !a.NamesDatabase() {
		return id, nil
	}
	dsn, err := a.ResolveDSN(ctx)
	if err != nil {
		return id, err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return id, a.BadDSN(err)
	}
	id.Login, id.User = config.User, config.User
	if o.database == "" {
		id.Database = config.Database
	}
	return id, nil
}

// scriptOptions gives the options of scripts with sqlcmd's own variables, and what changes them.
func (c *client) scriptOptions(id interpreter.Identity) script.Options {
	options := c.options.ofScripts()
	options.Command, options.Set = c.command, c.set
	for name, value := range c.ownVariables(id) {
		if _, given := options.Variables[name]; !given {
			options.Variables[name] = value
		}
	}
	return options
}

// ownVariables gives sqlcmd's variables as the flags have them.
func (c *client) ownVariables(id interpreter.Identity) map[string]string {
	f := c.options.format
	return map[string]string{
		"SQLCMDUSER": id.Login, "SQLCMDSERVER": id.Server, "SQLCMDWORKSTATION": id.Host, "SQLCMDDBNAME": id.Database,
		"SQLCMDLOGINTIMEOUT": "8", "SQLCMDSTATTIMEOUT": strconv.Itoa(c.options.timeout), "SQLCMDHEADERS": strconv.Itoa(f.HeadingRows),
		"SQLCMDCOLSEP": f.Separator, "SQLCMDCOLWIDTH": strconv.Itoa(f.Width), "SQLCMDPACKETSIZE": "4096",
		"SQLCMDERRORLEVEL": strconv.Itoa(f.ErrorLevel), "SQLCMDMAXVARTYPEWIDTH": strconv.Itoa(f.MaxVariable),
		"SQLCMDMAXFIXEDTYPEWIDTH": strconv.Itoa(f.MaxFixed), "SQLCMDEDITOR": "", "SQLCMDINI": os.Getenv("SQLCMDINI"),
	}
}

// errVariable says that sqlcmd's own variable does not take a value.
var errVariable = errors.New("the variable does not take this value")

// set changes what sqlcmd's own variables say.
func (c *client) set(name, value string) error {
	f := c.output.format()
	numbers := map[string]struct {
		place       *int
		least, most int
		without     int
	}{
		"SQLCMDHEADERS": {&f.HeadingRows, -1, 1 << 30, 0}, "SQLCMDCOLWIDTH": {&f.Width, 9, 65535, 0},
		"SQLCMDERRORLEVEL": {&f.ErrorLevel, -1, 25, 0}, "SQLCMDMAXVARTYPEWIDTH": {&f.MaxVariable, 0, 8000, 256},
		"SQLCMDMAXFIXEDTYPEWIDTH": {&f.MaxFixed, 0, 8000, 0}, "SQLCMDSTATTIMEOUT": {nil, 0, 65534, 0},
	}
	switch name {
	case "SQLCMDUSER", "SQLCMDSERVER", "SQLCMDWORKSTATION", "SQLCMDDBNAME", "SQLCMDPACKETSIZE", "SQLCMDINI":
		return fmt.Errorf("%w: %s cannot be set by a script", errVariable, name)
	case "SQLCMDCOLSEP":
		f.Separator = " "
		if value != "" {
			f.Separator = string([]rune(value)[:1])
		}
		return nil
	}
	number, known := numbers[name]
	if !known {
		return nil
	}
	n := number.without
	if value != "" {
		read, err := strconv.Atoi(strings.TrimSpace(value))
		isOff := read == 0 && number.without == 0
		if err != nil || !isOff && (read < number.least || read > number.most) {
			return fmt.Errorf("%w: %s takes %d to %d", errVariable, name, number.least, number.most)
		}
		n = read
	}
	if number.place == nil {
		c.timeout = time.Duration(n) * time.Second
		return nil
	}
	*number.place = n
	return nil
}
