package operating

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// watchInterval is how often diagnose --timeout checks.
const watchInterval = time.Second

type diagnoseFlags struct {
	from, to, contract string
	farDSN             string
	mirrorDSN          string // of the standby of the database
	farMirrorDSN       string // and of the far one
	conversation       string
	filter             operate.DiagnosisFilter
	patience           time.Duration
	timeout            time.Duration
	onlyNew            bool

	part   string       // CONFIGURATION, RUNTIME, or "" for both
	handle *parley.UUID // of --conversation
	wait   *time.Duration
}

func newDiagnoseCommand(a *verb.App) *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use:   "diagnose [CONFIGURATION | RUNTIME]",
		Short: "Find what is wrong, and the statement that cures it",
		Long: `Find what is wrong with the broker of the database: with its definitions (CONFIGURATION), with what happens just now
(RUNTIME), or with both. Each finding names the object, the cause, since when, and what cures it, ready to paste.
Nothing is changed, and nobody is disturbed. You have to be an administrator.

With --from and --to only what a dialog between the two services needs is checked; with --conversation only what
concerns one conversation, and where its messages are is explained. With --timeout the checks are repeated, and each
finding is reported once.

The exit code is 0 when nothing is found, 1 when something is, and 2 when a check could not be made.`,
		Example: `  parley diagnose
  parley diagnose CONFIGURATION --from //example.com/web --to //example.com/shop --contract //example.com/order
  parley diagnose --from //example.com/web --to //example.com/shop --far-dsn 'host=far dbname=shop'
  parley diagnose --from //example.com/web --to //example.com/shop --far-dsn 'host=far dbname=shop' --far-mirror-dsn 'host=far2 dbname=shop'
  parley diagnose --conversation 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f
  parley diagnose RUNTIME --timeout 10m --new
  parley diagnose --json | jq -r '.findings[].cure'`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{operate.PartConfiguration, operate.PartRuntime},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			found, err := diagnose(a, cmd, f)
			if err != nil {
				return verb.ExitWith(err, 2)
			}
			return exitOf(found)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "initiating service of a dialog")
	flags.StringVar(&f.to, "to", "", "target service of a dialog")
	flags.StringVar(&f.contract, "contract", "", "contract of the dialog (default DEFAULT)")
	flags.StringVar(&f.farDSN, "far-dsn", "", "with --from and --to: the database of the other side, whose definitions are checked too")
	flags.StringVar(&f.mirrorDSN, "mirror-dsn", "", "the same database on the standby of its server, which is to take over")
	flags.StringVar(&f.farMirrorDSN, "far-mirror-dsn", "", "with --far-dsn: the far database on the standby of its server")
	flags.StringVar(&f.conversation, "conversation", "", "handle, conversation id or group")
	flags.StringVar(&f.filter.Level, "level", operate.LevelWarning, "report ERROR, WARNING or INFO and what is graver")
	flags.StringArrayVar(&f.filter.Ignore, "ignore", nil, "do not report findings of this code (repeatable)")
	flags.DurationVar(&f.patience, "patience", 0, "for how long things may last before they are reported (default: each check has its own)")
	flags.DurationVar(&f.timeout, "timeout", 0, "repeat the checks for so long")
	flags.BoolVar(&f.onlyNew, "new", false, "with --timeout: only what was not there at the start")
	a.CompleteFlag(cmd, "from", verb.CompleteServices)
	a.CompleteFlag(cmd, "to", verb.CompleteServices)
	a.CompleteFlag(cmd, "contract", verb.CompleteContracts)
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	return cmd
}

func (f *diagnoseFlags) check(cmd *cobra.Command, args []string) error {
	f.filter.Level = strings.ToUpper(f.filter.Level)
	dialog := f.from != "" || f.to != ""
	if len(args) == 1 {
		f.part = strings.ToUpper(args[0])
	} else if dialog {
		f.part = operate.PartConfiguration
	}
	if cmd.Flags().Changed("patience") {
		f.wait = &f.patience
	}
	switch {
	case !slices.Contains([]string{"", operate.PartConfiguration, operate.PartRuntime}, f.part):
		return verb.Usagef("%s: there is no such part; use CONFIGURATION or RUNTIME", args[0])
	case !slices.Contains([]string{operate.LevelError, operate.LevelWarning, operate.LevelInfo}, f.filter.Level):
		return verb.Usagef("--level %s: use ERROR, WARNING or INFO", f.filter.Level)
	case dialog && (f.part != operate.PartConfiguration || f.conversation != ""):
		return verb.Usagef("--from and --to are for CONFIGURATION; use --conversation for a conversation that there is")
	case f.contract != "" && !dialog:
		return verb.Usagef("--contract needs --from or --to")
	case f.farDSN != "" && (f.from == "" || f.to == ""):
		return verb.Usagef("--far-dsn needs --from and --to")
	case f.mirrorDSN != "" && f.part != operate.PartConfiguration:
		return verb.Usagef("--mirror-dsn is for CONFIGURATION")
	case f.farMirrorDSN != "" && f.farDSN == "":
		return verb.Usagef("--far-mirror-dsn needs --far-dsn")
	case f.conversation != "" && f.part == operate.PartConfiguration:
		return verb.Usagef("--conversation is for RUNTIME, which checks the definitions too that it needs")
	case f.onlyNew && f.timeout == 0:
		return verb.Usagef("--new needs --timeout")
	case f.timeout < 0 || f.patience < 0:
		return verb.Usagef("--timeout and --patience must not be negative")
	}
	if f.conversation != "" {
		handle, err := verb.ParseHandle(f.conversation)
		if err != nil {
			return err
		}
		f.handle = &handle
	}
	return nil
}

// exitOf is the exit code of what was found: a check that could not be made weighs more than a finding.
func exitOf(found []operate.Finding) error {
	isProblem := func(f operate.Finding) bool { return f.Part == operate.PartProblem }
	switch {
	case slices.ContainsFunc(found, isProblem):
		return verb.ExitWith(nil, 2)
	case len(found) > 0:
		return verb.ExitWith(nil, 1)
	}
	return nil
}

func diagnose(a *verb.App, cmd *cobra.Command, f diagnoseFlags) ([]operate.Finding, error) {
	ctx := cmd.Context()
	conn, err := a.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer verb.CloseConnection(ctx, conn)
	report := newDiagnosisReport(cmd.OutOrStdout(), a.JSON)
	if err := f.watch(ctx, conn, report); err != nil {
		return nil, err
	}
	if f.handle != nil && ctx.Err() == nil {
		if report.Explanation, err = operate.ExplainConversation(ctx, conn, *f.handle); err != nil {
			return nil, err
		}
	}
	return report.Findings, report.conclude()
}

// watch checks once, or again and again until the time is over or ctx ends.
func (f diagnoseFlags) watch(ctx context.Context, conn *pgx.Conn, report *diagnosisReport) error {
	until := time.Now().Add(f.timeout)
	for first := true; ; first = false {
		found, err := f.find(ctx, conn)
		if err != nil {
			return err
		}
		if err := report.add(found, !f.onlyNew || !first); err != nil {
			return err
		}
		left := time.Until(until)
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(watchInterval, left)):
		}
	}
}

// definitions finds what is wrong with the definitions, on both sides of a dialog when the other database is named too, and
// with the partners of mirrored databases. Which of the databases cannot be reached is a finding; what needs none of them is
// checked all the same.
func (f diagnoseFlags) definitions(ctx context.Context, conn *pgx.Conn) (found []operate.Finding, err error) {
	var open [3]*pgx.Conn
	defer func() {
		for _, other := range open {
			if other != nil {
				verb.CloseConnection(ctx, other)
			}
		}
	}()
	for i, each := range []struct{ code, dsn string }{
		{"far-unreachable", f.farDSN}, {"mirror-unreachable", f.mirrorDSN}, {"mirror-unreachable", f.farMirrorDSN},
	} {
		if each.dsn == "" {
			continue
		}
		other, problem, err := openOther(ctx, each.code, each.dsn)
		switch {
		case err != nil:
			return nil, err
		case problem != nil:
			found = append(found, *problem)
		default:
			open[i] = other
		}
	}
	far, mirror, farMirror := open[0], open[1], open[2]
	var more []operate.Finding
	if far == nil {
		more, err = operate.DiagnoseConfiguration(ctx, conn, f.from, f.to, f.contract, f.filter)
	} else {
		more, err = operate.DiagnoseDialog(ctx, conn, far, f.from, f.to, f.contract, f.filter)
	}
	found = append(found, more...)
	if err == nil && mirror != nil {
		var other parley.DB
		if far != nil {
			other = far
		}
		more, err = operate.DiagnoseMirror(ctx, conn, mirror, other, f.from, f.to, f.filter)
		found = append(found, more...)
	}
	if err == nil && farMirror != nil && far != nil {
		more, err = operate.DiagnoseMirror(ctx, far, farMirror, conn, f.from, f.to, f.filter)
		found = append(found, more...)
	}
	return slices.DeleteFunc(found, func(of operate.Finding) bool { return slices.Contains(f.filter.Ignore, of.Code) }), err
}

// openOther connects to another database than that of the command; one that cannot be reached is a problem of diagnosis.
func openOther(ctx context.Context, code, dsn string) (*pgx.Conn, *operate.Finding, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("read the DSN: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil && ctx.Err() == nil {
		return nil, &operate.Finding{
			Code: code, Level: operate.LevelError, Part: operate.PartProblem, ObjectKind: "server", ObjectName: config.Host,
			Cause: fmt.Sprintf("The database %q cannot be reached, so nothing that needs it was checked: %v", config.Database, err),
		}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := verb.PrepareSession(ctx, conn); err != nil {
		verb.CloseConnection(ctx, conn)
		return nil, nil, err
	}
	return conn, nil, nil
}

// find checks once.
func (f diagnoseFlags) find(ctx context.Context, conn *pgx.Conn) ([]operate.Finding, error) {
	found, fits, err := operate.DiagnoseConnection(ctx, conn)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(of operate.Finding) bool {
		return slices.Contains(f.filter.Ignore, of.Code) || weight(of.Level) > weight(f.filter.Level)
	})
	if !fits {
		return found, nil
	}
	if f.handle != nil {
		more, err := operate.DiagnoseConversation(ctx, conn, *f.handle, f.wait, f.filter)
		return append(found, more...), err
	}
	if f.part != operate.PartRuntime {
		more, err := f.definitions(ctx, conn)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	if f.part != operate.PartConfiguration {
		more, err := operate.DiagnoseRuntime(ctx, conn, nil, f.wait, f.filter)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func weight(level string) int {
	return slices.Index([]string{operate.LevelError, operate.LevelWarning, operate.LevelInfo}, level)
}
