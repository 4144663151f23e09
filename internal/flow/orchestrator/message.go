package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	// failed are, of a failed message, all properties that it has as texts: nothing else of it is promoted but the report.
	failed map[string]string
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
	if d.texts[reportPrefix+"ErrorType"] != "" {
		d.failed = texts(d.Written)
		maps.Copy(d.failed, d.texts)
	}
	return d, nil
}

// reportPrefix begins the names of the properties that the engine promotes in a failed message.
const reportPrefix = "ErrorReport."

// asksForFailed reports whether a wait is one for failed messages.
func asksForFailed(w *process.Wait) bool {
	for property := range w.Equal {
		if strings.HasPrefix(property, reportPrefix) {
			return true
		}
	}
	return slices.ContainsFunc(w.Filter, func(p match.Predicate) bool { return strings.HasPrefix(p.Property, reportPrefix) })
}

// satisfies reports whether a message is one for a wait. types are those of properties, text where one is missing. A wait for failed
// messages compares what such a message had promoted before, by which it belongs to its instance.
func satisfies(w *process.Wait, m *delivered, types map[string]string) bool {
	facts := m.texts
	if m.failed != nil && asksForFailed(w) {
		facts = m.failed
	}
	for property, value := range w.Equal {
		text, isThere := facts[property]
		if !isThere || match.Canonical(text, typeOf(types, property)) != match.Canonical(value, typeOf(types, property)) {
			return false
		}
	}
	if len(w.Filter) == 0 {
		return true
	}
	return len(match.New(1, []match.Group{{SendPort: 1, Predicates: w.Filter}}).Match(facts)) > 0
}

func typeOf(types map[string]string, property string) string {
	if t := types[property]; t != "" {
		return t
	}
	return "text"
}
