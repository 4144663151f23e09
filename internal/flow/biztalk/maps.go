package biztalk

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/text"
)

// mapFile is a compiled map among the files.
type mapFile struct {
	*mapping.CompiledMap

	file, text string
}

// isCompiledMap says that a file is one, by its name.
func isCompiledMap(name string) bool { return strings.EqualFold(path.Ext(name), ".cs") }

// readMap takes a compiled map.
func (t *translation) readMap(source Source) error {
	opened, err := text.Open(bytes.NewReader(source.Body), "", false)
	if err != nil {
		return fault.InFile(err, source.Name)
	}
	written, err := io.ReadAll(io.LimitReader(opened, mapping.BytesMost+1))
	if err != nil {
		return fault.InFile(err, source.Name)
	}
	compiled, err := mapping.ReadCompiled(source.Name, string(written))
	if err != nil {
		return err
	}
	t.maps[compiled.Class] = mapFile{compiled, source.Name, string(written)}
	return nil
}

// answerCollections are the elements in which a port names the maps of its answers.
var answerCollections = []string{"InboundTransforms", "OutboundTransforms"}

// useMaps gives a port its maps, and reports whether one of them is left out.
func (t *translation) useMaps(port *node, kind, name string, settings object) (isStopped bool) {
	use := func(setting string, maps []*node) {
		var used []string
		for _, m := range maps {
			class, _, _ := strings.Cut(m.value("FullName", "Name"), ",")
			if made := t.useMap(m, kind, name, strings.TrimSpace(class)); made != "" {
				used = append(used, made)
			} else {
				isStopped = true
			}
		}
		if len(used) > 0 {
			settings[setting] = used
		}
	}
	use("maps", port.all("Transforms", "Transform"))
	answers := []*node{}
	for _, collection := range answerCollections {
		answers = append(answers, port.all(collection, "Transform")...)
	}
	use("response_maps", answers)
	return isStopped
}

// useMap defines a map, and gives its name; empty where it is left out.
func (t *translation) useMap(at *node, kind, port, class string) string {
	found, isThere := t.maps[class]
	switch {
	case !isThere:
		t.omitStopping(at, kind, port, "map "+class, "its compiled file is not among the files",
			"import its .btm.cs too, which Visual Studio writes beside the .btm")
		return ""
	case found.Foreign != nil:
		t.omitStopping(at, kind, port, "map "+class, found.Foreign.Error(), found.Foreign.Remedy)
		return ""
	case found.Source == "":
		t.omitStopping(at, kind, port, "map "+class, "it is for several messages", "run it in an orchestration")
		return ""
	}
	if t.objects[kindMap][class] != nil {
		return class
	}
	file := "maps/" + class + ".btm.cs"
	program := object{"file": file}
	if t.settings.Carry != nil {
		program["documents"] = object{file: found.text}
	}
	settings := object{"application": t.settings.Application, "language": mapping.XSLT, "program": program, "source": found.Source}
	if found.Target != "" {
		settings["target"] = found.Target
	}
	t.add(kindMap, class, settings)
	return class
}
