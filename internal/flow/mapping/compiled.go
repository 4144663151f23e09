package mapping

import (
	"encoding/xml"
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// A CompiledMap is a map of BizTalk as it was compiled.
type CompiledMap struct {
	Class          string // with its namespace, as bindings name it
	Source, Target string // types of messages; empty where they cannot be found, as of maps of several messages
	// Foreign says why it cannot run: it calls code of its own. Nil: it runs as it is.
	Foreign *fault.Fault
}

var (
	classNamespace = regexp.MustCompile(`(?m)^\s*namespace\s+([\w.]+)`)
	className      = regexp.MustCompile(`\bclass\s+(\w+)\s*:[^{]*\bTransformBase\b`)
)

// ReadCompiled reads what a .btm.cs says of its map.
func ReadCompiled(name, text string) (*CompiledMap, error) {
	f, err := prepareStylesheet(name, text)
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	class := className.FindStringSubmatch(text)
	if class == nil {
		return nil, &fault.Fault{
			Message: "the file has no class of a map", File: name, Expected: "a class that is a TransformBase",
			Remedy: "give the .btm.cs of a map",
		}
	}
	m := &CompiledMap{Class: class[1]}
	if space := classNamespace.FindStringSubmatch(text); space != nil {
		m.Class = space[1] + "." + m.Class
	}
	if m.Foreign = f.scan().foreign(); m.Foreign != nil {
		m.Foreign.File = name
	}
	m.Source, m.Target = f.types()
	return m, nil
}

// types finds the types that a compiled map takes and makes: the template of / applies the one of the root of the source, whose first
// element is the root of the target.
func (f file) types() (source, target string) {
	prefixes := map[string]string{"": ""}
	decoder := xml.NewDecoder(strings.NewReader(f.text))
	match, root := "", ""
	for {
		token, err := decoder.Token()
		if err != nil { // the end, or what the compiler refuses
			return source, target
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Space == "xmlns" {
				prefixes[a.Name.Local] = a.Value
			}
		}
		switch {
		case e.Name.Space == spaceXSL && e.Name.Local == "template":
			match = attribute(e, "match")
		case e.Name.Space == spaceXSL && e.Name.Local == "apply-templates" && match == "/" && root == "":
			root = attribute(e, "select")
			prefix, local, isPrefixed := strings.Cut(strings.TrimPrefix(root, "/"), ":")
			if !isPrefixed {
				prefix, local = "", prefix
			}
			if space := prefixes[prefix]; space != spaceAggregate {
				source = typeName(space, local)
			}
		case e.Name.Space != spaceXSL && e.Name.Space != spaceMSXSL && match != "" && match == root && target == "":
			target = typeName(e.Name.Space, e.Name.Local)
		}
	}
}

const spaceAggregate = "http://schemas.microsoft.com/BizTalk/2003/aggschema"

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func typeName(space, local string) string {
	if space == "" {
		return local
	}
	return space + "#" + local
}
