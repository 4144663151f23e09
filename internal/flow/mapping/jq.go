package mapping

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// compileJQ makes a program of jq, or says what of it cannot be.
func compileJQ(p *Program) (*program, error) {
	made, err := p.compiled(func(name, text string) (file, error) { return file{name: name, text: text}, nil })
	if err != nil {
		return nil, err
	}
	_, err = codeOf(made.files)
	return made, err
}

// modules are the files of a program that it includes.
type modules []file

// LoadModule implements the loader of gojq.
func (m modules) LoadModule(name string) (*gojq.Query, error) {
	for _, f := range m {
		if f.name == name || f.name == name+".jq" {
			query, err := gojq.Parse(f.text)
			if err != nil {
				return nil, faultOfJQ(f, err)
			}
			return query, nil
		}
	}
	return nil, fmt.Errorf("module %q is no file of the map", name)
}

// codeOf compiles a program of its files, the first one first. It knows no environment and no files.
func codeOf(files []file) (*gojq.Code, error) {
	query, err := gojq.Parse(files[0].text)
	if err != nil {
		return nil, faultOfJQ(files[0], err)
	}
	beside := modules{}
	for _, f := range files[1:] {
		relative := f.name
		if folder := path.Dir(files[0].name); folder != "." {
			relative = strings.TrimPrefix(f.name, folder+"/")
		}
		beside = append(beside, file{name: relative, text: f.text})
	}
	code, err := gojq.Compile(query, gojq.WithModuleLoader(beside), gojq.WithEnvironLoader(func() []string { return nil }))
	if err != nil {
		if _, is := fault.Of(err); is {
			return nil, err
		}
		return nil, &fault.Fault{Message: err.Error(), Remedy: "correct the program", File: files[0].name, Err: err}
	}
	return code, nil
}

// faultOfJQ is the fault of a program that cannot be parsed.
func faultOfJQ(f file, err error) *fault.Fault {
	found := &fault.Fault{Message: err.Error(), Remedy: "correct the program", File: f.name, Err: err}
	if parse, is := errors.AsType[*gojq.ParseError](err); is {
		at := min(max(parse.Offset-len(parse.Token), 0), len(f.text))
		before := f.text[:at]
		found.Place = fault.Place{
			Byte: int64(at), Line: int64(strings.Count(before, "\n") + 1),
			Column: len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1,
		}
	}
	return found
}
