package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// CheckSettings gives what is wrong with settings that [Decode] would read into a struct, one problem a setting, and reads those that are
// right. A setting that is null has its default.
func CheckSettings(settings json.RawMessage, into any) []Problem {
	if len(settings) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(settings, &given); err != nil {
		return []Problem{{Path: []string{"settings"}, Message: "the settings are no object", Remedy: "Write names and values."}}
	}
	fields := settingFields(into)
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field, known := fields[name]
		if !known {
			problems = append(problems, Problem{
				Path: []string{"settings", name}, Message: fmt.Sprintf("the adapter has no setting %q", name),
				Remedy: "Its settings are " + strings.Join(SettingNames(into), ", ") + ".",
			})
			continue
		}
		if string(given[name]) == "null" {
			continue
		}
		value := reflect.New(field.Type())
		if err := json.Unmarshal(given[name], value.Interface()); err != nil {
			problems = append(problems, wrongValue(name, field, err))
			continue
		}
		field.Set(value.Elem())
	}
	return problems
}

// wrongValue says of which kind the value of a setting is.
func wrongValue(name string, field reflect.Value, err error) Problem {
	p := Problem{Path: []string{"settings", name}, Message: fmt.Sprintf("the value of %s is of another kind", name)}
	if _, isKind := errors.AsType[*json.UnmarshalTypeError](err); !isKind {
		p.Message = fmt.Sprintf("the value of %s: %v", name, err)
	}
	switch {
	case field.Type() == reflect.TypeFor[Duration]():
		p.Remedy = `Write a number and a unit, such as "5 seconds".`
	case field.Kind() == reflect.Bool:
		p.Remedy = "Write true or false."
	case field.CanInt():
		p.Remedy = "Write a whole number."
	case field.Kind() == reflect.Map:
		p.Remedy = "Write an object of names and texts."
	case field.Kind() == reflect.Slice:
		p.Remedy = "Write a list."
	default:
		p.Remedy = "Write a text."
	}
	return p
}

// SettingNames gives the names of the settings in a struct, or of what a pointer to one leads to, in their order.
func SettingNames(of any) []string {
	structure := reflect.Indirect(reflect.ValueOf(of)).Type()
	var names []string
	for field := range structure.Fields() {
		if name := settingName(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func settingName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" || !field.IsExported() {
		return ""
	}
	return name
}

func settingFields(into any) map[string]reflect.Value {
	structure := reflect.ValueOf(into).Elem()
	fields := make(map[string]reflect.Value, structure.NumField())
	for field, value := range structure.Fields() {
		if name := settingName(field); name != "" {
			fields[name] = value
		}
	}
	return fields
}

// OneOf gives the problem of a setting that is none of some values; nil where it is one.
func OneOf(name, value string, allowed ...string) []Problem {
	if slices.Contains(allowed, value) {
		return nil
	}
	return []Problem{{
		Path: []string{"settings", name}, Message: fmt.Sprintf("the value %q of %s is not known", value, name),
		Remedy: "Write one of " + strings.Join(allowed, ", ") + ".",
	}}
}

// Between gives the problem of a setting that is not within bounds; nil where it is.
func Between(name string, value, least, most int64) []Problem {
	if value >= least && value <= most {
		return nil
	}
	return []Problem{{
		Path: []string{"settings", name}, Message: fmt.Sprintf("the value %d of %s is out of range", value, name),
		Remedy: fmt.Sprintf("Write a number from %d to %d.", least, most),
	}}
}

// NotBelow gives the problem of a duration that is shorter than it may be; nil where it is not.
func NotBelow(name string, value, least Duration) []Problem {
	if value >= least {
		return nil
	}
	return []Problem{{
		Path: []string{"settings", name}, Message: fmt.Sprintf("the value %s of %s is too short", value, name),
		Remedy: fmt.Sprintf("Write at least %s.", least),
	}}
}

// OnlySecrets gives the problems of secrets that are none of some names.
func OnlySecrets(given []string, allowed ...string) []Problem {
	var problems []Problem
	for _, name := range given {
		if slices.Contains(allowed, name) {
			continue
		}
		remedy := "The adapter has none: remove it."
		if len(allowed) > 0 {
			remedy = "Its secrets are " + strings.Join(allowed, ", ") + "."
		}
		problems = append(problems, Problem{
			Path: []string{"secrets", name}, Message: fmt.Sprintf("the adapter has no secret %q here", name), Remedy: remedy,
		})
	}
	return problems
}
