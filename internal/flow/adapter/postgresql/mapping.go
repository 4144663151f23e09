package postgresql

import (
	"bytes"
	"encoding/json"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// mapping says what becomes of the columns of a result.
type mapping struct {
	settings          *receiveSettings
	set               *rowSet
	key, body, typed  int // indices, -1 for none
	written, promoted map[int]string
}

func newMapping(s *receiveSettings, set *rowSet) (*mapping, error) {
	m := &mapping{settings: s, set: set, written: map[int]string{}, promoted: map[int]string{}}
	for _, c := range []struct {
		name string
		into *int
	}{{s.KeyColumn, &m.key}, {s.BodyColumn, &m.body}, {s.TypeColumn, &m.typed}} {
		*c.into = -1
		if c.name == "" {
			continue
		}
		var err error
		if *c.into, err = set.column(c.name); err != nil {
			return nil, err
		}
	}
	if err := m.find(s.Properties, m.written); err != nil {
		return nil, err
	}
	return m, m.find(s.Promoted, m.promoted)
}

// find gives each property the index of its column.
func (m *mapping) find(columns map[string]string, into map[int]string) error {
	for name, property := range columns {
		at, err := m.set.column(name)
		if err != nil {
			return err
		}
		into[at] = property
	}
	return nil
}

// input makes an input of a row.
func (m *mapping) input(values row) (input adapter.Input, key []byte, err error) {
	input = adapter.Input{MessageType: m.settings.MessageType, Written: map[string]any{}, Promoted: map[string]any{}}
	for at, property := range m.written {
		set(input.Written, property, scalar(m.set.columns[at].DataTypeOID, values[at]))
	}
	for at, property := range m.promoted {
		set(input.Promoted, property, scalar(m.set.columns[at].DataTypeOID, values[at]))
	}
	if m.key >= 0 && values[m.key] != nil {
		key = values[m.key]
		input.Key = ledgerKey(key)
	}
	if m.typed >= 0 {
		input.MessageType = string(values[m.typed])
	}
	if m.body >= 0 {
		input.Body, input.ContentType, input.Charset, err = bodyOf(m.set.columns[m.body].DataTypeOID, values[m.body])
	} else {
		input.ContentType, input.Charset = applicationJSON, "utf-8"
		input.Body, err = m.object(values)
	}
	if m.settings.ContentType != "" {
		input.ContentType = m.settings.ContentType
	}
	if input.Body == nil {
		input.Body = []byte{}
	}
	input.Size = int64(len(input.Body))
	return input, key, err
}

func set(into map[string]any, property string, value any) {
	if value != nil {
		into[property] = value
	}
}

// object writes a row as an object, its columns in their order.
func (m *mapping) object(values row) ([]byte, error) {
	var b bytes.Buffer
	for i, value := range values {
		b.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(m.set.columns[i].Name)
		if err != nil {
			return nil, err
		}
		written, err := jsonOf(m.set.columns[i].DataTypeOID, value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(written)
	}
	if len(values) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
