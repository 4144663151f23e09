package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// tracked are the fields of the end of an instance.
type tracked struct {
	Version int            `json:"version"`
	Status  string         `json:"status"`
	Passed  map[string]int `json:"passed"`
}

// writePicture writes a page: the definition of the version of the instance, with the path that it took and the place where it stands.
func writePicture(ctx context.Context, conn *pgx.Conn, out io.Writer, number int64, shown oneInstance) error {
	name, application, at := "", "", []string{}
	facts := [][2]string{}
	end := tracked{Passed: map[string]int{}}
	if i := shown.Instance; i != nil {
		name, application, end.Version, end.Status, at = i.Orchestration, i.Application, i.Version, i.Status, i.StandsAt
		_ = json.Unmarshal(i.Passed, &end.Passed) // the database wrote it
		for _, w := range waitsOf(i.WaitsFor) {
			facts = append(facts, [2]string{"waits for", w.String()})
		}
		if i.Error != nil {
			facts = append(facts, [2]string{verb.OrEmpty(i.Code), *i.Error})
		}
	} else {
		for _, e := range shown.Events {
			if e.Event == "END" {
				name = verb.OrEmpty(e.Orchestration)
				_ = json.Unmarshal(e.Fields, &end) // the database wrote it
			}
		}
	}
	if name == "" {
		return errors.New("the path of the instance is not known")
	}
	program, err := programOf(ctx, conn, name, application, end.Version)
	if err != nil {
		return err
	}
	facts = append([][2]string{{"instance", fmt.Sprint(number)}, {"version", fmt.Sprint(end.Version)}, {"status", end.Status}}, facts...)
	_, err = out.Write(program.Page(passedOf(end.Passed), at, facts))
	return err
}

// programOf compiles a version of an orchestration, to draw it.
func programOf(ctx context.Context, conn *pgx.Conn, name, application string, version int) (*process.Program, error) {
	settings, err := flowstore.ReadDefinition(ctx, conn, name, version)
	if err != nil {
		return nil, err
	}
	all, err := flowstore.Export(ctx, conn, "")
	if err != nil && application != "" {
		all, err = flowstore.Export(ctx, conn, application)
	}
	if err != nil {
		return nil, err
	}
	known, err := process.KnownOf(all)
	if err != nil {
		return nil, err
	}
	program, problems := orchestrator.Check(name, settings, known)
	if len(problems) > 0 {
		return nil, fmt.Errorf("version %d of %s cannot be drawn with the definitions of today: %s", version, name, problems[0])
	}
	return program, nil
}

// passedOf gives the shapes that an instance went through, each as often as it did.
func passedOf(times map[string]int) []process.Passed {
	passed := []process.Passed{}
	for _, key := range slices.Sorted(maps.Keys(times)) {
		path, way, _ := strings.Cut(key, " ")
		for range min(times[key], 1000) {
			passed = append(passed, process.Passed{Path: path, Way: way})
		}
	}
	return passed
}
