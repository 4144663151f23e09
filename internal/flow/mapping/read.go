package mapping

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

// LanguageOf gives the language of a file by its name: jq of .jq, and otherwise xslt.
func LanguageOf(file string) string {
	if strings.EqualFold(path.Ext(file), ".jq") {
		return JQ
	}
	return XSLT
}

// Read reads a program from a folder with all the files that it names there, in whatever charset they are.
func Read(folder fs.FS, file string) (*Program, error) {
	p := &Program{File: file, Documents: map[string]string{}}
	size := 0
	waiting := []string{path.Clean(file)}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		if _, isRead := p.Documents[name]; isRead {
			continue
		}
		document, err := readText(folder, name)
		if err != nil {
			return nil, err
		}
		if size += len(document); size > BytesMost {
			return nil, &fault.Fault{
				Message: "the map and the files that it names are too long", File: name,
				Expected: fmt.Sprintf("at most %d bytes in all", BytesMost), Remedy: "leave out what the map does not need",
			}
		}
		p.Documents[name] = document
		named, err := namesIn(name, document)
		if err != nil {
			return nil, err
		}
		for _, other := range named {
			if !strings.Contains(other, "://") { // the compiler says that it is no file of the map
				waiting = append(waiting, path.Join(path.Dir(name), strings.ReplaceAll(other, `\`, "/")))
			}
		}
	}
	return p, nil
}

// namesIn gives the files that a file of a program names.
func namesIn(name, document string) ([]string, error) {
	if LanguageOf(name) == JQ {
		query, err := gojq.Parse(document)
		if err != nil {
			return nil, faultOfJQ(file{name: name, text: document}, err)
		}
		var named []string
		for _, i := range query.Imports {
			named = append(named, i.ImportPath+i.IncludePath+".jq")
		}
		return named, nil
	}
	f, err := prepareStylesheet(name, document)
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	return f.scan().names, nil
}

// readText reads a file as UTF-8.
func readText(folder fs.FS, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fault.Fault{
			Message: fmt.Sprintf("the file %s of the map is not below the folder of the definition", name),
			Remedy:  "put it into the folder, or into one in it, and name it from there",
		}
	}
	opened, err := folder.Open(name)
	if err != nil {
		return "", &fault.Fault{Message: "read the map: " + err.Error(), Err: err, Remedy: "name a file beside the definition"}
	}
	defer opened.Close()
	written, err := io.ReadAll(io.LimitReader(opened, BytesMost+1))
	if err != nil {
		return "", fmt.Errorf("read map %s: %w", name, err)
	}
	source, err := text.Open(bytes.NewReader(written), "", LanguageOf(name) == XSLT)
	if err != nil {
		return "", fault.InFile(err, name)
	}
	document, err := io.ReadAll(source)
	if err != nil {
		return "", fault.InFile(err, name)
	}
	return string(document), nil
}
