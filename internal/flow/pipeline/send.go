package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Send is a compiled send pipeline.
type Send struct {
	types *Types
}

// CompileSend makes a send pipeline of its definition. overrides are settings of components in this place, the pipeline_settings of a
// port: an object {component: {setting: value}}; nil: none. An error names everything that is wrong.
func CompileSend(definition Definition, types *Types, overrides json.RawMessage) (*Send, error) {
	for stage, uses := range definition.Stages {
		for _, use := range uses {
			return nil, fmt.Errorf("stage %s of pipeline %q: there is no component %q", stage, definition.Name, use.Component)
		}
	}
	if len(overrides) > 0 && string(overrides) != "{}" && string(overrides) != "null" {
		return nil, fmt.Errorf("pipeline %q has no component to which the settings %s belong", definition.Name, overrides)
	}
	return &Send{types: types}, nil
}

// Open begins a message. The body is made while it is read; an error of reading is an [adapter.Failure] where the pipeline refuses the
// message, and otherwise one of the source. Its reader closes it, also before its end.
func (s *Send) Open(ctx context.Context, source Source) (io.ReadCloser, Result, error) {
	body, err := source.Open(ctx)
	if err != nil {
		return nil, Result{}, fmt.Errorf("open the message: %w", err)
	}
	return body, Result{ContentType: source.ContentType, Charset: source.Charset, Size: source.Size}, nil
}
