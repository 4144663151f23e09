package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Problems reads settings into a struct that has the defaults, as [Decode] does, and gives all that is wrong with them, each with its
// path. The struct is good to use where there is none.
func Problems(settings json.RawMessage, into any) []Problem {
	return problems([]string{"settings"}, settings, reflect.ValueOf(into).Elem())
}

func problems(path []string, value json.RawMessage, into reflect.Value) []Problem {
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return []Problem{{Path: path, Message: "it is no object", Remedy: "Write names of settings with their values."}}
	}
	fields := map[string]reflect.Value{}
	for i := range into.NumField() {
		if name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = into.Field(i)
		}
	}
	var found []Problem
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := append(slices.Clone(path), name)
		field, ok := fields[name]
		if !ok {
			found = append(found, Problem{
				Path: at, Message: "there is no such setting",
				Remedy: "The settings here are " + strings.Join(slices.Sorted(maps.Keys(fields)), ", ") + ".",
			})
			continue
		}
		if _, reads := field.Addr().Interface().(json.Unmarshaler); !reads && field.Kind() == reflect.Struct {
			found = append(found, problems(at, object[name], field)...)
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(object[name]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(field.Addr().Interface()); err != nil && !errors.Is(err, io.EOF) {
			found = append(found, unreadable(at, err))
		}
	}
	return found
}

// unreadable gives the problem of a value that cannot be read.
func unreadable(path []string, err error) Problem {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field != "" {
			path = append(path, strings.Split(wrong.Field, ".")...)
		}
		return Problem{
			Path: path, Message: "a " + wrong.Value + " does not fit here", Remedy: "Write " + kindOf(wrong.Type) + ".",
		}
	}
	return Problem{Path: path, Message: strings.TrimPrefix(err.Error(), "json: "), Remedy: "Write what the documentation of the adapter says."}
}

// kindOf names the kind of values that a type holds.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object of names and values"
	}
	return "a text"
}
