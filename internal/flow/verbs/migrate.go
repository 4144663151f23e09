package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// migratedAtOnce is how many instances are migrated by one statement.
const migratedAtOnce = 500

// misfit says why instances cannot go on with the newest version; a stable format.
type misfit struct {
	Orchestration string  `json:"orchestration"`
	Version       int     `json:"version"`
	Place         string  `json:"place"`
	Message       string  `json:"message"`
	Remedy        string  `json:"remedy"`
	Instances     []int64 `json:"instances"`
}

func (m misfit) String() string {
	count := verb.Counted(len(m.Instances), "instance")
	text := fmt.Sprintf("%s of version %d, such as %d, cannot be migrated", count, m.Version, m.Instances[0])
	if m.Place != "" {
		text += ", at " + m.Place
	}
	return text + ": " + m.Message
}

// migrationResult counts migrated instances, and lists those that do not fit; a stable format.
type migrationResult struct {
	Instances int      `json:"instances"`
	DryRun    bool     `json:"dry_run"`
	Misfits   []misfit `json:"misfits"`
}

// migrator has instances of an orchestration go on with its newest version.
type migrator struct {
	db       pgdb.DB
	name     string
	known    process.Known
	programs map[int]*process.Program
	result   migrationResult
}

// migrateInstances migrates all instances of an orchestration in the transaction of db, and gives how many, and which do not fit: then the
// transaction has to be rolled back.
func migrateInstances(ctx context.Context, db pgdb.DB, name string, all json.RawMessage) (migrationResult, error) {
	known, err := process.KnownOf(all)
	if err != nil {
		return migrationResult{}, err
	}
	m := &migrator{db: db, name: name, known: known, programs: map[int]*process.Program{}}
	for after := int64(0); ; {
		page, err := flowstore.InstancesToMigrate(ctx, db, name, migratedAtOnce, after)
		if err != nil || len(page) == 0 {
			return m.result, err
		}
		if err := m.migrate(ctx, page); err != nil {
			return m.result, err
		}
		after = page[len(page)-1].InstanceID
	}
}

func (m *migrator) migrate(ctx context.Context, page []flowstore.Migrating) error {
	steps := []flowstore.Migration{}
	for _, i := range page {
		step := flowstore.Migration{Instance: i.InstanceID, Version: i.Version}
		if i.State != nil {
			migrated, err := m.one(ctx, i)
			if fault, is := errors.AsType[*process.Fault](err); is {
				m.refuse(i, fault)
				continue
			}
			if err != nil {
				return fmt.Errorf("migrate instance %d: %w", i.InstanceID, err)
			}
			state := string(migrated.State)
			step.State, step.Waits, step.Timers, step.StandsAt = &state, migrated.Waits, migrated.Timers, migrated.At
		}
		steps = append(steps, step)
	}
	n, err := flowstore.MigrateInstances(ctx, m.db, m.name, steps)
	m.result.Instances += n
	return err
}

// one gives an instance as it stands in the newest version.
func (m *migrator) one(ctx context.Context, i flowstore.Migrating) (process.Migrated, error) {
	from, err := m.program(ctx, i.Version)
	if err != nil {
		return process.Migrated{}, err
	}
	to, err := m.program(ctx, i.Newest)
	if err != nil {
		return process.Migrated{}, err
	}
	return from.Migrate(to, json.RawMessage(*i.State))
}

// program gives a version, compiled; with a [*process.Fault] where it cannot be compiled any more.
func (m *migrator) program(ctx context.Context, version int) (*process.Program, error) {
	if found := m.programs[version]; found != nil {
		return found, nil
	}
	settings, err := flowstore.ReadDefinition(ctx, m.db, m.name, version)
	if err != nil {
		return nil, err
	}
	program, err := orchestrator.CompileVersion(m.name, settings, m.known)
	if err != nil {
		return nil, &process.Fault{
			Message: fmt.Sprintf("version %d cannot be compiled: %v", version, err),
			Remedy:  "define what it names for as long as it has instances, or terminate these",
		}
	}
	m.programs[version] = program
	return program, nil
}

// refuse adds an instance to those that do not fit for the same reason.
func (m *migrator) refuse(i flowstore.Migrating, fault *process.Fault) {
	at := slices.IndexFunc(m.result.Misfits, func(f misfit) bool {
		return f.Version == i.Version && f.Place == fault.Path && f.Message == fault.Message
	})
	if at < 0 {
		at = len(m.result.Misfits)
		m.result.Misfits = append(m.result.Misfits, misfit{
			Orchestration: m.name, Version: i.Version, Place: fault.Path, Message: fault.Message, Remedy: fault.Remedy,
		})
	}
	m.result.Misfits[at].Instances = append(m.result.Misfits[at].Instances, i.InstanceID)
}

// migrateRunning migrates instances of those orchestrations of which changes say that they are to be, and gives a fault for each reason for
// which some cannot be.
func (a *application) migrateRunning(
	ctx context.Context, db pgdb.DB, document *definitions.Document, changes []flowstore.Change, all json.RawMessage,
) (definitions.Faults, error) {
	faults, done := definitions.Faults{}, map[string]bool{}
	for _, c := range changes {
		if c.Action != "instances" || verb.OrEmpty(c.Setting) != "migrate" || done[c.Name] {
			continue
		}
		done[c.Name] = true
		result, err := migrateInstances(ctx, db, c.Name, all)
		if err != nil {
			return nil, err
		}
		path := []string{flowstore.KindOrchestration, c.Name, "running"}
		for _, f := range result.Misfits {
			faults = append(faults, definitions.Fault{Place: document.Locate(path), Path: path, Message: f.String(), Remedy: f.Remedy})
		}
	}
	return faults, nil
}

func newMigrateCommand(env environment) *cobra.Command {
	name, dryRun := "", false
	cmd := &cobra.Command{
		Use:   "migrate --orchestration NAME",
		Short: "Have instances go on with the newest version of their orchestration",
		Long: `Have all instances of earlier versions go on with the newest one, in one transaction. Each state is checked against the new
definition: the shapes at which the instance stands, the values that it has, and what it waits for. Where one does not fit
none is migrated, and you see at which place, and what to do. An instance keeps its values; what it waits for is made anew.

You need the rights ADMINISTER, and READ_CONTENT for the application: states have what instances know of messages. It is recorded.`,
		Args: cobra.NoArgs, Example: `  parley flow instances migrate --orchestration Approve --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return verb.Usagef("name the orchestration by --orchestration")
			}
			return env.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				result, err := migrateAll(cmd.Context(), conn, name, dryRun)
				if err != nil {
					return err
				}
				return env.reportMigration(cmd.OutOrStdout(), result)
			})
		},
	}
	cmd.Flags().StringVar(&name, "orchestration", "", "instances of this orchestration")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only check, and list what does not fit")
	return cmd
}

// migrateAll migrates the instances of an orchestration in a transaction, which is rolled back where one does not fit.
func migrateAll(ctx context.Context, conn *pgx.Conn, name string, dryRun bool) (migrationResult, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return migrationResult{}, fmt.Errorf("begin to migrate: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	all, err := flowstore.Export(ctx, tx, "")
	if err != nil {
		return migrationResult{}, err
	}
	result, err := migrateInstances(ctx, tx, name, all)
	if err != nil {
		return result, err
	}
	if result.DryRun = dryRun; dryRun || len(result.Misfits) > 0 {
		return result, nil
	}
	if err := tx.Commit(ctx); err != nil {
		return result, fmt.Errorf("migrate instances: %w", err)
	}
	return result, nil
}

// reportMigration prints what became of instances; the exit code says whether all fit.
func (env environment) reportMigration(out io.Writer, result migrationResult) error {
	if result.Misfits == nil {
		result.Misfits = []misfit{}
	}
	if env.JSON {
		if err := verb.EncodeJSON(out, result); err != nil {
			return err
		}
	} else {
		for _, f := range result.Misfits {
			fmt.Fprintf(env.Stderr, "%s\nHINT: %s\n", verb.OneLine(f.String(), 0), verb.OneLine(f.Remedy, 0))
		}
		text := verb.Counted(result.Instances, "instance") + map[bool]string{true: " would be migrated", false: " migrated"}[result.DryRun]
		if len(result.Misfits) > 0 && !result.DryRun {
			text = "nothing was changed"
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	if len(result.Misfits) > 0 {
		return verb.ExitWith(nil, exitFailed)
	}
	return nil
}
