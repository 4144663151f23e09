package biztalk

import (
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/flow/text"
)

// stages are those of pipelines, by the numbers of their categories up to the first hyphen.
var stages = map[string]string{
	"9d0e4103": "decode", "9d0e4105": "disassemble", "9d0e410d": "validate", "9d0e410e": "resolve_party",
	"9d0e4101": "pre_assemble", "9d0e4107": "assemble", "9d0e4108": "encode",
}

// ownStages are those in which components stand, wherever a file has them.
var ownStages = map[string]string{
	"xml-disassembler": "disassemble", "flat-file-disassembler": "disassemble", "xml-validator": "validate", "xml-assembler": "assemble",
	"flat-file-assembler": "assemble",
}

var sendStages = map[string]bool{"pre_assemble": true, "assemble": true, "encode": true}

func stageOf(stage *node) string {
	category, _, _ := strings.Cut(strings.ToLower(stage.attrs["CategoryId"]), "-")
	return stages[category]
}

// builtIn are the pipelines that there are without a definition.
var builtIn = map[string]string{
	"XMLReceive": "receive", "PassThruReceive": "receive", "JSONReceive": "receive",
	"XMLTransmit": "send", "PassThruTransmit": "send", "JSONTransmit": "send",
}

// A pipelineFile is a pipeline of a file, which ports name by the class that was made of it.
type pipelineFile struct {
	class     string // without its namespace
	direction string
	name      string
	isWhole   bool            // each of its components has a counterpart
	has       map[string]bool // components
}

// A component is the counterpart of one of BizTalk.
type component struct {
	name     string
	settings []setting
}

// A setting of a component: its name there and here, and what its value is.
type setting struct {
	theirs, ours string
	form         form
}

// form is the kind of the value of a setting.
type form int

const (
	boolean      form = iota
	charset           // its name, or a name with the number of its code page
	messageType       // the class of a schema
	messageTypes      // classes of schemas, separated by |
)

// components are those of BizTalk that have a counterpart.
var components = map[string]component{
	"Microsoft.BizTalk.Component.XmlDasmComp": {"xml-disassembler", []setting{
		{"AllowUnrecognizedMessage", "allow_unrecognized", boolean},
		{"ValidateDocument", "validate", boolean},
		{"RecoverableInterchangeProcessing", "recoverable", boolean},
		{"EnvelopeSpecNames", "envelopes", messageTypes},
		{"DocumentSpecNames", "documents", messageTypes},
	}},
	"Microsoft.BizTalk.Component.XmlAsmComp": {"xml-assembler", []setting{
		{"EnvelopeDocSpecNames", "envelope", messageType}, {"AddXmlDeclaration", "declaration", boolean}, {"TargetCharset", "charset", charset},
	}},
	"Microsoft.BizTalk.Component.FFDasmComp": {"flat-file-disassembler", []setting{
		{"DocumentSpecName", "document", messageType},
		{"HeaderSpecName", "header", messageType},
		{"TrailerSpecName", "trailer", messageType},
		{"PreserveHeader", "preserve_header", boolean},
		{"ValidateDocumentStructure", "validate", boolean},
		{"RecoverableInterchangeProcessing", "recoverable", boolean},
	}},
	"Microsoft.BizTalk.Component.FFAsmComp": {"flat-file-assembler", []setting{
		{"DocumentSpecName", "document", messageType},
		{"HeaderSpecName", "header", messageType},
		{"TrailerSpecName", "trailer", messageType},
		{"TargetCharset", "charset", charset},
	}},
	"Microsoft.BizTalk.Component.XmlValidator": {"xml-validator", []setting{
		{"DocumentSpecName", "documents", messageTypes}, {"RecoverableInterchangeProcessing", "recoverable", boolean},
	}},
}

// codePage finds the number in Big-Endian-UTF16 (1201).
var codePage = regexp.MustCompile(`^.*\(([0-9]+)\)$`)

// settingsOf translates the settings of a component. It reports false where one names a schema that is not among the files.
func (t *translation) settingsOf(c component, value func(string) string) (settings object, isWhole bool) {
	settings, isWhole = object{}, true
	for _, s := range c.settings {
		written := value(s.theirs)
		if written == "" {
			continue
		}
		switch s.form {
		case boolean:
			settings[s.ours] = isTrue(written)
		case charset:
			if found, err := text.Lookup(codePage.ReplaceAllString(written, "$1")); err == nil {
				settings[s.ours] = found.Name
			} else {
				isWhole = false
			}
		case messageType, messageTypes:
			found, all := t.messageTypes(written)
			isWhole = isWhole && all
			if len(found) > 0 && s.form == messageType {
				settings[s.ours] = found[0]
			} else if len(found) > 0 {
				settings[s.ours] = found
			}
		}
	}
	return settings, isWhole
}

// messageTypes gives the types of messages of schemas, for the classes that were made of them: Orders.Schemas.Order, or with one of several
// roots Orders.Schemas.Order+Root, each with its assembly behind a comma. It reports false where the file of a schema is not there.
func (t *translation) messageTypes(written string) (found []string, all bool) {
	all = true
	for class := range strings.SplitSeq(written, "|") {
		class, _, _ = strings.Cut(class, ",")
		if class = strings.TrimSpace(class); class == "" {
			continue
		}
		class, root, _ := strings.Cut(class, "+")
		of := t.roots[strings.ToLower(class[strings.LastIndexByte(class, '.')+1:])]
		all = all && len(of) > 0
		for _, typ := range of {
			if root == "" || strings.HasSuffix(typ, "#"+root) || typ == root {
				found = append(found, typ)
			}
		}
	}
	return found, all
}

// translatePipeline translates a pipeline of a file.
func (t *translation) translatePipeline(root *node) {
	class := base(root.file)
	direction := "receive"
	for _, stage := range root.all("Stages", "Stage") {
		if sendStages[stageOf(stage)] {
			direction = "send"
		}
	}
	name := t.name(root, kindPipeline, class)
	if builtIn[name] != "" {
		name += " of " + t.settings.Application
	}
	p := pipelineFile{class: class, direction: direction, name: name, isWhole: true, has: map[string]bool{}}
	written := map[string][]object{}
	for _, c := range root.all("Stages", "Stage", "Components", "Component") {
		made, isWhole := t.component(c, name, propertyValue(c))
		p.isWhole = p.isWhole && isWhole
		if made == nil {
			continue
		}
		component, _ := made["component"].(string) // as it writes it
		in := ownStages[component]
		if sendStages[in] != (direction == "send") || in == "assemble" && len(written[in]) > 0 {
			p.isWhole = false
			t.omitStopping(c, kindPipeline, name, "component "+c.value("Name"), "it has no place in this pipeline",
				"a pipeline of the other direction, or one component that assembles")
			continue
		}
		written[in] = append(written[in], made)
		p.has[component] = true
	}
	t.add(kindApplication, t.settings.Application, object{})
	settings := object{"application": t.settings.Application, "direction": direction, "stages": written}
	t.describe(root, settings)
	if !t.add(kindPipeline, name, settings) {
		t.omit(root, kindPipeline, name, "a second pipeline of this name", "there is one",
			"import one of the two files alone, under another name")
		return
	}
	t.pipelines = append(t.pipelines, p)
}

// propertyValue reads the properties of a component of a .btp file.
func propertyValue(c *node) func(string) string {
	return func(name string) string {
		for _, property := range c.all("Properties", "Property") {
			if property.attrs["Name"] == name {
				return property.value("Value")
			}
		}
		return ""
	}
}

// isDispensable reports whether a component may be missing: without parties there is nothing to resolve.
func isDispensable(class string) bool { return class == "Microsoft.BizTalk.Component.PartyRes" }

// component translates a component of a pipeline, or lists it and gives nil. It reports whether the pipeline does without it what it did.
func (t *translation) component(at *node, pipeline string, value func(string) string) (made object, isWhole bool) {
	class, _, _ := strings.Cut(at.value("Name"), ",")
	if known, isKnown := components[class]; isKnown {
		settings, isWhole := t.settingsOf(known, value)
		if !isWhole {
			t.omitStopping(at, kindPipeline, pipeline, "schemas of component "+class, "they are not among the files",
				"import their .xsd files too")
		}
		if known.name == "flat-file-disassembler" && settings["document"] == nil {
			if isWhole {
				t.omitStopping(at, kindPipeline, pipeline, "component "+class, "it names no schema",
					"name the message type in its setting document")
			}
			return nil, false
		}
		if document, _ := settings["document"].(string); known.name == "flat-file-disassembler" && t.envelopes[document] {
			t.flatEnvelope(at, pipeline, settings)
		}
		made := object{"component": known.name}
		if len(settings) > 0 {
			made["settings"] = settings
		}
		return made, isWhole
	}
	what := "component " + class
	switch {
	case isDispensable(class):
		t.omit(at, kindPipeline, pipeline, what, "there are no parties", "nothing")
		return nil, true
	case strings.HasPrefix(class, "Microsoft.BizTalk.Component.Json"):
		t.omitStopping(at, kindPipeline, pipeline, what, "JSON stays JSON, and is not made XML of",
			"json-disassembler and json-assembler; the type of messages is the $id of their JSON Schema")
	case strings.HasPrefix(class, "Microsoft.BizTalk.Component.MIME"):
		t.omitStopping(at, kindPipeline, pipeline, what, "there are no components for MIME yet", "Parley's mail hub, or a program before it")
	default:
		t.omitStopping(at, kindPipeline, pipeline, what, "it is a program for BizTalk", "a program that receives from a service and publishes")
	}
	return nil, false
}

// flatEnvelope has the messages of a flat file taken out of the envelope that its schema describes.
func (t *translation) flatEnvelope(at *node, pipeline string, settings object) {
	settings["envelope"] = settings["document"]
	delete(settings, "document")
	if settings["recoverable"] == true {
		delete(settings, "recoverable")
		t.omit(at, kindPipeline, pipeline, "recoverable interchange processing of a flat file that is an envelope",
			"such a file is read as a whole", "read its parts by document, header and trailer")
	}
}

// usePipeline gives a location or port its pipeline and the settings of it.
func (t *translation) usePipeline(at *node, e *endpoint, settings object, direction string, elements []string, data string) {
	class := ""
	for _, element := range elements {
		if class == "" {
			if class = at.child(element).value("FullyQualifiedName", "Name"); class == "" {
				class = at.value(element)
			}
		}
	}
	class, _, _ = strings.Cut(class, ",")
	class = class[strings.LastIndexByte(class, ':')+1:] // some files have the assembly and its version in front
	local := class[strings.LastIndexByte(class, '.')+1:]
	passThrough := "PassThruReceive"
	if direction == "send" {
		passThrough = "PassThruTransmit"
	}
	name, has := passThrough, map[string]bool{}
	switch found := t.findPipeline(local, direction); {
	case found != nil:
		name, has = found.name, found.has
		if !found.isWhole {
			e.stop(at, "pipeline "+class, "components of it have no counterpart", "mend the pipeline as the list says of it, then start this")
		}
	case strings.HasPrefix(class, "Microsoft.BizTalk.DefaultPipelines.") && builtIn[local] == direction:
		name, has = local, map[string]bool{"xml-disassembler": local == "XMLReceive", "xml-assembler": local == "XMLTransmit"}
	case class != "":
		e.stop(at, "pipeline "+class, "its file is not among those that are imported; it is "+passThrough+" now",
			"import its .btp file too")
	}
	if name != passThrough {
		settings["pipeline"] = name
	}
	if made := t.pipelineSettings(at.child(data), e, class, has); len(made) > 0 {
		settings["pipeline_settings"] = made
	}
}

func (t *translation) findPipeline(class, direction string) *pipelineFile {
	for i, p := range t.pipelines {
		if strings.EqualFold(p.class, class) && p.direction == direction {
			return &t.pipelines[i]
		}
	}
	return nil
}

// pipelineSettings translates what a location or port sets of components of its pipeline.
func (t *translation) pipelineSettings(data *node, e *endpoint, class string, has map[string]bool) object {
	if data == nil || strings.TrimSpace(data.text) == "" {
		return nil
	}
	root, err := data.parseWithin()
	if err != nil {
		e.stop(data, "the settings of its pipeline", "they are no XML: "+err.Error(), "write them by hand")
		return nil
	}
	made := object{}
	for _, c := range root.all("Stages", "Stage", "Components", "Component") {
		properties := c.child("Properties")
		if properties == nil || len(properties.children) == 0 {
			continue
		}
		known, isKnown := components[c.attrs["Name"]]
		if !isKnown {
			if !isDispensable(c.attrs["Name"]) {
				e.stop(data, "settings of component "+c.attrs["Name"]+" in pipeline "+class, "it has no counterpart", "as for the pipeline")
			}
			continue
		}
		settings, isWhole := t.settingsOf(known, func(name string) string { return properties.value(name) })
		if !isWhole {
			e.stop(data, "schemas of component "+c.attrs["Name"], "they are not among the files", "import their .xsd files too")
		}
		if len(settings) > 0 && has[known.name] {
			made[known.name] = settings
		}
	}
	return made
}
