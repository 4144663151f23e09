package process

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// object is an object of the definition that is read key by key, so that what nobody asked for is refused.
type object struct {
	c     *compiler
	path  []string
	given map[string]any
	asked []string
}

func below(path []string, steps ...string) []string {
	return append(slices.Clone(path), steps...)
}

func (c *compiler) problem(path []string, remedy, format string, arguments ...any) {
	c.problems = append(c.problems, Problem{Path: path, Message: fmt.Sprintf(format, arguments...), Remedy: remedy})
}

// object reads an object; shorthand is the key that a text or a list alone stands for.
func (c *compiler) object(path []string, given any, shorthand string) *object {
	o := &object{c: c, path: path, given: map[string]any{}}
	switch value := given.(type) {
	case map[string]any:
		o.given = value
	case nil:
	default:
		if shorthand == "" {
			c.problem(path, "Write names and values.", "%s is %s", called(path), describe(given))
			break
		}
		o.given = map[string]any{shorthand: value}
	}
	return o
}

func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "missing"
	case string:
		return "the text " + strconv.Quote(shortened(v))
	case json.Number:
		return "the number " + v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	}
	return "an object"
}

func shortened(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "..."
	}
	return text
}

func (o *object) at(key string) []string { return below(o.path, key) }

func (o *object) get(key string) any {
	o.asked = append(o.asked, key)
	return o.given[key]
}

func (o *object) has(key string) bool {
	value, has := o.given[key]
	return has && value != nil
}

// need reports a key that is missing.
func (o *object) need(key, what string) bool {
	if o.has(key) {
		return true
	}
	o.get(key)
	o.c.problem(o.path, "Give it: "+what+".", "%s needs %s", called(o.path), key)
	return false
}

func (o *object) text(key string) string {
	switch value := o.get(key).(type) {
	case nil:
		return ""
	case string:
		if value != "" {
			return value
		}
	}
	o.c.problem(o.at(key), "Write a text.", "%s is %s", key, describe(o.given[key]))
	return ""
}

func (o *object) boolean(key string) bool {
	value := o.get(key)
	is, isBoolean := value.(bool)
	if value != nil && !isBoolean {
		o.c.problem(o.at(key), "Write true or false.", "%s is %s", key, describe(value))
	}
	return is
}

func (o *object) number(key string, least, most, otherwise int) int {
	value := o.get(key)
	if value == nil {
		return otherwise
	}
	if number, is := value.(json.Number); is {
		if n, err := strconv.Atoi(number.String()); err == nil && n >= least && n <= most {
			return n
		}
	}
	o.c.problem(o.at(key), fmt.Sprintf("Write a whole number from %d to %d.", least, most), "%s is %s", key, describe(value))
	return otherwise
}

func (o *object) list(key string) []any {
	switch value := o.get(key).(type) {
	case nil:
	case []any:
		return value
	default:
		o.c.problem(o.at(key), "Write a list.", "%s is %s", key, describe(value))
	}
	return nil
}

func (o *object) texts(key string) []string {
	var texts []string
	for i, value := range o.list(key) {
		text, is := value.(string)
		if !is || text == "" {
			o.c.problem(below(o.path, key, strconv.Itoa(i)), "Write a name.", "an element of %s is %s", key, describe(value))
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// members gives the members of an object in the order of their names.
func (o *object) members(key string) []string {
	switch value := o.get(key).(type) {
	case nil:
	case map[string]any:
		return slices.Sorted(maps.Keys(value))
	default:
		o.c.problem(o.at(key), "Write names and values.", "%s is %s", key, describe(value))
	}
	return nil
}

func (o *object) member(key, name string) any {
	whole, _ := o.given[key].(map[string]any) // members has refused all else
	return whole[name]
}

// called names in a message what stands at a path: elements of lists have numbers for names, which say nothing to a reader.
func called(path []string) string {
	last := path[len(path)-1]
	if _, err := strconv.Atoi(last); err == nil {
		return "the element"
	}
	return last
}

// end refuses the keys that nothing has asked for.
func (o *object) end() {
	for _, key := range slices.Sorted(maps.Keys(o.given)) {
		if !slices.Contains(o.asked, key) {
			asked := slices.Compact(slices.Sorted(slices.Values(o.asked)))
			o.c.problem(o.at(key), "It has "+strings.Join(asked, ", ")+".", "%s has no %q", called(o.path), key)
			o.c.misread = append(o.c.misread, o.given)
		}
	}
}

// isMisread reports whether a name stands in a shape that could not be read. A value that it lacks follows from that fault.
func (c *compiler) isMisread(name string) bool {
	return slices.ContainsFunc(c.misread, func(given any) bool { return namesIn(given, name) })
}

func namesIn(given any, name string) bool {
	switch value := given.(type) {
	case string:
		return value == name
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return namesIn(one, name) })
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), func(one any) bool { return namesIn(one, name) })
	}
	return false
}
