package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
)

// Receive is a compiled receive pipeline.
type Receive struct {
	types *Types
}

// CompileReceive makes a receive pipeline of its definition. overrides are settings of components in this place, the pipeline_settings of
// a location: an object {component: {setting: value}}; nil: none. An error names everything that is wrong.
func CompileReceive(definition Definition, types *Types, overrides json.RawMessage) (*Receive, error) {
	for stage, uses := range definition.Stages {
		for _, use := range uses {
			return nil, fmt.Errorf("stage %s of pipeline %q: there is no component %q", stage, definition.Name, use.Component)
		}
	}
	if len(overrides) > 0 && string(overrides) != "{}" && string(overrides) != "null" {
		return nil, fmt.Errorf("pipeline %q has no component to which the settings %s belong", definition.Name, overrides)
	}
	return &Receive{types: types}, nil
}

// Run puts an input through the pipeline. An [adapter.Failure] says that the whole input has failed: what the sink got is discarded. Any
// other error is one of the sink, of ctx or of the reading of the source.
func (r *Receive) Run(ctx context.Context, source Source, sink Sink) error {
	body, err := source.Open(ctx)
	if err != nil {
		return fmt.Errorf("open the input: %w", err)
	}
	err = r.passThrough(&measured{body: body, size: source.Size}, source, sink)
	return errors.Join(err, body.Close())
}

// passThrough makes one message of the whole input.
func (r *Receive) passThrough(body io.Reader, source Source, sink Sink) error {
	w, err := sink.Begin(1)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, body); err != nil {
		return err
	}
	return sink.End(Message{
		Number: 1, Type: source.Type, ContentType: source.ContentType, Charset: source.Charset,
		Promoted: maps.Clone(source.Promoted), Written: maps.Clone(source.Written),
	})
}
