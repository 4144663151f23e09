package script

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// refused are the commands of sqlcmd that Parley has nothing for, each with its reason.
var refused = map[string]string{
	":connect":   "a script runs on the database of its command; start parley tsql once for each",
	":perftrace": "there is no output of this kind",
	":ed":        "there is no editor", "ed": "there is no editor", ":serverlist": "there is no list of servers",
	"!!": "a script starts no programs", ":!!": "a script starts no programs",
}

// passed are the commands that Options.Command takes; those of true want an argument.
var passed = map[string]bool{":out": true, ":error": true, ":xml": true, ":help": false, ":list": false, ":listvar": false}

// command takes a line of sqlcmd's own, and says whether it was one.
func (r *reader) command(line string, at Origin) (bool, error) {
	text := strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF"))
	word, rest := text, ""
	if end := strings.IndexAny(text, " \t("); end >= 0 {
		word, rest = text[:end], strings.TrimSpace(text[end:])
	}
	word = strings.ToLower(word)
	if isBare(strings.TrimPrefix(word, ":")) || strings.HasPrefix(word, r.terminator()) {
		return r.bareCommand(word, rest, at)
	}
	if strings.HasPrefix(word, "!!") {
		word = "!!"
	}
	if reason := refused[word]; reason != "" && (strings.HasPrefix(word, ":") || word == "!!" || rest == "") {
		return false, &Error{Origin: at, Message: "the command " + word + " is not supported", Hint: reason}
	}
	if !strings.HasPrefix(word, ":") || strings.HasPrefix(word, "::") {
		return false, nil
	}
	if needsArgument, is := passed[word]; is {
		r.blank(line, at)
		return true, r.pass(word, rest, needsArgument, at)
	}
	switch word {
	case ":setvar":
		r.blank(line, at)
		return true, r.setVariable(rest, at)
	case ":r":
		return true, r.include(rest, at)
	case ":on":
		r.blank(line, at)
		return true, r.onError(rest, at)
	default:
		return false, &Error{
			Origin: at, Message: "syntax error near command '" + word + "'",
			Hint: "the commands are :setvar, :listvar, :r, :on error, :out, :error, :xml, :list, :reset, :exit, :quit, :help and GO",
		}
	}
}

// pass gives a command to those who have the output.
func (r *reader) pass(word, rest string, needsArgument bool, at Origin) error {
	if r.options.Command == nil {
		return &Error{Origin: at, Message: "the command " + word + " is not supported here", Hint: "run the script by parley tsql"}
	}
	argument, err := r.unquote(rest, at)
	if err != nil {
		return err
	}
	if needsArgument != (argument != "") {
		return &Error{Origin: at, Message: "syntax error near command '" + word + "'", Hint: "see :help"}
	}
	err = r.options.Command(Command{Name: word, Argument: argument, Batch: r.text.String(), Variables: r.variables})
	if err != nil {
		return fmt.Errorf("%s: %w", word, err)
	}
	return nil
}

// terminator gives the word that ends a batch, in lower case.
func (r *reader) terminator() string { return strings.ToLower(cmp.Or(r.options.Terminator, "go")) }

// isBare reports whether a command needs no colon.
func isBare(word string) bool { return word == "exit" || word == "quit" || word == "reset" }

// bareCommand takes the commands that need no colon: GO, EXIT, QUIT, RESET.
func (r *reader) bareCommand(word, rest string, at Origin) (bool, error) {
	if end := strings.Index(rest, "--"); end >= 0 {
		rest = strings.TrimSpace(rest[:end])
	}
	terminator := r.terminator()
	if strings.HasPrefix(word, terminator+"--") {
		word = terminator
		rest = ""
	}
	switch word = strings.TrimPrefix(word, ":"); {
	case word == terminator:
		return r.ends(rest, at)
	case word == terminator+";" && rest == "":
		return false, &Error{
			Origin: at, Message: "incorrect syntax was encountered while parsing " + strings.ToUpper(terminator),
			Hint: "write it without a semicolon",
		}
	case word == "exit" && strings.HasPrefix(rest, "("):
		return r.exit(rest, at)
	case (word == "exit" || word == "quit") && rest == "":
		r.done = true // what is not run yet is left
	case word == "reset" && rest == "":
		r.forget()
	default:
		return false, nil
	}
	return true, nil
}

// ends takes GO, and GO with a number.
func (r *reader) ends(rest string, at Origin) (bool, error) {
	if rest == "" {
		r.flush(1)
		return true, nil
	}
	count, err := strconv.Atoi(strings.TrimSuffix(rest, ";"))
	if err != nil || strings.HasSuffix(rest, ";") {
		if !startsWithDigit(rest) {
			return false, nil // GO as a name: the batch has its own error
		}
		return false, &Error{Origin: at, Message: "a number of GO cannot be read: " + rest, Hint: "write GO, or GO with a whole number"}
	}
	if count < 0 {
		return false, &Error{Origin: at, Message: fmt.Sprintf("GO %d runs nothing", count), Hint: "write a number from 1 on"}
	}
	if count == 0 {
		r.text.Reset()
	}
	r.flush(count)
	return true, nil
}

// exit takes EXIT(query): the batch with the query behind it, and the end of the script. EXIT() gives no exit code.
func (r *reader) exit(rest string, at Origin) (bool, error) {
	query, isClosed := strings.CutSuffix(strings.TrimPrefix(rest, "("), ")")
	if !isClosed {
		return false, &Error{Origin: at, Message: "EXIT( without its end", Hint: "write EXIT(query) in one line"}
	}
	if query = strings.TrimSpace(query); query != "" {
		r.begin(at)
		if err := r.append(query+"\n", at); err != nil {
			return false, err
		}
	}
	r.give(&Batch{Text: r.text.String(), Count: 1, Exits: query != ""})
	r.done = true
	return true, nil
}

func startsWithDigit(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9')
}

// setVariable takes :setvar name value, and :setvar name, which removes the variable.
func (r *reader) setVariable(rest string, at Origin) error {
	name, value := rest, ""
	if end := strings.IndexAny(rest, " \t"); end >= 0 {
		name, value = rest[:end], strings.TrimSpace(rest[end:])
	}
	if name == "" {
		return &Error{Origin: at, Message: "syntax error near command ':setvar'", Hint: "write :setvar name value"}
	}
	if value != "" {
		unquoted, err := r.unquote(value, at)
		if err != nil {
			return err
		}
		value = unquoted
	}
	if r.options.Set != nil {
		if err := r.options.Set(strings.ToUpper(name), value); err != nil {
			return &Error{Origin: at, Message: err.Error(), Hint: "see the table of variables in docs/tsql/sqlcmd.md"}
		}
	}
	if value == "" {
		delete(r.variables, strings.ToUpper(name))
		return nil
	}
	r.variables[strings.ToUpper(name)] = value
	return nil
}

// unquote takes a value of a command: in quotes, where a doubled quote stands for one, or up to the next blank.
func (r *reader) unquote(text string, at Origin) (string, error) {
	value := text
	if strings.HasPrefix(text, `"`) {
		end := 1
		for end < len(text) {
			if text[end] == '"' {
				if !strings.HasPrefix(text[end+1:], `"`) {
					break
				}
				end++
			}
			end++
		}
		if end >= len(text) {
			return "", &Error{Origin: at, Message: "an open quotation mark in a command", Hint: "close it, or double the one that is text"}
		}
		if rest := strings.TrimSpace(text[end+1:]); rest != "" && !strings.HasPrefix(rest, "--") {
			return "", &Error{Origin: at, Message: "more text behind the value of a command: " + rest, Hint: "put the whole value in quotes"}
		}
		value = strings.ReplaceAll(text[1:end], `""`, `"`)
	} else if end := strings.IndexAny(text, " \t"); end >= 0 {
		if rest := strings.TrimSpace(text[end:]); !strings.HasPrefix(rest, "--") {
			return "", &Error{Origin: at, Message: "more text behind the value of a command: " + rest, Hint: "put the whole value in quotes"}
		}
		value = text[:end]
	}
	if r.options.KeepVariables {
		return value, nil
	}
	return r.expand(value, at)
}

// expand puts values in the place of the variables of a command.
func (r *reader) expand(text string, at Origin) (string, error) {
	inner := reader{options: r.options, variables: r.variables}
	if err := inner.substitute(text, at); err != nil {
		return "", err
	}
	return inner.text.String(), nil
}

// include takes :r, and reads the lines of its file in its place.
func (r *reader) include(rest string, at Origin) error {
	name, err := r.unquote(rest, at)
	if err != nil {
		return err
	}
	if name == "" {
		return &Error{Origin: at, Message: "syntax error near command ':r'", Hint: "write :r file"}
	}
	if r.options.Read == nil {
		return &Error{Origin: at, Message: "the command :r is not supported here", Hint: "put the script in a file"}
	}
	r.depth++
	if r.depth > deepest {
		message := fmt.Sprintf("files name one another by :r more than %d deep", deepest)
		return &Error{Origin: at, Message: message, Hint: "see whether a file reads itself"}
	}
	defer func() { r.depth-- }()
	path, content, err := r.options.Read(at.File, name)
	if err != nil {
		return fmt.Errorf("%s:%d: :r %s: %w", at.File, at.Line, name, err)
	}
	text, _ := Decode(content)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if r.lines > 0 {
		r.origins = append(r.origins, origin{line: r.lines + 1, from: Origin{File: path, Line: 1}})
	}
	if err := r.file(path, text); err != nil {
		return err
	}
	if r.lines > 0 {
		r.origins = append(r.origins, origin{line: r.lines + 1, from: Origin{File: at.File, Line: at.Line + 1}})
	}
	return nil
}

// onError takes :on error exit and :on error ignore.
func (r *reader) onError(rest string, at Origin) error {
	words := strings.Fields(strings.ToLower(rest))
	if len(words) != 2 || words[0] != "error" || words[1] != "exit" && words[1] != "ignore" {
		return &Error{Origin: at, Message: "syntax error near command ':on'", Hint: "write :on error exit or :on error ignore"}
	}
	r.stop = words[1] == "exit"
	return nil
}
