package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/verb"
)

// trial runs a pipeline of definitions that are in no database.
type trial struct {
	application // how definitions are read

	definitions, pipeline, location string
}

func (t *trial) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&t.definitions, "definitions", "", "folder or file of definitions whose pipeline is run")
	flags.StringVar(&t.pipeline, "pipeline", "", "pipeline of the definitions, or one that is built in")
	flags.StringVar(&t.location, "location", "", "receive location whose pipeline is run, with its settings there")
	t.addVariables(cmd)
}

// compiled gives the pipeline that the flags name.
func (t *trial) compiled() (*pipeline.Receive, *pipeline.Types, error) {
	if (t.pipeline == "") == (t.location == "") {
		return nil, nil, verb.Usagef("give --pipeline or --location, of the definitions")
	}
	document, err := t.readWhole([]string{t.definitions})
	if err != nil {
		return nil, nil, err
	}
	text, err := document.JSON()
	if err != nil {
		return nil, nil, err
	}
	var d struct {
		MessageTypes    json.RawMessage                `json:"message type"`
		PropertySchemas json.RawMessage                `json:"property schema"`
		Pipelines       map[string]pipeline.Definition `json:"pipeline"`
		Locations       map[string]struct {
			Pipeline string          `json:"pipeline"`
			Settings json.RawMessage `json:"pipeline_settings"`
		} `json:"receive location"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, nil, fmt.Errorf("read the definitions: %w", err)
	}
	name, overrides, at := t.pipeline, json.RawMessage(nil), []string{"pipeline"}
	if t.location != "" {
		location, ok := d.Locations[t.location]
		if !ok {
			return nil, nil, noSuch("receive location", t.location, slices.Sorted(maps.Keys(d.Locations)))
		}
		name, overrides, at = location.Pipeline, location.Settings, []string{"receive location", t.location}
		if name == "" {
			name = "PassThruReceive"
		}
	}
	all := pipeline.BuiltIn()
	maps.Copy(all, d.Pipelines)
	definition, ok := all[name]
	if !ok {
		return nil, nil, noSuch("pipeline", name, slices.Sorted(maps.Keys(all)))
	}
	definition.Name = name
	types, err := pipeline.NewTypes(d.MessageTypes, d.PropertySchemas)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := pipeline.CompileReceive(definition, types, overrides)
	if problems, are := errors.AsType[pipeline.Problems](err); are {
		return nil, nil, placedProblems(document, problems, at)
	}
	return compiled, types, err
}

func noSuch(kind, name string, all []string) error {
	remedy := "define it: the definitions have none"
	if len(all) > 0 {
		remedy = "name one of " + strings.Join(all, ", ")
	}
	return &fault.Fault{Message: fmt.Sprintf("the definitions have no %s %q", kind, name), Remedy: remedy}
}

// placedProblems gives problems of a pipeline their places in the files.
func placedProblems(document *definitions.Document, problems pipeline.Problems, at []string) error {
	faults := definitions.Faults{}
	for _, p := range problems {
		if p.Path[0] == "pipeline_settings" {
			p.Path = slices.Concat(at, p.Path)
		}
		faults = append(faults, placedProblem(document, p))
	}
	return faults.Sorted()
}

// run puts a file through the pipeline.
func (t *trial) run(ctx context.Context, file, folder string) (exit int, err error) {
	compiled, types, err := t.compiled()
	if err != nil {
		if faults, are := errors.AsType[definitions.Faults](err); are {
			t.env.printFaults(faults)
			return exitFailed, nil
		}
		return 0, err
	}
	out := &trialSink{env: t.env, folder: folder, source: file, types: types, open: map[int64]*spool{}}
	defer out.close()
	if folder != "" {
		if err := os.MkdirAll(folder, 0o777); err != nil { //nolint:gosec // The umask of the user decides, as for the files in it.
			return 0, &fault.Fault{Message: err.Error(), Err: err, Remedy: "name a folder that can be made"}
		}
	}
	isOpened := false
	source := pipeline.Source{Size: -1, Open: func(context.Context) (io.ReadCloser, error) {
		if isOpened && file == "-" {
			return nil, &fault.Fault{Message: "standard input cannot be read twice", Remedy: "name a file: a long bad part is read from it again"}
		}
		isOpened = true
		return t.env.open(file)
	}}
	if err := compiled.Run(ctx, source, out); err != nil {
		for _, name := range out.made {
			_ = os.Remove(name) // the error that is returned says why
		}
		return 0, fault.InFile(err, file)
	}
	if out.bad > 0 {
		return exitBad, nil
	}
	return 0, nil
}

// tried is a message behind a pipeline as programs read it; a stable format.
type tried struct {
	Number      int64          `json:"number"`
	Type        string         `json:"type,omitempty"`
	ContentType string         `json:"content_type,omitempty"`
	Charset     string         `json:"charset,omitempty"`
	Promoted    map[string]any `json:"promoted,omitempty"`
	Written     map[string]any `json:"written,omitempty"`
	File        string         `json:"file,omitempty"`
	Body        *string        `json:"body,omitempty"`
}

// trialSink prints messages, or writes them into a folder.
type trialSink struct {
	env            environment
	folder, source string
	types          *pipeline.Types
	open           map[int64]*spool
	made           []string
	bad            int
}

var _ pipeline.Sink = (*trialSink)(nil)

// Begin implements [pipeline.Sink].
func (s *trialSink) Begin(number int64) (io.Writer, error) {
	if before, again := s.open[number]; again {
		if err := before.Close(); err != nil {
			return nil, err
		}
	}
	s.open[number] = &spool{}
	return s.open[number], nil
}

// End implements [pipeline.Sink].
func (s *trialSink) End(m pipeline.Message) error {
	body := s.open[m.Number]
	defer s.forget(m.Number)
	line := tried{
		Number: m.Number, Type: m.Type, ContentType: m.ContentType, Charset: m.Charset,
		Promoted: s.masked(m.Promoted), Written: s.masked(m.Written),
	}
	if s.folder != "" {
		line.File = filepath.Join(s.folder, fmt.Sprintf("%d%s", m.Number, extensionOf(m.ContentType)))
		if err := s.write(line.File, body); err != nil {
			return err
		}
	}
	if s.env.JSON {
		if s.folder == "" {
			text, err := body.text()
			if err != nil {
				return err
			}
			line.Body = &text
		}
		encoder := json.NewEncoder(s.env.Stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(line)
	}
	if s.folder != "" {
		_, err := fmt.Fprintf(s.env.Stdout, "%s %s\n", line.File, verb.OrNone(verb.OneLine(m.Type, 0)))
		return err
	}
	if err := body.copyTo(s.env.Stdout, m.ContentType == "application/xml"); err != nil {
		return err
	}
	_, err := io.WriteString(s.env.Stdout, "\n")
	return err
}

// masked hides the values of sensitive properties: what tests print is kept by others.
func (s *trialSink) masked(properties map[string]any) map[string]any {
	masked := maps.Clone(properties)
	for name := range masked {
		if s.types.IsSensitive(name) {
			masked[name] = "(sensitive)"
		}
	}
	return masked
}

func extensionOf(contentType string) string {
	switch contentType {
	case "application/xml":
		return ".xml"
	case "application/json":
		return ".json"
	}
	return ""
}

func (s *trialSink) write(name string, body *spool) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	s.made = append(s.made, name)
	return errors.Join(body.copyTo(file, false), file.Close())
}

// Bad implements [pipeline.Sink]. With a folder the body is put there.
func (s *trialSink) Bad(m pipeline.Message, raw []byte, failure error) error {
	s.bad++
	defer s.forget(m.Number)
	s.env.report(fault.InFile(failure, s.source))
	if s.folder == "" {
		return nil
	}
	if raw != nil {
		w, err := s.Begin(m.Number)
		if err != nil {
			return err
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return s.write(filepath.Join(s.folder, fmt.Sprintf("bad-%d", m.Number)), s.open[m.Number])
}

func (s *trialSink) forget(number int64) {
	if body := s.open[number]; body != nil {
		_ = body.Close() // nothing is written to it any more
		delete(s.open, number)
	}
}

func (s *trialSink) close() {
	for number := range s.open {
		s.forget(number)
	}
}
