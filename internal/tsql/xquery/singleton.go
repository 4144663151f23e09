package xquery

import "strings"

// isSingleton reports whether a query can find one node at most: a literal, a call, operators, (...)[n], or a path whose steps to
// elements each have a number as predicate. Attributes, the node itself and its parents are single already.
func isSingleton(tokens []token) bool {
	first := tokens[0]
	switch {
	case first.kind == text || first.kind == number || first.kind == variable:
		return true
	case first.text == "(" && closing(tokens, 0) == len(tokens)-1:
		return len(tokens) > 2 && isSingleton(tokens[1:len(tokens)-1])
	case first.kind == name && len(tokens) > 1 && tokens[1].text == "(" && !isNodeTest(first.text):
		return true
	case hasOperator(tokens):
		return true
	}
	return isSinglePath(tokens)
}

// isNodeTest reports whether a name with parentheses is a step and no function.
func isNodeTest(name string) bool {
	return name == "text" || name == "node" || name == "comment" || name == "processing-instruction"
}

// closing gives the place of the bracket that closes the one at a place.
func closing(tokens []token, at int) int {
	depth := 0
	for i := at; i < len(tokens); i++ {
		switch tokens[i].text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return len(tokens) - 1
}

// hasOperator reports whether an operator stands outside of all brackets.
func hasOperator(tokens []token) bool {
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.text == "(" || t.text == "[":
			i = closing(tokens, i)
		case t.kind == symbol && strings.ContainsAny(t.text, "=<>+"), t.kind == symbol && strings.HasPrefix(t.text, " ") && t.text != " ":
			return true
		}
	}
	return false
}

func isSinglePath(tokens []token) bool {
	for at := 0; at < len(tokens); {
		t := tokens[at]
		switch {
		case t.text == "/" || t.text == "." || t.text == ".." || t.text == " ":
			at++
			continue
		case t.text == "@":
			at += 2
			continue
		case t.text == "(":
			at = closing(tokens, at) + 1
		case t.kind == name || t.text == "*":
			at++
			if at < len(tokens) && tokens[at].text == "(" {
				at = closing(tokens, at) + 1
			}
		default: // among them //
			return false
		}
		isNumbered := false
		for at < len(tokens) && tokens[at].text == "[" {
			end := closing(tokens, at)
			isNumbered = isNumbered || end == at+2 && tokens[at+1].kind == number
			at = end + 1
		}
		if !isNumbered {
			return false
		}
	}
	return true
}
