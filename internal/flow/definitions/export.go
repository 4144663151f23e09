package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A File is a file to write.
type File struct {
	Name    string
	Written []byte
}

// kinds are in the order in which somebody reads them: each refers to those before it.
var kinds = []string{
	"application", "host", "property schema", "message type", "pipeline", "map", "retry policy", "receive port", "receive location",
	"send port", "send port group", "orchestration",
}

// Write writes definitions as parley_flow.export gives them as YAML, which [Read] takes back.
func Write(exported json.RawMessage) ([]byte, error) { return WriteWith(exported, nil) }

// WriteWith writes definitions that use variables, and the variables with their values; nil says that a value has to be given elsewhere.
// All else that reads like a reference to a variable is written so that it stands for itself.
func WriteWith(exported json.RawMessage, variables map[string]any) ([]byte, error) {
	document, err := readExported(exported, variables)
	if err != nil {
		return nil, err
	}
	return writeYAML(document, variables)
}

// WriteEach writes a file for each kind, and the files that message types and maps carry beside them.
func WriteEach(exported json.RawMessage) ([]File, error) { return WriteEachWith(exported, nil) }

// WriteEachWith writes a file for each kind, and one for the variables.
func WriteEachWith(exported json.RawMessage, variables map[string]any) ([]File, error) {
	document, err := readExported(exported, variables)
	if err != nil {
		return nil, err
	}
	files := (&Document{root: document}).takeFiles()
	for _, kind := range document.members {
		written, err := writeYAML(&value{kind: isObject, members: []member{kind}}, variables)
		if err != nil {
			return nil, err
		}
		files = append(files, File{strings.ReplaceAll(kind.name, " ", "-") + ".yaml", written})
	}
	return files, nil
}

func readExported(exported json.RawMessage, variables map[string]any) (*value, error) {
	faults := &faultList{}
	documents := readJSON("export", exported, faults)
	if len(variables) > 0 && len(documents) > 0 {
		values, err := json.Marshal(variables)
		if err != nil {
			return nil, fmt.Errorf("write the values of variables: %w", err)
		}
		if given := readJSON("variables", values, faults); len(given) > 0 {
			documents[0].add(member{name: variablesSection, value: given[0]})
		}
	}
	if len(faults.faults) > 0 {
		return nil, faults.faults
	}
	document := documents[0]
	if document.kind != isObject {
		return nil, errors.New("the database gave definitions that are no object")
	}
	sorted := slices.Clone(document.members)
	slices.SortStableFunc(sorted, func(a, b member) int { return slices.Index(kinds, a.name) - slices.Index(kinds, b.name) })
	document.members, document.index = nil, nil
	for _, kind := range sorted {
		document.add(kind)
	}
	return document, nil
}

func writeYAML(document *value, variables map[string]any) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(document.node(variables))
	if err == nil {
		err = encoder.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("write definitions as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// plain is a text that needs no quotes, whatever reads it.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./*-]*( [A-Za-z0-9_./*-]+)*$`)

func (v *value) node(variables map[string]any) *yaml.Node {
	switch v.kind {
	case isNull:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case isBoolean:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: v.text}
	case isNumber:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.text}
	case isText:
		return textNode(reference.ReplaceAllStringFunc(v.text, func(found string) string {
			if _, isVariable := variables[found[2:len(found)-1]]; isVariable && !strings.HasPrefix(found, "$$") {
				return found
			}
			return "$" + found
		}))
	case isList:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v.items {
			list.Content = append(list.Content, item.node(variables))
		}
		return list
	default: // isObject
		object := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range v.members {
			object.Content = append(object.Content, textNode(m.name), m.value.node(variables))
		}
		return object
	}
}

func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
	if k, _, remedy := readPlain(text); k == isText && remedy == "" && plain.MatchString(text) {
		node.Style = 0
	}
	return node
}
