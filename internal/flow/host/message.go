package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// properties reads properties as the database gives them, as texts.
func properties(written json.RawMessage) (map[string]string, error) {
	if len(written) == 0 || string(written) == "{}" {
		return map[string]string{}, nil
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(written, &raw); err != nil {
		return nil, fmt.Errorf("read the properties of a message: %w", err)
	}
	texts := make(map[string]string, len(raw))
	for name, value := range raw {
		text := string(value)
		if len(value) > 0 && value[0] == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, fmt.Errorf("read the properties of a message: %w", err)
			}
		}
		if text != "null" {
			texts[name] = text
		}
	}
	return texts, nil
}

// values gives texts as pipelines take properties.
func values(texts map[string]string) map[string]any {
	made := make(map[string]any, len(texts))
	for name, text := range texts {
		made[name] = text
	}
	return made
}

// texts gives properties as adapters take them.
func texts(properties map[string]any) map[string]string {
	made := make(map[string]string, len(properties))
	for name, value := range properties {
		made[name] = fmt.Sprint(value)
	}
	return made
}

// typeOf gives the type of a claimed message, empty where it has none.
func typeOf(c *flowstore.Claimed) string {
	if c.Type == nil {
		return ""
	}
	return *c.Type
}

// openStored opens the body of a claimed message as the database has it.
func (h *Host) openStored(ctx context.Context, c *flowstore.Claimed) io.ReadCloser {
	if c.Content == 0 {
		return io.NopCloser(bytes.NewReader(c.Body))
	}
	return flowstore.OpenBody(ctx, func(ctx context.Context, from, to int) ([]flowstore.Chunk, error) {
		ctx, cancel := context.WithTimeout(ctx, statementTimeout)
		defer cancel()
		return flowstore.ReadBody(ctx, h.pool, h.name, c.Message, c.Content, c.Request, from, to)
	})
}

// stored gives a claimed message as pipelines see it.
func (h *Host) stored(c *flowstore.Claimed, promoted, written map[string]string) pipeline.Source {
	s := pipeline.Source{Size: c.Size, Promoted: values(promoted), Written: values(written)}
	s.Type = typeOf(c)
	s.Open = func(ctx context.Context) (io.ReadCloser, error) { return h.openStored(ctx, c), nil }
	parts := []messagePart{}
	if len(c.Parts) > 0 && json.Unmarshal(c.Parts, &parts) == nil {
		for _, part := range parts {
			if part.IsBody {
				s.ContentType, s.Charset = part.ContentType, part.Charset
			}
		}
	}
	return s
}

// outgoing makes a claimed message as the adapter of a port gets it. Its map runs, and the pipeline begins its body, and says of which type
// that is.
func (h *Host) outgoing(ctx context.Context, c *flowstore.Claimed, through *pipeline.Send, maps *portMaps) (*adapter.Message, error) {
	promoted, err := properties(c.Promoted)
	if err != nil {
		return nil, err
	}
	written, err := properties(c.Written)
	if err != nil {
		return nil, err
	}
	source, err := h.mapped(ctx, maps, h.stored(c, promoted, written))
	if err != nil {
		return nil, err
	}
	if maps.mapOf(typeOf(c)) != "" {
		promoted, written = texts(source.Promoted), texts(source.Written)
	}
	m := &adapter.Message{
		ID: c.Message, Interchange: c.Interchange, Parent: c.Parent, Type: source.Type, ReceivedAt: c.ReceivedAt, Attempts: c.Attempts,
		Promoted: promoted, Written: written,
	}
	if c.OrderKey != nil {
		m.OrderKey = *c.OrderKey
	}
	body, result, err := through.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	m.ContentType, m.Charset, m.Size = result.ContentType, result.Charset, result.Size
	first := body // most adapters open a body once
	m.Open = func(ctx context.Context) (io.ReadCloser, error) {
		if opened := first; opened != nil {
			first = nil
			return opened, nil
		}
		opened, _, err := through.Open(ctx, source)
		return opened, err
	}
	return m, nil
}
