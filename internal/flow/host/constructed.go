package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/flow/process"
)

// typeOf gives a message that an orchestration has constructed its type and promoted properties, by the pipeline that is built in for its
// form.
func (h *Host) typeOf(ctx context.Context, m process.Message) (process.Message, error) {
	c := h.settings.Load()
	if c == nil {
		return m, errors.New("the host has no definitions")
	}
	compiled, err := pipeline.CompileReceive(pipeline.BuiltInFor(m.Body), c.types, nil)
	if err != nil {
		return m, err
	}
	made := &pipeline.Only{}
	m.Type = c.types.TypeFor(m.Type, m.Body)
	source := pipeline.Source{Size: int64(len(m.Body)), Type: m.Type, Charset: m.Charset, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(m.Body)), nil
	}}
	if err := compiled.Run(ctx, source, made); err != nil {
		return m, ofMessage(err)
	}
	promoted, written := map[string]any{}, map[string]any{}
	maps.Copy(promoted, m.Promoted)
	maps.Copy(promoted, made.Message.Promoted)
	maps.Copy(written, m.Written)
	maps.Copy(written, made.Message.Written)
	m.Promoted, m.Written, m.Body, m.Size = promoted, written, made.Body.Bytes(), int64(made.Body.Len())
	if made.Message.Type != "" {
		m.Type = made.Message.Type
	}
	if m.Type != "" {
		m.Promoted["MessageType"] = m.Type
	}
	if made.Message.Charset != "" {
		m.Charset = made.Message.Charset
	}
	if made.Message.ContentType != "" {
		m.Content = made.Message.ContentType
	}
	return m, nil
}

// ofMessage makes an error of a message a fault, which its instance may catch.
func ofMessage(err error) error {
	failure, isFailure := errors.AsType[*adapter.Failure](err)
	f, isFault := fault.Of(err)
	switch {
	case isFault:
		return &process.Fault{Message: f.Error(), Remedy: f.Remedy}
	case isFailure && failure.Err != nil:
		return &process.Fault{Message: failure.Err.Error(), Remedy: "construct a message that its type allows"}
	}
	return err
}

// transform runs a map over messages of an orchestration. One in SQL is called in the transaction of the step.
func (h *Host) transform(
	ctx context.Context, w process.World, begin func(ctx context.Context) (pgx.Tx, error), name string, inputs []process.Message,
) (process.Message, error) {
	c := h.settings.Load()
	if c == nil {
		return process.Message{}, errors.New("the host has no definitions")
	}
	all := c.maps
	if all.IsSQL(name) {
		tx, err := begin(ctx)
		if err != nil {
			return process.Message{}, err
		}
		all = all.In(mapping.Place{Tx: tx, Role: c.Host.Role})
	}
	given := []mapping.Input{}
	for _, m := range inputs {
		given = append(given, mapping.Input{Size: m.Size, Charset: m.Charset, Open: func(ctx context.Context) (io.ReadCloser, error) {
			return w.Open(ctx, m)
		}})
	}
	out, err := all.Run(ctx, name, given)
	if err != nil {
		return process.Message{}, ofMessage(err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body.Reader())
	if err != nil {
		return process.Message{}, fmt.Errorf("read the result of map %s: %w", name, err)
	}
	made := process.Message{Type: out.Type, Body: body, Size: int64(len(body)), Charset: out.Charset, Content: out.ContentType}
	return h.typeOf(ctx, made)
}
