package biztalk

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (o *orchestration) scope(s statement) (any, error) {
	into := object{}
	isAtomic := indexOf(s.words, "atomic") >= 0
	if isAtomic && slices.ContainsFunc(s.block, statement.waits) {
		isAtomic, o.isLeft = false, true
		o.t.omitStopping(o.at(s.line()), kindOrchestration, o.name, "the transaction of "+s.String(),
			"it waits for messages or times, and a transaction of a database waits for nothing",
			"write transaction: atomic for the parts between the waits, and compensate what they did where one fails")
	}
	if isAtomic {
		into["transaction"] = "atomic"
	}
	name := ""
	if i := indexOf(s.words, "transaction"); i >= 0 && i+1 < len(s.words) {
		name = s.words[i+1].text
	}
	do := []any{}
	around := o.isAtomic
	o.isAtomic = around || isAtomic
	for _, inner := range s.block {
		switch {
		case inner.begins("body"):
			do = append(do, o.shapes(inner.block)...)
		case !inner.hasBlock:
			o.declare(inner, nil)
		case !inner.begins("exceptions") && !inner.begins("compensation"):
			do = append(do, o.leave(inner, "a scope has a body, exceptions and a compensation"))
		}
	}
	o.isAtomic = around
	into["do"] = do
	for _, inner := range s.block {
		switch {
		case inner.begins("exceptions"):
			var catches []any
			for _, c := range inner.block {
				catches = append(catches, o.handling(name, s, func() any { return o.catch(c) }))
			}
			into["catch"] = catches
		case inner.begins("compensation"):
			into["compensate"] = o.handling(name, s, func() any { return o.shapes(inner.block) })
		}
	}
	shape := object{"scope": into}
	if name != "" {
		shape["name"] = name
	}
	return shape, o.timeout(s, into, isAtomic)
}

// timeout translates the time-out of a scope. Where the scope catches none, it goes on to the scopes around, as in the original.
func (o *orchestration) timeout(s statement, into object, isAtomic bool) error {
	i := indexOf(s.words, "timeout")
	switch {
	case i < 0:
		return nil
	case isAtomic:
		o.t.omit(o.at(s.line()), kindOrchestration, o.name, "the time-out of "+s.String(), "a transaction of a database waits for nothing",
			"bound its statements by statement_timeout of the role of the host")
		return nil
	}
	waiting, err := o.delay(s.words[i+1:])
	if err != nil {
		return fmt.Errorf("the time-out of a scope: %w", err)
	}
	length, is := waiting.(object)["delay"].(string)
	if !is {
		return fmt.Errorf("%w: the time-out of a scope is a time, and no length", errNotTranslated)
	}
	into["timeout"] = length
	catches, _ := into["catch"].([]any)
	for _, one := range catches {
		if code, has := one.(object)["code"]; !has || code == codeTimeout {
			return nil
		}
	}
	into["catch"] = append(catches, object{"code": codeTimeout, "do": []any{object{"throw": "again"}}})
	return nil
}

// handled is a scope whose exceptions or compensation are being translated.
type handled struct {
	name  string // of its transaction
	scope statement
}

// handling translates a part of a scope in which others can be taken back.
func (o *orchestration) handling(name string, scope statement, translate func() any) any {
	o.handled = append(o.handled, handled{name, scope})
	defer func() { o.handled = o.handled[:len(o.handled)-1] }()
	return translate()
}

// compensate translates the compensation of a transaction: of an inner one by its name, of its own as all that is within.
func (o *orchestration) compensate(s statement) (any, error) {
	switch {
	case len(s.words) < 2 || s.words[1].kind != 'n':
		return nil, fmt.Errorf("%w: name the scope that is taken back", errNotTranslated)
	case len(list(s.words)) > 1 || len(list(s.words)) == 1 && len(list(s.words)[0]) > 0:
		return nil, fmt.Errorf("%w: a compensation has no parameters; let it read variables of the orchestration", errNotTranslated)
	case len(o.handled) == 0:
		return nil, fmt.Errorf("%w: it stands where nothing has failed", errNotTranslated)
	}
	name, inside := s.words[1].text, o.handled[len(o.handled)-1]
	switch {
	case name == inside.name:
		return object{"compensate": "all"}, nil
	case name == "all" || !inside.scope.hasTransaction(name):
		return nil, fmt.Errorf("%w: %s is no scope within the one that has failed", errNotTranslated, name)
	}
	return object{"compensate": name}, nil
}

// hasTransaction reports whether the body of a scope has an inner scope with a transaction of a name.
func (s statement) hasTransaction(name string) bool {
	for _, inner := range s.block {
		if inner.begins("exceptions") || inner.begins("compensation") {
			continue
		}
		if i := indexOf(inner.words, "transaction"); i >= 0 && i+1 < len(inner.words) && inner.words[i+1].text == name {
			return true
		}
		if inner.hasTransaction(name) {
			return true
		}
	}
	return false
}

// waits reports whether a statement, or one within it, waits for a message or a time.
func (s statement) waits() bool {
	return s.begins("receive") || s.begins("listen") || s.begins("delay") || slices.ContainsFunc(s.block, statement.waits)
}

func (o *orchestration) catch(s statement) object {
	arguments := list(s.words)
	into := object{}
	if len(arguments) == 1 && len(arguments[0]) == 2 {
		class, name := arguments[0][0].text, arguments[0][1].text
		into["as"] = name
		o.exceptions[name] = true
		defer delete(o.exceptions, name)
		switch class {
		case "System.Exception", "Microsoft.XLANGs.BaseTypes.XLANGsException":
		case "Microsoft.XLANGs.BaseTypes.TimeoutException":
			into["code"] = codeTimeout
		default:
			into["code"] = class
		}
	}
	into["do"] = o.shapes(s.block)
	return into
}

func (o *orchestration) parallel(s statement) (any, error) {
	branches := object{}
	for i, task := range s.block {
		branches["task"+strconv.Itoa(i+1)] = o.shapes(task.block)
	}
	if len(branches) < 2 {
		return nil, errNotTranslated
	}
	return object{"parallel": branches}, nil
}

func (o *orchestration) listen(s statement) (any, error) {
	var branches []any
	for _, inner := range s.block {
		words := inner.words
		isTime := len(words) > 0 && (words[0].text == "timeout" || len(words) > 1 && words[1].text == "delay")
		for len(words) > 0 && (words[0].text == "until" || words[0].text == "timeout" || words[0].text == "delay") {
			words = words[1:]
		}
		var first any
		var err error
		if isTime {
			first, err = o.delay(words)
		} else {
			first, err = o.receive(statement{words: words})
		}
		branch, is := first.(object)
		if err != nil || !is {
			return nil, errors.Join(err, errNotTranslated)
		}
		branch["do"] = o.shapes(inner.block)
		branches = append(branches, branch)
	}
	if len(branches) < 2 {
		return nil, errNotTranslated
	}
	return object{"listen": branches}, nil
}

// delay translates new System.TimeSpan(days, hours, minutes, seconds, milliseconds), or three of them from hours on.
func (o *orchestration) delay(words []lexeme) (any, error) {
	if len(words) > 2 && words[0].text == "new" && words[1].text == "System.TimeSpan" {
		units := []string{"days", "hours", "minutes", "seconds", "milliseconds"}
		arguments := list(words[1:])
		if len(arguments) == 3 {
			units = units[1:]
		}
		var length []string
		for i, one := range arguments {
			if len(arguments) < 3 || len(arguments) > 5 || len(one) != 1 || one[0].kind != '0' {
				return nil, fmt.Errorf("%w: %s", errNotTranslated, written(words))
			}
			if one[0].text != "0" {
				length = append(length, one[0].text+" "+units[i])
			}
		}
		if len(length) == 0 {
			length = []string{"0 seconds"}
		}
		return object{"delay": strings.Join(length, " ")}, nil
	}
	e, err := o.expression(words)
	switch {
	case err != nil:
		return nil, err
	case e.typ == "timestamp":
		return object{"delay": object{"until": e.written}}, nil
	case e.typ == "duration":
		return object{"delay": e.written}, nil
	}
	return nil, errNotTranslated
}

func (o *orchestration) throw(s statement) (any, error) {
	w := s.words
	if len(w) == 2 && o.exceptions[w[1].text] {
		return object{"throw": "again"}, nil
	}
	if len(w) < 3 || w[1].text != "new" {
		return nil, errNotTranslated
	}
	into := object{"code": w[2].text}
	if arguments := list(w); len(arguments) > 0 && len(arguments[0]) > 0 {
		e, err := o.expression(arguments[0])
		if err != nil {
			return nil, err
		}
		into["message"] = template(e, false)
	}
	return object{"throw": into}, nil
}

// invoke translates a call without parameters: those of the original have no names at the call.
func (o *orchestration) invoke(s statement, kind string) (any, error) {
	if len(s.words) < 2 || len(list(s.words)) > 1 || len(list(s.words)) == 1 && len(list(s.words)[0]) > 0 {
		return nil, fmt.Errorf("%w: give the parameters by their names", errNotTranslated)
	}
	class := s.words[1].text
	name := class[strings.LastIndexByte(class, '.')+1:]
	shape := object{kind: object{"orchestration": name}}
	o.t.called = append(o.t.called, calledOrchestration{o.at(s.line()), o, name, shape})
	return shape, nil
}
