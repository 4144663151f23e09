package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Keys by which a state says what JSON has no value for. A key of a map that begins with the sign is written with another one before it.
const (
	timeKey     = "$time"
	durationKey = "$duration"
	numberKey   = "$number"
	partKey     = "$part"
	messageKey  = "$message"
)

// encodeValue writes a value of an expression as a state has it.
func encodeValue(value ref.Val) json.RawMessage {
	encoded, err := json.Marshal(encodable(value))
	if err != nil {
		return json.RawMessage("null")
	}
	return encoded
}

// keptPart is a part as a state has it.
type keptPart struct {
	Text   string `json:"text"`
	IsJSON bool   `json:"json,omitempty"`
}

func encodable(value ref.Val) any {
	switch v := value.(type) {
	case types.String:
		return string(v)
	case types.Int:
		return int64(v)
	case types.Uint:
		return uint64(v)
	case types.Double:
		return encodableNumber(float64(v))
	case types.Bool:
		return bool(v)
	case types.Timestamp:
		return map[string]any{timeKey: v.Time.UTC().Format(time.RFC3339Nano)}
	case types.Duration:
		return map[string]any{durationKey: v.String()}
	case types.Bytes:
		return string(v)
	case *partValue:
		return v.encodable()
	case traits.Mapper:
		members := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name := textOf(key)
			if strings.HasPrefix(name, "$") {
				name = "$" + name
			}
			members[name] = encodable(v.Get(key))
		}
		return members
	case traits.Lister:
		elements := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, encodable(it.Next()))
		}
		return elements
	}
	return nil
}

func encodableNumber(number float64) any {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return map[string]any{numberKey: strconv.FormatFloat(number, 'g', -1, 64)}
	}
	text := strconv.FormatFloat(number, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.Number(text)
}

// readJSON reads JSON without losing a digit.
func readJSON(written []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errors.New("there is more behind the value")
	}
	return value, nil
}

// decodeValue reads a value of a state.
func (r *run) decodeValue(encoded json.RawMessage) (ref.Val, error) {
	value, err := readJSON(encoded)
	if err != nil {
		return nil, err
	}
	return r.decodable(value)
}

func (r *run) decodable(value any) (ref.Val, error) {
	switch v := value.(type) {
	case []any:
		elements := make([]ref.Val, len(v))
		for i, element := range v {
			decoded, err := r.decodable(element)
			if err != nil {
				return nil, err
			}
			elements[i] = decoded
		}
		return types.NewRefValList(types.DefaultTypeAdapter, elements), nil
	case map[string]any:
		if len(v) == 1 {
			for key, inner := range v {
				if decoded, is, err := r.decodeSpecial(key, inner); is {
					return decoded, err
				}
			}
		}
		members := map[ref.Val]ref.Val{}
		for key, member := range v {
			decoded, err := r.decodable(member)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(key, "$$") {
				key = key[1:]
			}
			members[types.String(key)] = decoded
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, members), nil
	}
	return plainValue(value), nil
}

func (r *run) decodeSpecial(key string, inner any) (value ref.Val, is bool, err error) {
	text, _ := inner.(string)
	switch key {
	case timeKey:
		at, err := time.Parse(time.RFC3339Nano, text)
		return types.Timestamp{Time: at}, true, err
	case durationKey:
		length, err := time.ParseDuration(text)
		return types.Duration{Duration: length}, true, err
	case numberKey:
		number, err := strconv.ParseFloat(text, 64)
		return types.Double(number), true, err
	case partKey, messageKey:
		if r == nil {
			return nil, true, errors.New("a part stands where there can be none")
		}
		written, err := json.Marshal(inner)
		if err != nil {
			return nil, true, err
		}
		if key == partKey {
			kept := keptPart{}
			err = json.Unmarshal(written, &kept)
			return &partValue{r: r, kept: &kept}, true, err
		}
		message := &Message{}
		err = json.Unmarshal(written, message)
		return &partValue{r: r, message: message}, true, err
	}
	return nil, false, nil
}

// plainValue gives a value of JSON to expressions: a number is whole when it is written so.
func plainValue(value any) ref.Val {
	switch v := value.(type) {
	case nil:
		return types.NullValue
	case string:
		return types.String(v)
	case bool:
		return types.Bool(v)
	case json.Number:
		if n, err := v.Int64(); err == nil && !strings.ContainsAny(v.String(), ".eE") {
			return types.Int(n)
		}
		number, _ := v.Float64() // too large a one is infinite
		return types.Double(number)
	case []any:
		elements := make([]ref.Val, len(v))
		for i, element := range v {
			elements[i] = plainValue(element)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, elements)
	case map[string]any:
		members := make(map[ref.Val]ref.Val, len(v))
		for key, member := range v {
			members[types.String(key)] = plainValue(member)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, members)
	case []map[string]any:
		elements := make([]ref.Val, len(v))
		for i, element := range v {
			elements[i] = plainValue(element)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, elements)
	case time.Time:
		return types.Timestamp{Time: v}
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// valueOfType makes of a value one of the type of a variable, where that loses nothing.
func valueOfType(value ref.Val, typ string) (ref.Val, error) {
	fits := false
	switch v := value.(type) {
	case types.String:
		switch typ {
		case "text":
			return v, nil
		case "timestamp":
			at, err := time.Parse(time.RFC3339Nano, string(v))
			return types.Timestamp{Time: at}, err
		case "duration":
			if length, is := readInterval(string(v)); is {
				return types.Duration{Duration: length}, nil
			}
		}
	case types.Int:
		if typ == "number" {
			return types.Double(v), nil
		}
		fits = typ == "integer"
	case types.Double:
		if typ == "integer" && float64(v) == math.Trunc(float64(v)) && math.Abs(float64(v)) < 1<<53 {
			return types.Int(v), nil
		}
		fits = typ == "number"
	case types.Bool:
		fits = typ == "boolean"
	case types.Timestamp:
		fits = typ == "timestamp"
	case types.Duration:
		fits = typ == "duration"
	case traits.Lister:
		fits = typ == "list"
	}
	if fits || typ == "any" {
		return value, nil
	}
	return nil, fmt.Errorf("a value of type %s is no %s", value.Type().TypeName(), typ)
}

// textOf writes a value as a text.
func textOf(value ref.Val) string {
	switch v := value.(type) {
	case types.String:
		return string(v)
	case types.Double:
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	case types.Timestamp:
		return v.Time.UTC().Format(time.RFC3339Nano)
	case types.Null:
		return ""
	case *partValue:
		part, err := v.part()
		if err != nil {
			return ""
		}
		return part.Text()
	case traits.Mapper, traits.Lister:
		return string(jsonOf(value))
	}
	if text, is := value.ConvertToType(types.StringType).(types.String); is {
		return string(text)
	}
	return fmt.Sprint(value.Value())
}

// jsonOf writes a value as JSON for others than a state.
func jsonOf(value ref.Val) json.RawMessage {
	encoded, err := json.Marshal(presentable(value))
	if err != nil {
		return json.RawMessage("null")
	}
	return encoded
}

func presentable(value ref.Val) any {
	switch v := value.(type) {
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil
		}
		return json.Number(strconv.FormatFloat(float64(v), 'f', -1, 64))
	case types.Int, types.Uint, types.Bool, types.String, types.Null:
		return encodable(value)
	case *partValue:
		part, err := v.part()
		switch {
		case err != nil:
			return nil
		case part.IsJSON():
			return json.RawMessage(slices.Clone(part.Fragment()))
		}
		return part.Text()
	case traits.Mapper:
		members := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			members[textOf(key)] = presentable(v.Get(key))
		}
		return members
	case traits.Lister:
		elements := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, presentable(it.Next()))
		}
		return elements
	}
	return textOf(value)
}

// native gives a value as arguments of statements have it.
func native(value ref.Val) any {
	switch v := value.(type) {
	case types.Null:
		return nil
	case types.String, types.Int, types.Bool, types.Double:
		return v.Value()
	case types.Timestamp:
		return v.Time
	case traits.Mapper, traits.Lister:
		return jsonOf(value)
	}
	return textOf(value)
}

var errNoNative = errors.New("the value stays within expressions")

// ConvertToNative and those that follow make a part a value of expressions.
func (v *partValue) ConvertToNative(reflect.Type) (any, error) { return nil, errNoNative }
