package biztalk

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/flow/mapping"
)

// list gives what stands between the first parentheses, parted by commas.
func list(words []lexeme) [][]lexeme {
	var all [][]lexeme
	var one []lexeme
	depth := 0
	for _, w := range words {
		switch {
		case w.kind == '(':
			depth++
			if depth == 1 {
				continue
			}
		case w.kind == ')':
			depth--
			if depth == 0 {
				return append(all, one)
			}
		case w.kind == ',' && depth == 1:
			all, one = append(all, one), nil
			continue
		}
		if depth > 0 {
			one = append(one, w)
		}
	}
	return all
}

func single(words []lexeme) string {
	if len(words) != 1 || words[0].kind != 'n' {
		return ""
	}
	return words[0].text
}

// correlated reads the sets behind port and message.
func (o *orchestration) correlated(rest [][]lexeme, into object) error {
	for _, one := range rest {
		key, name := "follow", single(one)
		if len(one) == 2 && one[0].text == "initialize" {
			key, name = "initialise", one[1].text
		}
		if !o.correlations[name] {
			return fmt.Errorf("%w: %s", errNotTranslated, written(one))
		}
		sets, _ := into[key].([]any)
		into[key] = append(sets, name)
	}
	return nil
}

// receive translates activate (filter) receive (port.operation, message, sets), of which activate and the filter may be missing.
func (o *orchestration) receive(s statement) (any, error) {
	at := max(indexOf(s.words, "receive"), 0)
	arguments := list(s.words[at:])
	into := object{}
	if s.begins("activate") {
		into["activate"] = true
		if at > 1 {
			groups, err := o.filter(s.words[1:at])
			if err != nil {
				return nil, err
			}
			into["filter"] = groups
		}
	}
	if len(arguments) < 2 || o.messages[single(arguments[1])] == nil {
		return nil, errNotTranslated
	}
	message, port := single(arguments[1]), single(arguments[0])
	into["message"] = o.names[message]
	if err := o.correlated(arguments[2:], into); err != nil {
		return nil, err
	}
	port, _, _ = strings.Cut(port, ".")
	o.received[port] = message
	switch {
	case o.ports[port] == "asked" && into["follow"] == nil:
		into["follow"] = []any{askedSet(port)}
	case o.ports[port] == "in" && into["filter"] == nil:
		into["from"] = port
	}
	if into["activate"] == nil && into["follow"] == nil {
		return nil, fmt.Errorf("%w: nothing says which instance gets the message", errNotTranslated)
	}
	return object{"receive": into}, nil
}

// filter reads predicates that are joined by && and ||, which binds less.
func (o *orchestration) filter(words []lexeme) ([]any, error) {
	var groups []any
	group := []any{}
	var one []lexeme
	flush := func() error {
		predicate, err := o.predicate(one)
		group, one = append(group, predicate), nil
		return err
	}
	for _, w := range words {
		switch {
		case w.kind == '(' || w.kind == ')':
		case w.text == "&&":
			if err := flush(); err != nil {
				return nil, err
			}
		case w.text == "||":
			if err := flush(); err != nil {
				return nil, err
			}
			groups, group = append(groups, group), []any{}
		default:
			one = append(one, w)
		}
	}
	err := flush()
	return append(groups, group), err
}

func (o *orchestration) predicate(words []lexeme) (any, error) {
	operators := map[string]string{"==": "=", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
	if len(words) == 2 && words[1].text == "exists" {
		name, err := o.propertyName(words[0].text)
		return object{"property": name, "operator": "exists"}, err
	}
	if len(words) != 3 || operators[words[1].text] == "" {
		return nil, fmt.Errorf("%w: the filter %s", errNotTranslated, written(words))
	}
	property, operator, value := words[0], operators[words[1].text], words[2]
	if property.kind != 'n' && value.kind == 'n' { // the value stands first
		property, value = value, property
		if turned := map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}[operator]; turned != "" {
			operator = turned
		}
	}
	name, err := o.propertyName(property.text)
	return object{"property": name, "operator": operator, "value": value.text}, err
}

// propertyName gives the name of a property by its class.
func (o *orchestration) propertyName(class string) (string, error) {
	name := o.t.property(use{o.at(1), kindOrchestration, o.name}, class)
	if !strings.Contains(name, "#") && name != "MessageType" && name != "ReceivePortName" {
		return name, fmt.Errorf("%w: property %s", errNotTranslated, class)
	}
	return name, nil
}

func (o *orchestration) send(s statement) (any, error) {
	arguments := list(s.words)
	if len(arguments) < 2 || o.messages[single(arguments[1])] == nil {
		return nil, errNotTranslated
	}
	port, _, _ := strings.Cut(single(arguments[0]), ".")
	into := object{"message": o.names[single(arguments[1])]}
	switch o.ports[port] {
	case "out":
		into["port"] = port
	case "asked":
		into["port"], into["initialise"] = port, []any{askedSet(port)}
	case "in":
		request := o.received[port]
		if request == "" {
			return nil, fmt.Errorf("%w: the answer to a request that is not received", errNotTranslated)
		}
		into["answers"] = o.names[request]
	}
	return object{"send": into}, o.correlated(arguments[2:], into)
}

// construct translates what gives messages content. A statement that has no counterpart leaves the whole to do.
func (o *orchestration) construct(s statement) (any, error) {
	var shapes []any
	var current object
	for _, inner := range s.block {
		shape, err := o.constructing(inner, current)
		if err != nil {
			return nil, err
		}
		if shape == nil {
			continue
		}
		if into, is := shape["construct"].(object); is {
			current = into
		}
		shapes = append(shapes, shape)
	}
	switch len(shapes) {
	case 0:
		return nil, fmt.Errorf("%w: it gives no content", errNotTranslated)
	case 1:
		return shapes[0], nil
	}
	return object{"scope": object{"do": shapes}}, nil
}

// constructing gives a new shape, or changes the one that gave the message its content.
func (o *orchestration) constructing(s statement, current object) (object, error) {
	if s.begins("transform") {
		return o.transform(s)
	}
	to, value, isAssignment := cutAssignment(s.words)
	if !isAssignment {
		return nil, o.document(s)
	}
	name := single(to)
	if o.documents[name] != nil {
		return nil, nil //nolint:nilnil // a document is made anew: nothing is to be done
	}
	if o.messages[name] != nil {
		from := single(value)
		switch {
		case o.messages[from] != nil:
			return object{"construct": object{"message": o.names[name], "from": o.names[from]}}, nil
		case o.documents[from] != nil && *o.documents[from] != "":
			return object{"construct": object{"message": o.names[name], "template": *o.documents[from]}}, nil
		}
		return nil, fmt.Errorf("%w: %s", errNotTranslated, s.String())
	}
	if current == nil {
		return nil, fmt.Errorf("%w: %s", errNotTranslated, s.String())
	}
	return nil, o.change(to, value, current)
}

// change sets a part or a property of the message that was constructed.
func (o *orchestration) change(to, value []lexeme, current object) error {
	e, err := o.expression(value)
	if err != nil {
		return err
	}
	put := func(section, key string) error {
		of, is := current[section].(object)
		if !is {
			of = object{}
			current[section] = of
		}
		of[key] = e.written
		return nil
	}
	message, field, _ := strings.Cut(to[0].text, ".")
	isCurrent := func(name string) bool { return o.messages[name] != nil && o.names[name] == current["message"] }
	switch {
	case to[0].text == "xpath":
		reader := &expressionReader{o: o, words: to[1:]}
		name, path, err := reader.xpathArguments()
		if err != nil || name != current["message"] {
			return errors.Join(err, errNotTranslated)
		}
		return put("set", path)
	case len(to) == 1 && field != "" && isCurrent(message):
		return put("set", fieldPath(field))
	case len(to) == 4 && to[1].text == "(" && isCurrent(to[0].text):
		property, err := o.propertyName(to[2].text)
		if err != nil || !strings.Contains(property, "#") {
			return errors.Join(err, errNotTranslated)
		}
		return put("properties", property)
	}
	return fmt.Errorf("%w: %s", errNotTranslated, written(to))
}

func cutAssignment(words []lexeme) (to, value []lexeme, isAssignment bool) {
	depth := 0
	for i, w := range words {
		switch {
		case w.kind == '(':
			depth++
		case w.kind == ')':
			depth--
		case w.text == "=" && depth == 0:
			return words[:i], words[i+1:], true
		}
	}
	return words, nil, false
}

// transform translates (outputs) = Map (inputs).
func (o *orchestration) transform(s statement) (object, error) {
	to, value, isAssignment := cutAssignment(s.words[1:])
	outputs := list(to)
	if !isAssignment || len(outputs) != 1 || len(value) == 0 || o.messages[single(outputs[0])] == nil {
		return nil, fmt.Errorf("%w: a map with several results", errNotTranslated)
	}
	var from []any
	for _, one := range list(value[1:]) {
		if o.messages[single(one)] == nil {
			return nil, fmt.Errorf("%w: an input of the map is %s", errNotTranslated, written(one))
		}
		from = append(from, o.names[single(one)])
	}
	name := value[0].text
	if err := o.useMap(s.line(), name); err != nil {
		return nil, err
	}
	return object{"transform": object{"map": name, "from": from, "to": o.names[single(outputs[0])]}}, nil
}

// useMap defines a map, of its compiled file or of the place where that is to be.
func (o *orchestration) useMap(line int64, class string) error {
	found, isThere := o.t.maps[class]
	if isThere && found.Foreign != nil {
		return fmt.Errorf("%w: %w", errNotTranslated, found.Foreign)
	}
	file := "maps/" + class + ".btm.cs"
	program := object{"file": file}
	settings := object{"application": o.t.settings.Application, "language": mapping.XSLT, "program": program}
	if isThere && o.t.settings.Carry != nil {
		program["documents"] = object{file: found.text}
	}
	if isThere && found.Source != "" {
		settings["source"] = found.Source
	}
	if o.t.add(kindMap, class, settings) && !isThere {
		o.t.omit(o.at(line), kindMap, class, "the map", "its compiled file is not among the files",
			"import its .btm.cs too, which Visual Studio writes beside the .btm, or put it into "+file)
	}
	return nil
}

// document follows what is loaded into a document.
func (o *orchestration) document(s statement) error {
	if len(s.words) == 0 {
		return errNotTranslated
	}
	name, method, _ := strings.Cut(s.words[0].text, ".")
	if o.documents[name] == nil {
		return fmt.Errorf("%w: %s", errNotTranslated, s.String())
	}
	arguments := list(s.words)
	if method != "LoadXml" || len(arguments) != 1 {
		return fmt.Errorf("%w: %s", errNotTranslated, s.String())
	}
	e, err := o.expression(arguments[0])
	if err != nil {
		return err
	}
	loaded := strings.TrimSpace(template(e, true))
	o.documents[name] = &loaded
	return nil
}

// assign translates an assignment to a variable, or the call of a method.
func (o *orchestration) assign(s statement) (any, error) {
	to, value, isAssignment := cutAssignment(s.words)
	name := single(to)
	switch {
	case !isAssignment:
		return nil, o.document(s)
	case o.documents[name] != nil && len(value) > 0 && value[0].text == "new":
		return nil, nil //nolint:nilnil // a document is made anew: nothing is to be done
	case o.variables[name] == "":
		return nil, fmt.Errorf("%w: %s is no value", errNotTranslated, written(to))
	}
	e, err := o.expression(value)
	if err != nil {
		return nil, err
	}
	switch typ := o.variables[name]; {
	case typ == e.typ || typ == "number" && e.typ == "integer" || e.typ == "any":
	case typ == "text":
		e.written = e.asText()
	case typ == "integer":
		e.written = "int(" + e.written + ")"
	case typ == "number":
		e.written = "double(" + e.written + ")"
	case typ == "boolean":
		e.written = "bool(" + e.written + ")"
	}
	return object{"set": object{o.names[name]: e.written}}, nil
}

// askedSet is the correlation set of the answers of a port.
func askedSet(port string) string { return "asked_" + notInIdentifier.ReplaceAllString(port, "_") }

// findAsked finds the ports to which requests are sent: those through which messages go out, and come back.
func (o *orchestration) findAsked(statements []statement) {
	for _, s := range statements {
		if arguments := list(s.words); s.begins("receive") && len(arguments) > 1 {
			port, _, _ := strings.Cut(single(arguments[0]), ".")
			if o.ports[port] == "out" && len(arguments) == 2 {
				o.ports[port] = "asked"
				o.section("correlations")[askedSet(port)] = []any{"CorrelationToken"}
				o.t.omit(o.at(s.line()), kindOrchestration, o.name, "the answers of port "+port, "the binding file has it",
					"give its send port responds: true; within a loop declare the set in a scope there")
			}
		}
		o.findAsked(s.block)
	}
}
