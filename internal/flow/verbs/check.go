package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/flow/schemafile"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// carryFiles reads the schemas that message types name, and the programs of maps, beside the definitions, into these.
func carryFiles(document *definitions.Document) error {
	faults := definitions.Faults{}
	for _, named := range document.NamedFiles() {
		documents, err := filesBeside(named)
		if err != nil {
			faults = append(faults, faultOfFile(err, named))
			continue
		}
		document.Carry(named, documents)
	}
	if len(faults) > 0 {
		return faults.Sorted()
	}
	return nil
}

// filesBeside reads a file, and those that it names, in the folder of its definition. Definitions and imports come from others: a link in
// their folder leads to no file outside.
func filesBeside(named definitions.NamedFile) (map[string]string, error) {
	root, err := os.OpenRoot(named.Folder())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file := filepath.ToSlash(named.File)
	if named.IsMap() {
		program, err := mapping.Read(root.FS(), file)
		if err != nil {
			return nil, err
		}
		return program.Documents, nil
	}
	schema, err := schemafile.Read(root.FS(), file)
	if err != nil {
		return nil, err
	}
	return schema.Documents, nil
}

// faultOfFile places an error in the file where that has a place, and otherwise where the file is named.
func faultOfFile(err error, named definitions.NamedFile) definitions.Fault {
	f, is := fault.Of(err)
	if !is {
		return definitions.Fault{Place: named.Place, Message: err.Error(), Remedy: "name a file that can be read"}
	}
	place := named.Place
	if f.File != "" && f.Place.Line > 0 {
		file := filepath.Join(named.Folder(), filepath.FromSlash(f.File))
		place = definitions.Place{File: file, Line: int(f.Place.Line), Column: f.Place.Column}
	}
	message := f.Message
	if f.Expected != "" {
		message += "; expected " + f.Expected
	}
	return definitions.Fault{Place: place, Message: message, Remedy: f.Remedy}
}

// apply makes the definitions what the document says, unless something is wrong that the database does not know of: components, schemas,
// adapters.
func (a *application) apply(
	ctx context.Context, conn *pgx.Conn, document *definitions.Document, written json.RawMessage,
) (changes []flowstore.Change, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("begin to apply: %w", err)
	}
	defer func() {
		if rollbackErr := tx.Rollback(context.WithoutCancel(ctx)); rollbackErr != nil && !errors.Is(rollbackErr, pgx.ErrTxClosed) {
			err = errors.Join(err, fmt.Errorf("roll back: %w", rollbackErr))
		}
	}()
	before, err := flowstore.Export(ctx, tx, "")
	if err != nil {
		return nil, err
	}
	if changes, err = flowstore.Apply(ctx, tx, written, false, a.prune); err != nil {
		return nil, err
	}
	after, err := flowstore.Export(ctx, tx, "")
	if err != nil {
		return nil, err
	}
	if err := a.checkParts(ctx, document, before, after); err != nil {
		return nil, err
	}
	if a.dryRun {
		return changes, nil
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("apply the definitions: %w", err)
	}
	return changes, nil
}

// problemsOf gives what is wrong with pipelines, message types, maps and orchestrations, and with locations and ports as their adapters see
// them.
func (a *application) problemsOf(ctx context.Context, all json.RawMessage) ([]pipeline.Problem, error) {
	found, err := pipeline.Check(all)
	if err != nil {
		return nil, err
	}
	ofAdapters, err := adapters.All().Check(all)
	if err != nil {
		return nil, err
	}
	for _, p := range ofAdapters {
		found = append(found, pipeline.Problem{Path: p.Path, Message: p.Message, Remedy: p.Remedy})
	}
	ofOrchestrations, err := process.Check(all)
	if err != nil {
		return nil, err
	}
	for _, p := range ofOrchestrations {
		found = append(found, pipeline.Problem{Path: p.Path, Message: p.Message, Remedy: p.Remedy})
	}
	ofMaps, err := mapping.Check(ctx, all, a.maps)
	if err != nil {
		return nil, err
	}
	for _, p := range ofMaps {
		found = append(found, pipeline.ProblemOf(p.Fault, p.Path))
	}
	return found, nil
}

// checkParts gives what is wrong with pipelines, message types, maps, orchestrations, locations and ports in the definitions that there
// would be. Faults of objects that the document does not name count where it brings them about.
func (a *application) checkParts(ctx context.Context, document *definitions.Document, before, after json.RawMessage) error {
	found, err := a.problemsOf(ctx, after)
	if err != nil || len(found) == 0 {
		return err
	}
	known, err := a.problemsOf(ctx, before)
	if err != nil {
		return err
	}
	faults := definitions.Faults{}
	for _, p := range found {
		place := document.Locate(p.Path)
		isOld := slices.ContainsFunc(known, func(q pipeline.Problem) bool { return q.String() == p.String() })
		if place == (definitions.Place{}) && isOld {
			continue
		}
		faults = append(faults, placedProblem(document, p))
	}
	if len(faults) == 0 {
		return nil
	}
	return faults.Sorted()
}

// placedProblem gives a problem its place in the files: in a schema, or where its path leads.
func placedProblem(document *definitions.Document, p pipeline.Problem) definitions.Fault {
	place := document.Locate(p.Path)
	if p.File != "" && p.Line > 0 && place.File != "" {
		place = definitions.Place{File: filepath.Join(filepath.Dir(place.File), filepath.FromSlash(p.File)), Line: p.Line, Column: p.Column}
	}
	return definitions.Fault{Place: place, Path: p.Path, Message: p.Message, Remedy: p.Remedy}
}
