package biztalk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

const (
	kindOrchestration = "orchestration"
	leftToDo          = "left to do"
	codeTimeout       = "timeout" // of the fault of a scope that took too long
)

// orchestration is the work on one service of a file.
type orchestration struct {
	t            *translation
	file, name   string
	settings     object
	messages     map[string]*string // types of messages; empty: any
	variables    map[string]string  // their types
	names        map[string]string  // of messages and variables, as expressions have them
	documents    map[string]*string // variables that are documents, with the template of what was loaded last
	correlations map[string]bool
	exceptions   map[string]bool   // variables of the catches around
	ports        map[string]string // in, out, or asked: one to which requests are sent
	received     map[string]string // messages by the ports from which they came last
	isLeft       bool              // something is left to do
	isAtomic     bool              // the scope around is one transaction
	handled      []handled         // the scopes whose exceptions or compensation are around
}

// translateOrchestration translates the services of a file.
func (t *translation) translateOrchestration(source Source) error {
	statements, err := readOrchestration(source)
	if err != nil {
		return err
	}
	types := map[string][]string{}
	isFound := false
	for _, module := range statements {
		if !module.begins("module") {
			continue
		}
		for _, s := range module.block {
			if i := indexOf(s.words, "correlationtype"); i >= 0 && i+1 < len(s.words) {
				types[s.words[i+1].text] = s.namesWithin()
			}
		}
		for _, s := range module.block {
			if i := indexOf(s.words, "service"); i >= 0 && i+1 < len(s.words) && s.hasBlock {
				isFound = true
				t.translateService(source.Name, s.nameBehind(i), s, types)
			}
		}
	}
	if !isFound {
		return &fault.Fault{
			Message: "the file has no orchestration", File: source.Name, Place: fault.Place{Line: 1, Column: 1},
			Expected: "module NAME { service NAME { ... } }", Remedy: "name an .odx file as the designer writes it",
		}
	}
	return nil
}

// nameBehind gives the name that is declared behind a word, which the kind of a transaction may precede.
func (s statement) nameBehind(word int) lexeme {
	for _, w := range s.words[word+1:] {
		if w.text != "longrunning" && w.text != "atomic" && w.text != "transaction" {
			return w
		}
	}
	return s.words[word+1]
}

// namesWithin gives the names in the block of a statement.
func (s statement) namesWithin() (names []string) {
	for _, inner := range s.block {
		for _, w := range inner.words {
			if w.kind == 'n' {
				names = append(names, w.text)
			}
		}
	}
	return names
}

func indexOf(words []lexeme, text string) int {
	return slices.IndexFunc(words, func(w lexeme) bool { return w.kind == 'n' && w.text == text })
}

func (t *translation) translateService(file string, named lexeme, service statement, types map[string][]string) {
	o := &orchestration{
		t: t, file: file, messages: map[string]*string{}, variables: map[string]string{}, names: map[string]string{},
		documents: map[string]*string{}, correlations: map[string]bool{}, exceptions: map[string]bool{}, ports: map[string]string{},
		received: map[string]string{},
	}
	at := o.at(named.line)
	o.name = t.name(at, kindOrchestration, named.text)
	t.add(kindApplication, t.settings.Application, object{})
	o.settings = object{
		"application": t.settings.Application, "host": t.host(at, &node{file: file}), "description": "from " + base(file) + ".odx",
		"messages": object{}, "variables": object{}, "correlations": object{}, "ports": object{},
	}
	body := []any{}
	for _, s := range service.block {
		switch {
		case s.begins("body"):
			o.parameters(s)
			o.findAsked(s.block)
			body = append(body, o.shapes(s.block)...)
		case s.hasBlock:
			body = append(body, o.leave(s, "an orchestration has declarations and a body"))
		default:
			o.declare(s, types)
		}
	}
	if len(body) == 0 {
		body = []any{o.leave(service, "the orchestration has nothing that could be translated")}
	}
	o.settings["body"] = body
	if o.isLeft {
		o.settings["state"] = "Bound"
	}
	for _, section := range []string{"messages", "variables", "correlations", "ports"} {
		if of, is := o.settings[section].(object); is && len(of) == 0 {
			delete(o.settings, section)
		}
	}
	if !t.add(kindOrchestration, o.name, o.settings) {
		t.omit(at, kindOrchestration, o.name, "the orchestration", "there is one of this name already", "rename it, and import it again")
	}
}

func (o *orchestration) at(line int64) *node {
	return &node{file: o.file, place: fault.Place{Line: max(line, 1), Column: 1}}
}

func (o *orchestration) section(name string) object {
	of, _ := o.settings[name].(object)
	return of
}

// leave lists a statement, and stands in its place: an instance that comes there stops.
func (o *orchestration) leave(s statement, why string) object {
	text := s.String()
	if len(text) > 300 {
		text = cut(text, 300) + "..."
	}
	o.isLeft = true
	o.t.omitStopping(o.at(s.line()), kindOrchestration, o.name, text, why, "write it as shapes, or as an activity for a program of yours")
	reason := leftToDo + ": " + strings.NewReplacer("{{", "{ {", "}}", "} }").Replace(text)
	filled := o.filledBy(s)
	stop := object{"terminate": reason}
	switch {
	case o.isAtomic: // it may not end the step; a fault that nothing catches suspends the instance
		stop = object{"throw": object{"code": leftToDo, "message": reason}}
	case len(filled) == 0:
		return object{"suspend": reason, "name": leftToDo}
	}
	// Shapes behind it need what it was to make, so that nobody can go on without it.
	placeholders := []any{}
	for _, name := range filled {
		placeholders = append(placeholders, object{"construct": object{"message": name, "template": "<left-to-do/>"}})
	}
	branches := []any{object{"when": "true", "do": []any{stop}}}
	if len(placeholders) > 0 {
		branches = append(branches, object{"otherwise": placeholders})
	}
	return object{"decide": branches, "name": leftToDo}
}

// filledBy gives the messages to which a statement gives content.
func (o *orchestration) filledBy(s statement) []string {
	var all []string
	switch {
	case s.begins("construct"):
		for _, w := range s.words[1:] {
			if o.messages[w.text] != nil {
				all = append(all, o.names[w.text])
			}
		}
	case s.begins("call"):
		for i, w := range s.words[1:] {
			if o.messages[w.text] != nil && s.words[i].text == "out" {
				all = append(all, o.names[w.text])
			}
		}
	case s.begins("receive"), s.begins("activate"):
		for _, one := range list(s.words[max(indexOf(s.words, "receive"), 0):]) {
			if o.messages[single(one)] != nil {
				all = append(all, o.names[single(one)])
			}
		}
	}
	return all
}

// shapes translates statements one after the other.
func (o *orchestration) shapes(statements []statement) []any {
	shapes := []any{}
	for i := 0; i < len(statements); i++ {
		s := statements[i]
		if s.begins("if") {
			var chain []statement
			for chain = append(chain, s); i+1 < len(statements) && statements[i+1].begins("else"); i++ {
				chain = append(chain, statements[i+1])
			}
			shapes = append(shapes, o.decide(chain))
			continue
		}
		shape, err := o.shape(s)
		switch {
		case err != nil:
			shapes = append(shapes, o.leave(s, err.Error()))
		case shape != nil:
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

func (o *orchestration) decide(chain []statement) any {
	var branches []any
	for _, s := range chain {
		at := indexOf(s.words, "if")
		if at < 0 {
			branches = append(branches, object{"otherwise": o.shapes(s.block)})
			continue
		}
		condition, err := o.expression(s.words[at+1:])
		if err != nil {
			return o.leave(chain[0], "its condition: "+err.Error())
		}
		branches = append(branches, object{"when": unwrapped(condition.written), "do": o.shapes(s.block)})
	}
	return object{"decide": branches}
}

// unwrapped takes the parentheses off that stand around a whole condition.
func unwrapped(text string) string {
	if !strings.HasPrefix(text, "(") || !strings.HasSuffix(text, ")") {
		return text
	}
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 && i < len(text)-1 {
			return text
		}
	}
	return text[1 : len(text)-1]
}

func (o *orchestration) shape(s statement) (any, error) {
	first := ""
	if len(s.words) > 0 {
		first = s.words[0].text
	}
	switch first {
	case "":
		return object{"scope": object{"do": o.shapes(s.block)}}, nil
	case "activate", "receive":
		return o.receive(s)
	case "send":
		return o.send(s)
	case "construct":
		return o.construct(s)
	case "while":
		condition, err := o.expression(s.words[1:])
		return object{"while": object{"when": unwrapped(condition.written), "do": o.shapes(s.block)}}, err
	case "scope", "atomic", "longrunning":
		return o.scope(s)
	case "parallel":
		return o.parallel(s)
	case "listen":
		return o.listen(s)
	case "delay":
		return o.delay(s.words[1:])
	case "throw":
		return o.throw(s)
	case "terminate", "suspend":
		if o.isAtomic {
			return nil, fmt.Errorf("%w: a scope of one transaction cannot end the step", errNotTranslated)
		}
		reason, err := o.expression(s.words[1:])
		text := template(reason, false)
		if text == "" {
			text = "no reason was given"
		}
		return object{first: text}, err
	case "call", "exec":
		return o.invoke(s, map[string]string{"call": "call", "exec": "start"}[first])
	case "compensate":
		return o.compensate(s)
	}
	return o.assign(s)
}

// template makes a text with holes of a text that is put together.
func template(e expressed, isXML bool) string {
	var b strings.Builder
	for _, piece := range e.asPieces() {
		if strings.HasPrefix(piece, "'") && len(e.pieces) > 0 {
			text := piece[1:]
			if !isXML {
				text = strings.ReplaceAll(text, "{{", "{ {")
			}
			b.WriteString(text)
			continue
		}
		b.WriteString("{{" + strings.TrimSuffix(piece, ".ToString()") + "}}")
	}
	return b.String()
}

// calledOrchestration is one that another one calls or starts.
type calledOrchestration struct {
	at    *node
	by    *orchestration
	name  string
	shape object
}

// omitCalled lists the orchestrations that are called and are not among the files.
func (t *translation) omitCalled() {
	for _, c := range t.called {
		if t.objects[kindOrchestration][c.name] == nil {
			c.by.settings["state"] = "Bound"
			clear(c.shape)
			c.shape["suspend"], c.shape["name"] = leftToDo+": call "+c.name, leftToDo
			t.omitStopping(c.at, kindOrchestration, c.by.name, "the call of "+c.name, "it is not among the files", "give its .odx too")
		}
	}
}
