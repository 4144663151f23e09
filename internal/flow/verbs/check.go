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
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/flow/schemafile"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// carrySchemas reads the schemas that message types name, beside the definitions, into these.
func carrySchemas(document *definitions.Document) error {
	faults := definitions.Faults{}
	for _, named := range document.SchemaFiles() {
		carried, err := schemaBeside(named.Folder(), named.File)
		if err != nil {
			faults = append(faults, faultOfSchema(err, named))
			continue
		}
		document.Carry(named.MessageType, carried.Documents)
	}
	if len(faults) > 0 {
		return faults.Sorted()
	}
	return nil
}

// schemaBeside reads a schema in a folder. Definitions and imports come from others: a link in their folder leads to no file outside.
func schemaBeside(folder, file string) (*schemafile.Schema, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return schemafile.Read(root.FS(), filepath.ToSlash(file))
}

// faultOfSchema places an error in the schema where that has a place, and otherwise where the schema is named.
func faultOfSchema(err error, named definitions.SchemaFile) definitions.Fault {
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
	if err := checkParts(document, before, after); err != nil {
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

// problemsOf gives what is wrong with pipelines, message types and orchestrations, and with locations and ports as their adapters see them.
func problemsOf(all json.RawMessage) ([]pipeline.Problem, error) {
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
	return found, nil
}

// checkParts gives what is wrong with pipelines, message types, orchestrations, locations and ports in the definitions that there would
// be. Faults of objects that the document does not name count where it brings them about.
func checkParts(document *definitions.Document, before, after json.RawMessage) error {
	found, err := problemsOf(after)
	if err != nil || len(found) == 0 {
		return err
	}
	known, err := problemsOf(before)
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
