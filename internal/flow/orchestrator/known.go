package orchestrator

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/parley-broker/parley/internal/flow/process"
)

// ofDatabase has the names of settings that the database adds to those of an orchestration.
var ofDatabase = []string{"send_port", "version", "called"}

// Check makes a program of the settings of an orchestration, or gives all that is wrong with what it does.
func Check(name string, settings json.RawMessage, known process.Known) (*process.Program, []process.Problem) {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(settings, &all) == nil {
		for _, setting := range ofDatabase {
			delete(all, setting)
		}
		if written, err := json.Marshal(all); err == nil {
			settings = written
		}
	}
	return process.Compile(name, settings, known)
}

// Compile makes a program of the settings of an orchestration in a version: what it calls is in the settings as it was then.
func Compile(name string, settings json.RawMessage, known process.Known) (Program, error) {
	program, err := CompileVersion(name, settings, known)
	if err != nil {
		return nil, err
	}
	return program, nil
}

// CompileVersion is Compile, and gives the program with all that can be done with it.
func CompileVersion(name string, settings json.RawMessage, known process.Known) (*process.Program, error) {
	called := struct {
		Called map[string]json.RawMessage `json:"called"`
	}{}
	if err := json.Unmarshal(settings, &called); err != nil {
		return nil, fmt.Errorf("read orchestration %q: %w", name, err)
	}
	if len(called.Called) > 0 {
		orchestrations := maps.Clone(known.Orchestrations)
		if orchestrations == nil {
			orchestrations = map[string]json.RawMessage{}
		}
		maps.Copy(orchestrations, called.Called)
		known.Orchestrations = orchestrations
	}
	program, problems := Check(name, settings, known)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s. %s", problems[0], problems[0].Remedy)
	}
	return program, nil
}
