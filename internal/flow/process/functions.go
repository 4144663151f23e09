package process

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/parley-broker/parley/internal/flow/parts"
)

// pathFunctions are those whose first argument is a path; apply reads it.
var pathFunctions = []string{"text", "number", "has", "count", "texts", "parts"}

// baseEnvironment has the functions and names that expressions know before anything is declared.
func baseEnvironment() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true), ext.Strings(), cel.ParserExpressionSizeLimit(expressionMax),
		cel.ParserRecursionLimit(100), cel.Variable("now", cel.TimestampType), cel.Variable("new_id", cel.StringType),
	}
	for name, overloads := range memberFunctions() {
		options = append(options, cel.Function(name, overloads...))
	}
	return cel.NewEnv(options...)
}

// member is a function of messages and parts.
func member(name string, arguments []*cel.Type, result *cel.Type, of func(v *partValue, arguments []ref.Val) ref.Val) []cel.FunctionOpt {
	var overloads []cel.FunctionOpt
	for _, receiver := range []*cel.Type{messageType, partType} {
		all := append([]*cel.Type{receiver}, arguments...)
		id := receiver.TypeName() + "_" + name + "_" + strconv.Itoa(len(arguments))
		overloads = append(overloads, cel.MemberOverload(id, all, result, cel.FunctionBinding(func(values ...ref.Val) ref.Val {
			v, is := values[0].(*partValue)
			if !is {
				return types.MaybeNoSuchOverloadErr(values[0])
			}
			return of(v, values[1:])
		})))
	}
	return overloads
}

func first(arguments []ref.Val) string {
	text, _ := arguments[0].(types.String) // the types are checked
	return string(text)
}

var errNoPart = errors.New("there is no such part")

func memberFunctions() map[string][]cel.FunctionOpt {
	path, paths := []*cel.Type{cel.StringType}, func(second *cel.Type) []*cel.Type { return []*cel.Type{cel.StringType, second} }
	number := func(v *partValue, arguments []ref.Val) ref.Val {
		text, isThere, err := v.value(first(arguments))
		if err == nil && !isThere {
			if len(arguments) > 1 {
				return arguments[1]
			}
			err = errNoPart
		}
		if err != nil {
			return types.WrapErr(err)
		}
		parsed, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return types.NewErr("%q is no number", shortened(text))
		}
		return types.Double(parsed)
	}
	texts := func(v *partValue, arguments []ref.Val) ref.Val {
		text, isThere, err := v.value(first(arguments))
		switch {
		case err != nil:
			return types.WrapErr(err)
		case isThere:
			return types.String(text)
		case len(arguments) > 1:
			return arguments[1]
		}
		return types.WrapErr(errNoPart)
	}
	return map[string][]cel.FunctionOpt{
		"text":   append(member("text", path, cel.StringType, texts), member("text", paths(cel.StringType), cel.StringType, texts)...),
		"number": append(member("number", path, cel.DoubleType, number), member("number", paths(cel.DoubleType), cel.DoubleType, number)...),
		"has": member("has", path, cel.BoolType, func(v *partValue, arguments []ref.Val) ref.Val {
			found, value, err := v.find(first(arguments))
			if err != nil {
				return types.WrapErr(err)
			}
			truth, is := value.(bool)
			return types.Bool(len(found) > 0 || is && truth || value != nil && !is)
		}),
		"count": member("count", path, cel.IntType, func(v *partValue, arguments []ref.Val) ref.Val {
			found, _, err := v.find(first(arguments))
			if err != nil {
				return types.WrapErr(err)
			}
			return types.Int(len(found))
		}),
		"texts": member("texts", path, cel.ListType(cel.StringType), allOf(func(_ *partValue,
			p parts.Part,
		) ref.Val {
			return types.String(p.Text())
		})),
		"parts": member("parts", path, cel.ListType(partType), allOf(func(v *partValue, p parts.Part) ref.Val {
			return &partValue{
				r:     v.r,
				found: &p,
			}
		})),
		"json": member("json", nil, cel.DynType, asJSON),
		"body": member("body", nil, cel.StringType, func(v *partValue, _ []ref.Val) ref.Val {
			if v.message != nil {
				body, err := v.r.body(v.message)
				if err != nil {
					return types.WrapErr(err)
				}
				return types.String(body)
			}
			part, err := v.part()
			if err != nil {
				return types.WrapErr(err)
			}
			return types.String(part.Fragment())
		}),
		"property": member("property", path, cel.DynType, func(v *partValue,
			arguments []ref.Val,
		) ref.Val {
			return v.property(first(arguments))
		}),
	}
}

func allOf(one func(*partValue, parts.Part) ref.Val) func(*partValue, []ref.Val) ref.Val {
	return func(v *partValue, arguments []ref.Val) ref.Val {
		found, _, err := v.find(first(arguments))
		if err != nil {
			return types.WrapErr(err)
		}
		values := make([]ref.Val, len(found))
		for i, p := range found {
			values[i] = one(v, p)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	}
}

func asJSON(v *partValue, _ []ref.Val) ref.Val {
	part, err := v.part()
	if err != nil {
		return types.WrapErr(err)
	}
	if !part.IsJSON() {
		return types.NewErr("the message is XML and not JSON")
	}
	value, err := readJSON(part.Fragment())
	if err != nil {
		return types.WrapErr(err)
	}
	return plainValue(value)
}

// typedProperty gives the value of a property as its type says.
func typedProperty(value any, typ string) ref.Val {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		plain := plainValue(value)
		if typ == "number" {
			if whole, is := plain.(types.Int); is {
				return types.Double(whole)
			}
		}
		if whole, is := plain.(types.Double); is && typ == "integer" {
			return types.Int(whole)
		}
		return plain
	}
	switch typ {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n)
		}
	case "number":
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return types.Double(n)
		}
	case "boolean":
		if text == "true" || text == "false" {
			return types.Bool(text == "true")
		}
	case "timestamp":
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return types.Timestamp{Time: at}
		}
	}
	return types.String(text)
}
