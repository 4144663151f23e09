package definitions

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// depthMax bounds how deep values are nested in each other. The deepest that a definition needs is 8.
const depthMax = 64

// yamlError is how the parser says where it stopped.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// readYAML reads the documents of a file of YAML.
func readYAML(file string, written []byte, faults *faultList) (documents []*value) {
	decoder := yaml.NewDecoder(bytes.NewReader(written))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		switch {
		case errors.Is(err, io.EOF):
			return documents
		case err != nil:
			place := Place{File: file, Line: 1, Column: 1}
			text := err.Error()
			if found := yamlError.FindStringSubmatch(text); found != nil {
				text = found[2]
				if line, err := strconv.Atoi(found[1]); err == nil {
					place.Line = line
					if strings.HasPrefix(text, "did not find expected key") {
						place.Line = misplaced(written, line)
					}
				}
			}
			const remedy = "indent by blanks alone, and put texts into quotes that hold a colon and a blank or begin with a special sign, " +
				"and between braces those that hold ${NAME}"
			faults.add(place, remedy, "this is no YAML: %s", text)
			return documents
		}
		if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
			documents = append(documents, yamlReader{file, faults}.read(node.Content[0], 0))
		}
	}
}

// misplaced gives the line at which a mapping stops being YAML: the first that is indented as none of those around it. The parser says
// where the mapping begins, which is the answer where there is no such line.
func misplaced(written []byte, from int) int {
	lines := strings.Split(string(written), "\n")
	var open []int
	for i := max(from-1, 0); i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		if strings.TrimSpace(text) == "" || text[0] == '#' {
			continue
		}
		indent := len(lines[i]) - len(text)
		if len(open) > 0 && indent < open[len(open)-1] {
			for len(open) > 0 && open[len(open)-1] > indent {
				open = open[:len(open)-1]
			}
			if len(open) == 0 || open[len(open)-1] != indent {
				return i + 1
			}
			continue
		}
		if len(open) == 0 || indent > open[len(open)-1] {
			open = append(open, indent)
		}
	}
	return from
}

type yamlReader struct {
	file   string
	faults *faultList
}

func (r yamlReader) place(node *yaml.Node) Place {
	return Place{File: r.file, Line: node.Line, Column: node.Column}
}

// read gives the value of a node. One that is refused is null, and the rest is read nevertheless.
func (r yamlReader) read(node *yaml.Node, depth int) *value {
	v := &value{place: r.place(node)}
	refuse := func(remedy, format string, arguments ...any) *value {
		r.faults.add(v.place, remedy, format, arguments...)
		return v
	}
	if depth > depthMax {
		return refuse("write it flatter", "values are nested more than %d deep", depthMax)
	}
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return refuse("write it out where it is needed, or use a variable", "anchors and aliases are not taken")
	}
	if node.Style&yaml.TaggedStyle != 0 && node.Tag != "!!str" {
		return refuse("leave the tag out", "tag %s is not taken", node.Tag)
	}
	switch node.Kind {
	case yaml.SequenceNode:
		v.kind = isList
		for _, item := range node.Content {
			v.items = append(v.items, r.read(item, depth+1))
		}
	case yaml.MappingNode:
		v.kind = isObject
		for i := 0; i+1 < len(node.Content); i += 2 {
			r.readMember(v, node.Content[i], node.Content[i+1], depth)
		}
	case yaml.ScalarNode:
		r.readScalar(v, node)
	case yaml.DocumentNode, yaml.AliasNode: // A document is never within another, and an alias is refused above.
	}
	return v
}

func (r yamlReader) readMember(object *value, key, content *yaml.Node, depth int) {
	place := r.place(key)
	switch {
	case key.Kind != yaml.ScalarNode || key.Anchor != "":
		r.faults.add(place, "give a name", "a key is no text")
		return
	case key.Value == "<<" && key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0:
		r.faults.add(place, "write out what it would bring", "merge keys are not taken")
		return
	}
	addMember(object, member{key.Value, place, r.read(content, depth+1)}, r.faults)
}

// addMember adds a key, unless it is there.
func addMember(object *value, m member, faults *faultList) {
	if first := object.member(m.name); first != nil {
		faults.add(m.place, "leave one of the two out", "%q is given twice, first at %s", m.name, first.place)
		return
	}
	if strings.ContainsRune(m.name, 0) {
		faults.add(m.place, "leave it out", "a key holds the character U+0000")
		return
	}
	object.add(m)
}

func (r yamlReader) readScalar(v *value, node *yaml.Node) {
	v.kind, v.text = isText, node.Value
	isQuoted := node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0
	switch {
	case strings.ContainsRune(v.text, 0):
		r.faults.add(v.place, "leave it out", "a text holds the character U+0000, which PostgreSQL does not store")
	case !isQuoted:
		var remedy string
		v.kind, v.text, remedy = readPlain(node.Value)
		v.isPlain = v.kind == isText
		if remedy != "" {
			r.faults.add(v.place, remedy, "%s means one thing to some programs and another to others", node.Value)
		}
	}
}
