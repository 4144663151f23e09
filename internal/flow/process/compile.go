package process

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	"github.com/parley-broker/parley/internal/flow/parts"
)

// kindOrchestration is the kind of definitions that programs are made of.
const kindOrchestration = "orchestration"

// Program is an orchestration that was compiled. It does not change, and any number of goroutines may run instances of it.
type Program struct {
	name        string
	description string
	version     string
	shapes      []*shape
	root        *shape
	activations []Activation
	paths       map[string]*parts.Path
	properties  map[string]string
	called      map[string]bool
}

// Name is that of the orchestration.
func (p *Program) Name() string { return p.name }

// Activations are the receives that begin instances. One without any is begun by another orchestration.
func (p *Program) Activations() []Activation { return p.activations }

type compiler struct {
	known    Known
	program  *Program
	problems []Problem
	misread  []any // what is written of shapes with words that are none of theirs
	base     *cel.Env
	name     string
	calling  []string // orchestrations on the way to the one that is read
	prefix   []string // path within the definitions
	inside   string   // place of the call through which it is read
	later    []func(*compiler)
}

var baseOnce = sync.OnceValues(baseEnvironment)

// shapesMost bounds a program.
const shapesMost = 10_000

// Compile makes a program of the settings of an orchestration, or gives all that is wrong with them. Known says what they may name.
func Compile(name string, definition json.RawMessage, known Known) (*Program, []Problem) {
	base, err := baseOnce()
	if err != nil {
		return nil, []Problem{{Path: []string{kindOrchestration, name}, Message: err.Error(), Remedy: "report this as a fault of Parley"}}
	}
	c := &compiler{known: known, name: name, base: base, calling: []string{name}, prefix: []string{kindOrchestration, name}}
	c.program = &Program{
		name: name, paths: map[string]*parts.Path{}, properties: known.Properties, called: map[string]bool{},
	}
	given, err := readJSON(definition)
	if err != nil {
		c.problem(c.prefix, "Write an object of settings.", "the definition cannot be read: %v", err)
		return nil, c.problems
	}
	root := c.orchestration(given, nil)
	if root != nil {
		c.program.root = root
		c.activate(root)
		c.analyse(root)
		c.program.version = c.versionOf(definition)
	}
	if len(c.problems) > 0 || root == nil {
		return nil, sorted(c.problems)
	}
	return c.program, nil
}

func sorted(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return slices.Compare(a.Path, b.Path) })
	return slices.CompactFunc(problems, func(a, b Problem) bool { return a.String() == b.String() })
}

// versionOf is the same for the same shapes: those of called orchestrations count, descriptions and states do not.
func (c *compiler) versionOf(definition json.RawMessage) string {
	hash := sha256.New()
	add := func(definition json.RawMessage) {
		settings := map[string]json.RawMessage{}
		if json.Unmarshal(definition, &settings) != nil {
			return
		}
		for _, setting := range []string{"messages", "parameters", "variables", "correlations", "ports", "namespaces", "body"} {
			value, err := readJSON(settings[setting])
			if err != nil {
				continue
			}
			written, err := json.Marshal(value)
			if err == nil {
				fmt.Fprintf(hash, "%s %d %s\n", setting, len(written), written)
			}
		}
	}
	add(definition)
	for _, called := range slices.Sorted(maps.Keys(c.program.called)) {
		fmt.Fprintf(hash, "call %q\n", called)
		add(c.known.Orchestrations[called])
	}
	return hex.EncodeToString(hash.Sum(nil)[:12])
}

// unread are the settings that a host and the database know.
var settingsOfOthers = []string{
	"application", "host", "description", "state", "unread", "activations", "running", "priority", "concurrency", "batch", "retry_policy",
}

// orchestration reads the whole of one: the root, or one that is called as a part of a shape.
func (c *compiler) orchestration(given any, caller *shape) *shape {
	if _, is := given.(map[string]any); !is {
		c.problem(c.prefix, "Write an object of settings.", "the definition is %s", describe(given))
		return nil
	}
	o := c.object(c.prefix, given, "")
	for _, setting := range settingsOfOthers {
		o.get(setting)
	}
	if caller == nil {
		c.program.description, _ = o.given["description"].(string)
	}
	s := c.shape("sequence", below(c.prefix, "body"), caller)
	n := newNames(nil, s)
	s.names = n
	for _, prefix := range o.members("namespaces") {
		uri, is := o.member("namespaces", prefix).(string)
		if !is || !identifier.MatchString(prefix) {
			c.problem(below(c.prefix, "namespaces", prefix), "Write a prefix and a namespace.", "%s is %s", prefix,
				describe(o.member("namespaces", prefix)))
		}
		n.namespaces[prefix] = uri
	}
	c.declare(o, n, true)
	c.ports(o, n)
	body := o.list("body")
	if len(body) == 0 {
		c.problem(c.prefix, "Give it: a list of shapes, such as [{receive: {message: order, activate: true}}].",
			"an orchestration needs a body")
	}
	c.fillSequence(s, body, n)
	o.end()
	for _, check := range c.later {
		check(c)
	}
	c.later = nil
	return s
}

func (c *compiler) ports(o *object, n *names) {
	for _, name := range o.members("ports") {
		path := below(o.path, "ports", name)
		p := c.object(path, o.member("ports", name), "send_port")
		bound := p.text("send_port")
		if bound != "" && !c.known.SendPorts[bound] {
			c.problem(below(path, "send_port"), "Define it, or name another one.", "there is no send port %q", bound)
		}
		p.end()
		n.ports[name] = bound
	}
}

func (c *compiler) placeOf(path []string) string {
	return c.inside + strings.Join(path[min(len(c.prefix), len(path)):], "/")
}

func (c *compiler) shape(kind string, path []string, parent *shape) *shape {
	s := &shape{id: len(c.program.shapes), kind: kind, path: path, place: c.placeOf(path), parent: parent}
	c.program.shapes = append(c.program.shapes, s)
	if parent != nil {
		parent.children = append(parent.children, s)
	}
	if len(c.program.shapes) == shapesMost {
		c.problem(path, "Start a part of it as an orchestration of its own.", "the orchestration has more than %d shapes", shapesMost)
	}
	return s
}

// block reads a list of shapes as a branch of another one.
func (c *compiler) block(o *object, key string, n *names, parent *shape, label string) *shape {
	return c.blockAt(o.at(key), o.list(key), n, parent, label)
}

func (c *compiler) blockAt(path []string, list []any, n *names, parent *shape, label string) *shape {
	s := c.shape("sequence", path, parent)
	s.label = label
	c.fillSequence(s, list, n)
	return s
}

func (c *compiler) fillSequence(s *shape, list []any, n *names) {
	s.act = &sequence{}
	for i, element := range list {
		c.element(below(s.path, strconv.Itoa(i)), element, n, s)
	}
}

// readers read the shapes of each kind.
var readers map[string]func(*compiler, *shape, any, *names)

// element reads one shape of a list: an object with its kind, and a name.
func (c *compiler) element(path []string, given any, n *names, parent *shape) {
	o := c.object(path, given, "")
	kind := ""
	for _, key := range slices.Sorted(maps.Keys(o.given)) {
		if _, isKind := readers[key]; !isKind {
			continue
		}
		if kind != "" {
			c.problem(below(path, key), "Make an element of its own of each.", "one element has %s and %s", kind, key)
			return
		}
		kind = key
	}
	name := o.text("name")
	if kind == "" {
		if _, isObject := given.(map[string]any); isObject || given == nil {
			c.noShape(o)
		}
		return
	}
	if len(c.program.shapes) > shapesMost {
		return
	}
	s := c.shape(kind, below(path, kind), parent)
	s.label, s.digest = name, digestOf(kind, o.given[kind])
	readers[kind](c, s, o.get(kind), n)
	o.end()
}

// noShape refuses an element whose keys are no kinds. A key beside the name is a kind that is misspelt: it is named where it stands.
func (c *compiler) noShape(o *object) {
	remedy := "Write one of " + strings.Join(slices.Sorted(maps.Keys(readers)), ", ") + "."
	c.misread = append(c.misread, o.given)
	isNamed := false
	for _, key := range slices.Sorted(maps.Keys(o.given)) {
		if key != "name" {
			isNamed = true
			c.problem(o.at(key), remedy, "there is no shape %q", key)
		}
	}
	if !isNamed {
		c.problem(o.path, remedy, "the element has no shape")
	}
}

// digestOf is the same for what is written alike.
func digestOf(kind string, given any) string {
	written, err := json.Marshal(given)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(kind+" "), written...))
	return string(sum[:])
}

func itoa(n int) string { return strconv.Itoa(n) }
