package process

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// names are the declarations of a part of the definition; parent has those of the part around it.
type names struct {
	parent       *names
	owner        *shape
	messages     map[string]string // with their types; empty: any
	variables    map[string]variable
	correlations map[string][]string
	namespaces   map[string]string
	ports        map[string]string // with the send ports to which they are bound
	env          *cel.Env
}

// variable is one with its type and its first value, as a state has it.
type variable struct {
	typ         string
	value       json.RawMessage
	isParameter bool // whoever starts an instance may give it
}

// valueTypes are the types of variables.
var valueTypes = map[string]*cel.Type{
	"text": cel.StringType, "integer": cel.IntType, "number": cel.DoubleType, "boolean": cel.BoolType, "timestamp": cel.TimestampType,
	"duration": cel.DurationType, "list": cel.ListType(cel.DynType), "any": cel.DynType,
}

// zeros are the first values of variables that have no other.
var zeros = map[string]string{
	"text": `""`, "integer": "0", "number": "0.0", "boolean": "false", "timestamp": `{"$time":"0001-01-01T00:00:00Z"}`,
	"duration": `{"$duration":"0s"}`, "list": "[]", "any": "null",
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedNames are those of expressions themselves.
var reservedNames = []string{
	"now", "new_id", "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
	"loop",
	"package", "namespace", "return", "var", "void", "while", "all", "exists", "map", "filter", "has", "size", "string", "int", "double",
	"bool",
	"duration", "timestamp", "list", "type", "dyn", "bytes", "uint",
}

func newNames(parent *names, owner *shape) *names {
	n := &names{
		parent: parent, owner: owner, messages: map[string]string{}, variables: map[string]variable{}, correlations: map[string][]string{},
		namespaces: map[string]string{}, ports: map[string]string{},
	}
	if parent != nil {
		n.namespaces, n.ports = parent.namespaces, parent.ports
	}
	return n
}

// declare reads the declarations of an object into names. Those around are seen through.
func (c *compiler) declare(o *object, n *names, withParameters bool) {
	for _, name := range o.members("messages") {
		path := below(o.path, "messages", name)
		typ, is := o.member("messages", name).(string)
		switch {
		case !is || typ == "":
			c.problem(path, `Write a message type, namespace#Root, or any.`, "the type of %s is %s", name, describe(o.member("messages", name)))
		case typ == "any":
			typ = ""
		case !c.known.MessageTypes[typ]:
			c.problem(path, "Define it, or write any.", "there is no message type %q", typ)
		}
		if c.isFree(path, n, name) {
			n.messages[name] = typ
		}
	}
	sections := []string{"variables"}
	if withParameters {
		sections = append(sections, "parameters")
	}
	for _, section := range sections {
		for _, name := range o.members(section) {
			path := below(o.path, section, name)
			v := c.variable(path, o.member(section, name))
			v.isParameter = section == "parameters"
			if c.isFree(path, n, name) {
				n.variables[name] = v
			}
		}
	}
	for _, name := range o.members("correlations") {
		c.declareSet(o, n, name)
	}
	c.extend(n)
}

// setMost is how many properties a correlation set has at most.
const setMost = 8

func (c *compiler) declareSet(o *object, n *names, name string) {
	path := below(o.path, "correlations", name)
	given, _ := o.member("correlations", name).([]any)
	if len(given) < 1 || len(given) > setMost {
		c.problem(path, "Write a list of 1 to 8 properties.", "correlation set %s is %s", name, describe(o.member("correlations", name)))
	}
	var properties []string
	for i, one := range given {
		property, _ := one.(string)
		c.wantProperty(below(path, itoa(i)), property)
		if slices.Contains(properties, property) {
			c.problem(below(path, itoa(i)), "Leave it out.", "property %q is twice in the set", property)
			continue
		}
		properties = append(properties, property)
	}
	if _, isThere := n.correlations[name]; !isThere {
		n.correlations[name] = properties
	}
}

// unaskable are properties that no filter can ask for.
var unaskable = []string{"InterchangeID", "ParentMessageID", "ReceivedTime", "MessageID"}

func (c *compiler) wantProperty(path []string, name string) {
	if slices.Contains(unaskable, name) {
		c.problem(path, "Name another one.", "property %q is not the same for two messages", name)
	} else if _, isKnown := c.known.Properties[name]; !isKnown {
		c.problem(path, "Declare it in the property schema of its namespace.", "property %q is not declared", name)
	}
}

func (c *compiler) isFree(path []string, n *names, name string) bool {
	switch {
	case !identifier.MatchString(name):
		c.problem(path, "Write letters, digits and _, beginning with a letter.", "%q is no name", name)
	case slices.Contains(reservedNames, name):
		c.problem(path, "Choose another name.", "%q is a word of expressions", name)
	case n.has(name):
		c.problem(path, "Choose another name.", "%q is declared twice", name)
	default:
		return true
	}
	return false
}

// has reports whether a name is that of a message or variable, here or around.
func (n *names) has(name string) bool {
	for ; n != nil; n = n.parent {
		_, isMessage := n.messages[name]
		_, isVariable := n.variables[name]
		if isMessage || isVariable {
			return true
		}
	}
	return false
}

func (c *compiler) variable(path []string, given any) variable {
	v := variable{}
	var first any
	switch value := given.(type) {
	case string:
		v.typ = value
	case map[string]any:
		o := c.object(path, value, "")
		v.typ, first = o.text("type"), o.get("value")
		o.end()
	}
	if _, isKnown := valueTypes[v.typ]; !isKnown {
		c.problem(path, "Write one of "+strings.Join(slices.Sorted(maps.Keys(valueTypes)), ", ")+", or {type, value}.",
			"there is no type %q", v.typ)
		v.typ = "any"
	}
	v.value = json.RawMessage(zeros[v.typ])
	if first != nil {
		value, err := valueOfType(plainValue(first), v.typ)
		if err != nil {
			c.problem(below(path, "value"), "Write one of its type.", "the first value is no %s", v.typ)
			return v
		}
		v.value = encodeValue(value)
	}
	return v
}

// extend gives names the environment of their expressions.
func (c *compiler) extend(n *names) {
	around := c.base
	if n.parent != nil {
		around = n.parent.env
	}
	var options []cel.EnvOption
	for name := range n.messages {
		options = append(options, cel.Variable(name, messageType))
	}
	for name, v := range n.variables {
		options = append(options, cel.Variable(name, valueTypes[v.typ]))
	}
	n.env = around
	if len(options) == 0 {
		return
	}
	if env, err := around.Extend(options...); err == nil {
		n.env = env
	}
}

// with declares one more variable, such as the element of a loop.
func (c *compiler) with(n *names, name string, of *cel.Type) {
	n.variables[name] = variable{typ: "any", value: json.RawMessage("null")}
	if env, err := n.env.Extend(cel.Variable(name, of)); err == nil {
		n.env = env
	}
}

// message finds the declaration of a message.
func (n *names) message(name string) (typ string, owner *shape, isThere bool) {
	for ; n != nil; n = n.parent {
		if typ, isThere := n.messages[name]; isThere {
			return typ, n.owner, true
		}
	}
	return "", nil, false
}

func (n *names) variable(name string) (v variable, owner *shape, isThere bool) {
	for ; n != nil; n = n.parent {
		if v, isThere := n.variables[name]; isThere {
			return v, n.owner, true
		}
	}
	return variable{}, nil, false
}

func (n *names) correlation(name string) (properties []string, owner *shape, isThere bool) {
	for ; n != nil; n = n.parent {
		if properties, isThere := n.correlations[name]; isThere {
			return properties, n.owner, true
		}
	}
	return nil, nil, false
}

// elementType is the type of the elements of what an expression gives.
func elementType(list *cel.Type) *cel.Type {
	if list != nil && list.Kind() == types.ListKind && len(list.Parameters()) == 1 {
		return list.Parameters()[0]
	}
	return cel.DynType
}
