package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// delivered is a message that came for instances.
type delivered struct {
	process.Message
	body    []byte
	content int64 // 0 where body has it
	// texts are the promoted properties as texts.
	texts map[string]string
}

// properties reads properties as the database gives them.
func properties(written json.RawMessage) (map[string]any, error) {
	if len(written) == 0 || string(written) == "{}" || string(written) == "null" {
		return nil, nil
	}
	read := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		return nil, fmt.Errorf("read the properties of a message: %w", err)
	}
	return read, nil
}

// texts gives properties as texts, as the database compares them.
func texts(of map[string]any) map[string]string {
	made := make(map[string]string, len(of))
	for name, value := range of {
		switch v := value.(type) {
		case nil:
		case string:
			made[name] = v
		case bool:
			made[name] = fmt.Sprint(v)
		case json.Number:
			made[name] = v.String()
		default:
			if written, err := json.Marshal(v); err == nil {
				made[name] = string(written)
			}
		}
	}
	return made
}

// stored has the columns of a message.
type stored struct {
	id, size, content        int64
	kind                     *string
	promoted, written, parts json.RawMessage
	body                     []byte
	received                 time.Time
}

func ofClaim(c *flowstore.Claimed) stored {
	return stored{c.Message, c.Size, c.Content, c.Type, c.Promoted, c.Written, c.Parts, c.Body, c.ReceivedAt}
}

func ofHeld(h *flowstore.Held) stored {
	return stored{h.Message, h.Size, h.Content, h.Type, h.Promoted, h.Written, h.Parts, h.Body, h.ReceivedAt}
}

// message reads a message of the box.
func (s stored) message() (*delivered, error) {
	d := &delivered{body: s.body, content: s.content}
	d.ID, d.Size, d.Received = s.id, s.size, s.received
	if s.kind != nil {
		d.Type = *s.kind
	}
	var err error
	if d.Promoted, err = properties(s.promoted); err != nil {
		return nil, err
	}
	if d.Written, err = properties(s.written); err != nil {
		return nil, err
	}
	parts := []struct {
		ContentType string `json:"content_type"`
		Charset     string `json:"charset"`
		IsBody      bool   `json:"is_body"`
	}{}
	if len(s.parts) > 0 && json.Unmarshal(s.parts, &parts) == nil {
		for _, part := range parts {
			if part.IsBody {
				d.Content, d.Charset = part.ContentType, part.Charset
			}
		}
	}
	d.texts = texts(d.Promoted)
	return d, nil
}

// satisfies reports whether a message is one for a wait. types are those of properties, text where one is missing.
func satisfies(w *process.Wait, promoted, types map[string]string) bool {
	for property, value := range w.Equal {
		text, isThere := promoted[property]
		if !isThere || match.Canonical(text, typeOf(types, property)) != match.Canonical(value, typeOf(types, property)) {
			return false
		}
	}
	if len(w.Filter) == 0 {
		return true
	}
	return len(match.New(1, []match.Group{{SendPort: 1, Predicates: w.Filter}}).Match(promoted)) > 0
}

func typeOf(types map[string]string, property string) string {
	if t := types[property]; t != "" {
		return t
	}
	return "text"
}
