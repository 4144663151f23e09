package translator

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/value"
)

// writeJSON gives the rows as FOR JSON writes them; false without rows and without ROOT.
func (s *documentShape) writeJSON(settings *value.Settings, rows [][]value.Value) (string, bool) {
	if len(rows) == 0 && !s.hasRoot {
		return "", false
	}
	objects := make([]string, len(rows))
	for i, row := range rows {
		object := &jsonObject{}
		for n, c := range s.columns {
			if row[n].IsNull() && !s.showsNull {
				continue
			}
			steps := []string{c.name}
			if s.mode == "PATH" {
				steps = strings.Split(c.name, ".")
			}
			object.put(steps, s.jsonValue(settings, row[n], c))
		}
		objects[i] = object.String()
	}
	text := strings.Join(objects, ",")
	if !s.isBare {
		text = "[" + text + "]"
	}
	if s.hasRoot {
		text = "{" + quoteJSON(s.root) + ":" + text + "}"
	}
	return text, true
}

// A jsonObject keeps its members in the order of the columns.
type jsonObject struct {
	names  []string
	values map[string]any // a text of JSON, or an object
}

func (o *jsonObject) put(steps []string, text string) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	name := steps[0]
	if _, known := o.values[name]; !known {
		o.names = append(o.names, name)
	}
	if len(steps) == 1 {
		o.values[name] = text
		return
	}
	inner, is := o.values[name].(*jsonObject)
	if !is {
		inner = &jsonObject{}
		o.values[name] = inner
	}
	inner.put(steps[1:], text)
}

// String writes the object.
func (o *jsonObject) String() string {
	members := make([]string, len(o.names))
	for i, name := range o.names {
		text, is := o.values[name].(string)
		if inner, isObject := o.values[name].(*jsonObject); !is && isObject {
			text = inner.String()
		}
		members[i] = quoteJSON(name) + ":" + text
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (*documentShape) jsonValue(settings *value.Settings, v value.Value, c documentColumn) string {
	switch k := v.Kind(); {
	case v.IsNull():
		return "null"
	case c.isJSON:
		return settings.Text(v)
	case k == value.Bit:
		if v.Bool() {
			return "true"
		}
		return "false"
	case k.IsApproximate():
		return xmlText(settings, v)
	case k.IsMoney():
		return value.Display(v)
	case k.IsNumber():
		return settings.Text(v)
	case k.IsBinary():
		return quoteJSON(base64.StdEncoding.EncodeToString([]byte(v.Raw())))
	case k.IsTemporal():
		return quoteJSON(xmlText(settings, v))
	}
	return quoteJSON(settings.Text(v))
}

// quoteJSON writes a text as JSON, in which SQL Server escapes the slash too.
func quoteJSON(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""`
	}
	return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "/", `\/`)
}
