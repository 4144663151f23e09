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
// right. A setting that is null has its default. A field that is a struct has settings of its own.
func CheckSettings(settings json.RawMessage, into any) []Problem {
	if len(settings) == 0 {
		return nil
	}
	return checkObject([]string{"settings"}, settings, reflect.ValueOf(into).Elem())
}

func checkObject(path []string, object json.RawMessage, into reflect.Value) []Problem {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(object, &given); err != nil {
		return []Problem{{
			Path: path, Message: fmt.Sprintf("the %s are no object", path[len(path)-1]), Remedy: "Write names and values.",
		}}
	}
	fields := settingFields(into)
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := append(slices.Clone(path), name)
		field, known := fields[name]
		switch {
		case !known:
			problems = append(problems, Problem{
				Path: at, Message: fmt.Sprintf("the adapter has no setting %q", name),
				Remedy: "Its settings are " + strings.Join(SettingNames(into.Interface()), ", ") + ".",
			})
		case string(given[name]) == "null":
		case IsGroup(field.Type()):
			problems = append(problems, checkObject(at, given[name], field)...)
		default:
			value := reflect.New(field.Type())
			if err := json.Unmarshal(given[name], value.Interface()); err != nil {
				problems = append(problems, wrongValue(at, field, err))
				continue
			}
			field.Set(value.Elem())
		}
	}
	return problems
}

// IsGroup says whether a setting of a type has settings of its own.
func IsGroup(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && !reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// wrongValue says of which kind the value of a setting is.
func wrongValue(path []string, field reflect.Value, err error) Problem {
	name := path[len(path)-1]
	p := Problem{Path: path, Message: fmt.Sprintf("the value of %s is of another kind", name)}
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

// SettingNames gives the names of the settings in a struct, or of what a pointer to one leads to, in their order, with those of structs
// that are embedded in it.
func SettingNames(of any) []string {
	structure := reflect.Indirect(reflect.ValueOf(of))
	var names []string
	for field, value := range structure.Fields() {
		if field.Anonymous {
			names = append(names, SettingNames(value.Interface())...)
		} else if name := settingName(field); name != "" {
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

func settingFields(structure reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value, structure.NumField())
	for field, value := range structure.Fields() {
		if field.Anonymous {
			maps.Copy(fields, settingFields(value))
		} else if name := settingName(field); name != "" {
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
