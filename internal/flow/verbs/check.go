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
func carryFiles(document *definitions.Document) definitions.Faults {
	faults := definitions.Faults{}
	for _, named := range document.NamedFiles() {
		documents, err := filesBeside(named)
		if err != nil {
			faults = append(faults, faultOfFile(err, named))
			continue
		}
		document.Carry(named, documents)
	}
	return faults
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
	path := named.Path()
	f, is := fault.Of(err)
	if !is {
		return definitions.Fault{Place: named.Place, Path: path, Message: err.Error(), Remedy: "name a file that can be read"}
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
	return definitions.Fault{Place: place, Path: path, Message: message, Remedy: f.Remedy}
}

// check adds to the faults of the files everything else that is wrong: what the database finds, and what components and adapters find. A
// fault hides those that follow from it, and no other.
func (a *application) check(
	ctx context.Context, conn *pgx.Conn, document *definitions.Document, written json.RawMessage, faults definitions.Faults,
) (definitions.Faults, error) {
	inDatabase, err := flowstore.Check(ctx, conn, written, a.prune && !document.IsPart())
	if err != nil {
		return faults, err
	}
	before, err := flowstore.Export(ctx, conn, "")
	if err != nil {
		return faults, err
	}
	inDatabase = slices.DeleteFunc(inDatabase, func(f flowstore.Fault) bool {
		return document.IsPart() && slices.Contains([]string{"reference", "property"}, f.Situation) // it may be in the part that was not read
	})
	known := slices.Clone(faults)
	for _, f := range placed(document, inDatabase) {
		if !document.IsUnusable(f.Path) && !follows(f.Path, known) {
			faults = append(faults, f)
		}
	}
	after, err := merged(before, written, inDatabase)
	if err != nil {
		return faults, err
	}
	inParts, err := a.checkParts(ctx, document, before, after)
	if err != nil {
		return faults, err
	}
	known = slices.Clone(faults)
	for _, f := range inParts {
		if !document.IsUnusable(f.Path) && !follows(f.Path, known) && !isMissing(f.Path, after, known) {
			faults = append(faults, f)
		}
	}
	return faults, nil
}

// follows reports whether a fault is within a setting that is wrong.
func follows(path []string, known definitions.Faults) bool {
	return slices.ContainsFunc(known, func(f definitions.Fault) bool {
		return len(f.Path) > 2 && len(path) >= len(f.Path) && slices.Equal(path[:len(f.Path)], f.Path)
	})
}

// isMissing reports whether a fault is about a setting that is not there, of an object that is incomplete.
func isMissing(path []string, all json.RawMessage, known definitions.Faults) bool {
	if len(path) < 3 {
		return false
	}
	isOfObject := func(f definitions.Fault) bool { return slices.Equal(f.Path, path[:2]) }
	if !slices.ContainsFunc(known, isOfObject) {
		return false
	}
	_, isThere := objectsOf(all)[path[0]][path[1]][path[2]]
	return !isThere
}

// objects are definitions as {kind: {name: settings}}; kinds and objects of another form are left out.
type objects map[string]map[string]map[string]json.RawMessage

func objectsOf(written json.RawMessage) objects {
	var kinds map[string]json.RawMessage
	all := objects{}
	if json.Unmarshal(written, &kinds) != nil {
		return all
	}
	for kind, content := range kinds {
		var named map[string]json.RawMessage
		all[kind] = map[string]map[string]json.RawMessage{}
		if json.Unmarshal(content, &named) != nil {
			continue
		}
		for name, content := range named {
			var settings map[string]json.RawMessage
			if json.Unmarshal(content, &settings) == nil {
				all[kind][name] = settings
			}
		}
	}
	return all
}

// merged gives the definitions that there would be, without the settings whose values are of another kind than they have to be.
func merged(before, written json.RawMessage, inDatabase []flowstore.Fault) (json.RawMessage, error) {
	all := objectsOf(before)
	for kind, named := range objectsOf(written) {
		if all[kind] == nil {
			all[kind] = map[string]map[string]json.RawMessage{}
		}
		for name, settings := range named {
			all[kind][name] = settings
			if settings == nil { // what is null has no settings
				all[kind][name] = map[string]json.RawMessage{}
			}
		}
	}
	for _, f := range inDatabase {
		if f.Situation == "value" && len(f.Path) > 2 {
			delete(all[f.Path[0]][f.Path[1]], f.Path[2])
		}
	}
	return json.Marshal(all)
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
	if written, err = withActivations(before, written); err != nil {
		return nil, err
	}
	if changes, err = flowstore.Apply(ctx, tx, written, false, a.prune); err != nil {
		return nil, err
	}
	after, err := flowstore.Export(ctx, tx, "")
	if err != nil {
		return nil, err
	}
	// Somebody else may have applied something meanwhile.
	faults, err := a.checkParts(ctx, document, before, after)
	if err == nil && len(faults) == 0 {
		faults, err = a.migrateRunning(ctx, tx, document, changes, after)
	}
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults.Sorted()
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
		found = append(found, pipeline.Problem{Path: p.Path, Message: p.Message, Remedy: p.Remedy, Other: p.Other})
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
func (a *application) checkParts(
	ctx context.Context, document *definitions.Document, before, after json.RawMessage,
) (definitions.Faults, error) {
	found, err := a.problemsOf(ctx, after)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	known, err := a.problemsOf(ctx, before)
	if err != nil {
		return nil, err
	}
	faults := definitions.Faults{}
	for _, p := range found {
		isOld := slices.ContainsFunc(known, func(q pipeline.Problem) bool { return q.String() == p.String() })
		if len(p.Other) > 0 && document.Locate(p.Path) == (definitions.Place{}) {
			p.Path, p.Other = p.Other, p.Path
		}
		if document.Locate(p.Path) == (definitions.Place{}) && isOld {
			continue
		}
		faults = append(faults, placedProblem(document, p))
	}
	return faults, nil
}

// placedProblem gives a problem its place in the files: in a schema, or where its path leads.
func placedProblem(document *definitions.Document, p pipeline.Problem) definitions.Fault {
	place := document.Locate(p.Path)
	if p.File != "" && p.Line > 0 && place.File != "" {
		place = definitions.Place{File: filepath.Join(filepath.Dir(place.File), filepath.FromSlash(p.File)), Line: p.Line, Column: p.Column}
	}
	if len(p.Other) > 1 {
		where := "in the database"
		if other := document.Locate(p.Other); other != (definitions.Place{}) {
			where = other.String()
		}
		p.Message += fmt.Sprintf(", as %s %q does (%s)", p.Other[0], p.Other[1], where)
	}
	return definitions.Fault{Place: place, Path: p.Path, Message: p.Message, Remedy: p.Remedy}
}
