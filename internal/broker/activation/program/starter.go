package program

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// Starter starts the programs of one database.
type Starter struct {
	// Permission is the leave of the operator.
	Permission Permission
	// DSN is the connection string that programs are given, and Database the name of the database.
	DSN, Database string
	// PassPostgresVariables hands on the daemon's own PG* variables, which the connection string may rely on.
	PassPostgresVariables bool
	// Logger receives what programs print, and how they end; nil means [slog.Default].
	Logger *slog.Logger
}

// definition is the definition of a program in the database.
type definition struct {
	Program          []string          `json:"program"`
	Environment      map[string]string `json:"environment"`
	WorkingDirectory *string           `json:"working_directory"`
	StopTimeoutMS    int               `json:"stop_timeout_ms"`
	SchemaName       string            `json:"schema_name"`
	QueueName        string            `json:"queue_name"`
}

// NewReader prepares one instance of the program of a queue.
//
// Errors: [ErrNotAllowed], or a definition that makes no sense.
func (s *Starter) NewReader(q activation.Queue, number int) (activation.Reader, error) {
	var d definition
	if err := json.Unmarshal(q.External, &d); err != nil {
		return nil, fmt.Errorf("read the definition of the program: %w", err)
	}
	if len(d.Program) == 0 {
		return nil, fmt.Errorf("the definition names no program")
	}
	path, err := s.Permission.program(d.Program[0])
	if err != nil {
		return nil, err
	}
	directory, err := s.Permission.directory(d.WorkingDirectory, path)
	if err != nil {
		return nil, err
	}
	variables, err := s.Permission.environment(d.Environment)
	if err != nil {
		return nil, err
	}
	variables = append(variables,
		"PARLEY_DSN="+s.DSN,
		"PARLEY_DATABASE="+s.Database,
		"PARLEY_QUEUE="+q.Name,
		"PARLEY_QUEUE_SCHEMA="+d.SchemaName,
		"PARLEY_QUEUE_NAME="+d.QueueName,
		"PARLEY_INSTANCE="+strconv.Itoa(number),
	)
	return &reader{
		path:        path,
		arguments:   d.Program,
		directory:   directory,
		environment: append(s.inherited(), variables...),
		stopTimeout: time.Duration(d.StopTimeoutMS) * time.Millisecond,
		logger:      cmp.Or(s.Logger, slog.Default()).With("queue", q.Name, "program", path, "instance", number),
	}, nil
}

// inherited lists the part of the daemon's own environment that a program gets: the variables that programs need to run at all, and no
// secrets.
func (s *Starter) inherited() []string {
	names := []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SYSTEMROOT"}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		isPostgres := s.PassPostgresVariables && strings.HasPrefix(name, "PG")
		return !slices.Contains(names, name) && !strings.HasPrefix(name, "LC_") && !isPostgres
	})
}
