package function

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A JSONColumn is a column of OPENJSON ... WITH: where it stands in each row, and whether it is a document itself.
type JSONColumn struct {
	Path       string // as JSON_VALUE takes it
	IsDocument bool   // AS JSON
}

// The numbers of the types of JSON that OPENJSON gives.
var jsonTypes = map[byte]string{'n': "0", '"': "1", 't': "3", 'f': "3", '[': "4", '{': "5"}

// OpenJSON gives the rows of OPENJSON as texts, nil for NULL: key, value and type of each member at the path, or with columns theirs of
// each element of an array, or of one object. Errors 13607, 13608 and 13609, and 13623 and 13624 of strict paths.
func OpenJSON(text, path string, columns []JSONColumn) ([][]*string, *fault.Error) {
	part, isStrict, err := jsonAt(text, path)
	if err != nil {
		_, bad := jsonProblem(value.Of(value.Int), isStrict, err)
		return nil, bad
	}
	members, keys := jsonMembers(part)
	if columns == nil {
		var rows [][]*string
		for i, m := range members {
			kind := jsonTypes[m[0]]
			if kind == "" {
				kind = "2"
			}
			rows = append(rows, []*string{&keys[i], scalarOf(m, true), &kind})
		}
		return rows, nil
	}
	if part[0] == '{' {
		members = []json.RawMessage{part}
	}
	var rows [][]*string
	for _, m := range members {
		row := make([]*string, len(columns))
		for i, c := range columns {
			found, isStrict, err := jsonAt(string(m), c.Path)
			if err != nil {
				if _, bad := jsonProblem(value.Of(value.Int), isStrict, err); bad != nil {
					return nil, bad
				}
				continue
			}
			isDocument := found[0] == '{' || found[0] == '['
			switch {
			case isDocument == c.IsDocument:
				row[i] = scalarOf(found, isDocument)
			case isStrict && c.IsDocument:
				return nil, fault.New(13624)
			case isStrict:
				return nil, fault.New(13623)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// scalarOf gives the text of a value, nil for null; that of a document only where it is asked for.
func scalarOf(part json.RawMessage, documents bool) *string {
	text := string(part)
	switch {
	case text == "null", !documents && (part[0] == '{' || part[0] == '['):
		return nil
	case part[0] == '"':
		text = unquoted(part)
	}
	return &text
}

// jsonMembers gives the elements of an array with their numbers, or the properties of an object in the order of its text.
func jsonMembers(part json.RawMessage) (members []json.RawMessage, keys []string) {
	decoder := json.NewDecoder(bytes.NewReader(part))
	open, err := decoder.Token()
	if err != nil {
		return nil, nil
	}
	delimiter, is := open.(json.Delim)
	if !is {
		return nil, nil
	}
	for decoder.More() {
		key := strconv.Itoa(len(members))
		if delimiter == '{' {
			name, err := decoder.Token()
			if err != nil {
				return members, keys
			}
			key, _ = name.(string)
		}
		var member json.RawMessage
		if decoder.Decode(&member) != nil {
			return members, keys
		}
		members, keys = append(members, json.RawMessage(strings.TrimSpace(string(member)))), append(keys, key)
	}
	return members, keys
}
