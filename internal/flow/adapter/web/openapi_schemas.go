package web

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// embed puts JSON Schemas, by their files, into the document, and gives the place of each. References among them lead to these places.
// Files of one name that are not the same, of two applications, have places of their own.
func (p *apiPage) embed(documents map[string]string) (places map[string]string) {
	schemas, named, taken := map[string]object{}, map[string]string{}, map[string]bool{}
	places = map[string]string{}
	suffix := unused("", func(suffix string) bool {
		for file, text := range documents {
			if other, has := p.sources[identifier(file)+suffix]; has && other != text {
				return true
			}
		}
		return false
	})
	for _, file := range slices.Sorted(maps.Keys(documents)) {
		var schema object
		if json.Unmarshal([]byte(documents[file]), &schema) != nil {
			continue
		}
		named[file] = unused(identifier(file)+suffix, func(name string) bool { return taken[name] })
		taken[named[file]] = true
		schemas[file], places[file] = schema, "#/components/schemas/"+named[file]
		if id, is := schema["$id"].(string); is {
			places[strings.TrimSuffix(id, "#")] = places[file]
		}
	}
	for file, schema := range schemas {
		base := file
		if id, is := schema["$id"].(string); is {
			base = id
		}
		delete(schema, "$id")
		moveReferences(schema, base, places[file], places)
		p.schemas[named[file]], p.sources[named[file]] = schema, documents[file]
	}
	return places
}

// moveReferences has references in a schema, which was base before and is at place now, lead to where other schemas are now.
func moveReferences(in any, base, place string, places map[string]string) {
	switch value := in.(type) {
	case []any:
		for _, element := range value {
			moveReferences(element, base, place, places)
		}
	case object:
		if reference, is := value["$ref"].(string); is {
			value["$ref"] = moved(reference, base, place, places)
		}
		for _, member := range value {
			moveReferences(member, base, place, places)
		}
	}
}

// moved gives where a reference leads now; one to a schema outside of the document stays as it is.
func moved(reference, base, place string, places map[string]string) string {
	target, pointer, _ := strings.Cut(reference, "#")
	if target == "" {
		return place + pointer
	}
	for _, name := range []string{target, path.Join(path.Dir(base), target), resolved(base, target)} {
		if at, is := places[name]; is {
			return at + pointer
		}
	}
	return reference
}

// resolved gives an address that is written relative to another one; empty where it cannot be read.
func resolved(base, target string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ""
	}
	t, err := b.Parse(target)
	if err != nil {
		return ""
	}
	return t.String()
}
