// Package biztalk reads files of BizTalk Server, which are binding files, schemas, pipelines and orchestrations, and makes definitions of
// the integration engine of them, with a list of what they leave out.
//
// A port that would not do what it did is written, but does not run: a receive location is disabled, a send port bound, and the list says
// why and what to do. Nothing that narrows the messages which a port gets is dropped from its filter.
package biztalk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// A Source is a file of BizTalk Server.
type Source struct {
	Name string
	Body []byte
}

// Settings say what the files do not.
type Settings struct {
	Application string       // of what belongs to none; empty: the first that the binding files name
	Resolve     xsd.Resolver // finds the schemas that schemas include; nil: they may include none
	// Carry gives the texts of a schema and of all that it includes, by their names from its folder; nil: definitions name the file alone.
	Carry func(file string) (documents map[string]string, err error)
}

// An Omission is something that the definitions leave out or change, with what to do about it; a stable format.
type Omission struct {
	File    string `json:"file"`
	Line    int64  `json:"line"`
	Column  int    `json:"column"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	What    string `json:"what"`
	Why     string `json:"why"`
	Instead string `json:"instead"`
	// IsStopped says that the object is written, but disabled or bound: it would not do what it did.
	IsStopped bool `json:"is_stopped"`
}

func (o Omission) String() string {
	stopped := ""
	if o.IsStopped {
		stopped = " It does not run until then."
	}
	return fmt.Sprintf("%s:%d:%d: %s %q: %s: %s.%s", o.File, o.Line, o.Column, o.Kind, o.Name, o.What, o.Why, stopped)
}

// A Role is a role of PostgreSQL that a host of the definitions names, and that has to be there before they are applied.
type Role struct {
	Name string `json:"role"`
	Host string `json:"host"`
}

// A Result is what the files became.
type Result struct {
	Definitions json.RawMessage // as parley_flow.apply takes them, with references to variables
	Variables   map[string]any  // with their values; nil where somebody has to give one
	Roles       []Role
	Omissions   []Omission
}

// Kinds of objects that definitions have.
const (
	kindApplication     = "application"
	kindHost            = "host"
	kindPropertySchema  = "property schema"
	kindMessageType     = "message type"
	kindPipeline        = "pipeline"
	kindMap             = "map"
	kindRetryPolicy     = "retry policy"
	kindReceivePort     = "receive port"
	kindReceiveLocation = "receive location"
	kindSendPort        = "send port"
	kindSendPortGroup   = "send port group"
)

type object = map[string]any

// A translation is the work on all files together.
type translation struct {
	settings  Settings
	objects   map[string]map[string]object // by kind and name
	variables map[string]any
	omissions []Omission
	renamed   map[string]map[string]string // names that objects could not keep, by kind
	roles     map[string]string            // of hosts
	declared  map[string]map[string]string // types of properties, by namespace and name
	classes   []propertyClass
	pipelines []pipelineFile
	maps      map[string]mapFile  // by class
	roots     map[string][]string // types of messages, by the file of their schema in small letters
	envelopes map[string]bool     // types whose schema describes an envelope
	bound     map[string]string   // send ports that orchestrations send through, and one of these
	called    []calledOrchestration
}

// Import translates files. Its error is a [fault.Fault]: a file cannot be read at all.
func Import(sources []Source, settings Settings) (*Result, error) {
	t := &translation{
		settings: settings, objects: map[string]map[string]object{}, variables: map[string]any{}, renamed: map[string]map[string]string{},
		roles: map[string]string{}, declared: map[string]map[string]string{}, bound: map[string]string{}, roots: map[string][]string{},
		envelopes: map[string]bool{}, maps: map[string]mapFile{},
	}
	var schemas []Source
	var pipelines, bindings []*node
	var orchestrations []Source
	for _, source := range sources {
		if isCompiledMap(source.Name) {
			if err := t.readMap(source); err != nil {
				return nil, err
			}
			continue
		}
		if isOrchestration(source) {
			orchestrations = append(orchestrations, source)
			continue
		}
		root, err := parse(source.Name, source.Body)
		if err != nil {
			return nil, err
		}
		switch {
		case root.name.Local == "BindingInfo":
			bindings = append(bindings, root)
		case root.name.Is(xsd.Space, "schema"):
			schemas = append(schemas, source)
		case root.name.Local == "Document" && root.child("Stages") != nil:
			pipelines = append(pipelines, root)
		default:
			return nil, &fault.Fault{
				Message: fmt.Sprintf("the root of the document is %s", root.name.Local), File: source.Name, Place: root.place,
				Expected: "BindingInfo of a binding file, schema of a schema, or Document of a pipeline",
				Remedy:   "export bindings by BTSTask ExportBindings or the administration console, or name an .xsd, .btp or .odx of the project",
			}
		}
	}
	t.chooseApplication(bindings)
	t.translateSchemas(schemas)
	for _, root := range pipelines {
		t.translatePipeline(root)
	}
	for _, root := range bindings {
		t.translateBindings(root)
	}
	for _, source := range orchestrations {
		if err := t.translateOrchestration(source); err != nil {
			return nil, err
		}
	}
	t.omitCalled()
	t.declareUsed()
	return t.result()
}

func (t *translation) result() (*Result, error) {
	definitions, err := json.Marshal(t.objects)
	if err != nil {
		return nil, fmt.Errorf("write the definitions: %w", err)
	}
	r := &Result{Definitions: definitions, Variables: t.variables, Omissions: t.omissions}
	for host, role := range t.roles {
		r.Roles = append(r.Roles, Role{role, host})
	}
	slices.SortFunc(r.Roles, func(a, b Role) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(r.Omissions, func(a, b Omission) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r, nil
}

// chooseApplication finds the application of what belongs to none.
func (t *translation) chooseApplication(bindings []*node) {
	at := &node{file: "--application"}
	for _, root := range bindings {
		for _, port := range append(root.all("ReceivePortCollection", "ReceivePort"), root.all("SendPortCollection", "SendPort")...) {
			if t.settings.Application == "" {
				t.settings.Application, at = port.value("ApplicationName"), port
			}
		}
	}
	if t.settings.Application == "" {
		t.settings.Application = "BizTalk"
	}
	t.settings.Application = t.name(at, kindApplication, t.settings.Application)
}

// omit adds to the list of what is left out.
func (t *translation) omit(at *node, kind, name, what, why, instead string) {
	t.omissions = append(t.omissions, Omission{
		File: at.file, Line: at.place.Line, Column: at.place.Column, Kind: kind, Name: name, What: what, Why: why, Instead: instead,
	})
}

// add adds an object. It reports false where there is one of this name.
func (t *translation) add(kind, name string, settings object) bool {
	if t.objects[kind] == nil {
		t.objects[kind] = map[string]object{}
	}
	if t.objects[kind][name] != nil {
		return false
	}
	t.objects[kind][name] = settings
	return true
}

// base is the name of a file without folders and extension, however the folders are written.
func base(file string) string {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	return strings.TrimSuffix(name, path.Ext(name))
}
