package definitions

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Settings that name a file, whose text definitions carry.
const (
	messageTypeKind  = "message type"
	schemaSetting    = "schema"
	mapKind          = "map"
	programSetting   = "program"
	fileMember       = "file"
	documentsMember  = "documents"
	byteOrderMark    = "\uFEFF"
	declarationBytes = 256
)

// A NamedFile is a file that an object names: a message type its schema, a map its program.
type NamedFile struct {
	Kind, Name string
	File       string
	Place      Place // where it is named
}

// IsMap reports whether the file is that of a map.
func (f NamedFile) IsMap() bool { return f.Kind == mapKind }

// Path leads to the setting that names the file.
func (f NamedFile) Path() []string {
	return []string{f.Kind, f.Name, map[string]string{messageTypeKind: schemaSetting, mapKind: programSetting}[f.Kind]}
}

// Folder is the folder of the file of definitions, from which the name of the file counts.
func (f NamedFile) Folder() string { return filepath.Dir(f.Place.File) }

// NamedFiles gives the files that message types and maps name and do not carry.
func (d *Document) NamedFiles() []NamedFile {
	var files []NamedFile
	for of, named := range d.carriers {
		if file := named.member(fileMember); file != nil && file.value.kind == isText && named.member(documentsMember) == nil {
			files = append(files, NamedFile{of.kind, of.name, file.value.text, file.value.place})
		}
	}
	return files
}

// carrier is an object that names a file.
type carrier struct{ kind, name string }

// carriers gives the settings of message types and maps that name files.
func (d *Document) carriers(yield func(of carrier, named *value) bool) {
	for _, of := range []struct{ kind, setting string }{{messageTypeKind, schemaSetting}, {mapKind, programSetting}} {
		kind := d.root.member(of.kind)
		if kind == nil {
			continue
		}
		for _, m := range kind.value.members {
			if named := m.value.member(of.setting); named != nil && named.value.kind == isObject &&
				!yield(carrier{of.kind, m.name}, named.value) {
				return
			}
		}
	}
}

// Carry puts the texts of a file, and of the files that it names, into the object that names it.
func (d *Document) Carry(file NamedFile, documents map[string]string) {
	for of, named := range d.carriers {
		if of != (carrier{file.Kind, file.Name}) {
			continue
		}
		place := named.member(fileMember).place
		texts := &value{kind: isObject, place: place}
		for _, name := range slices.Sorted(maps.Keys(documents)) {
			texts.add(member{name, place, &value{kind: isText, text: documents[name], place: place}})
		}
		named.add(member{documentsMember, place, texts})
	}
}

// takeFiles takes the texts of schemas and maps out of definitions, and gives them as files. Texts whose names are not those of files that
// Find passes over beside definitions stay where they are.
func (d *Document) takeFiles() []File {
	taken := map[string]string{}
	for _, schema := range d.carriers {
		documents := schema.member(documentsMember)
		if documents == nil || documents.value.kind != isObject || !areFiles(documents.value.members, taken) {
			continue
		}
		for _, m := range documents.value.members {
			taken[m.name] = m.value.text
		}
		schema.remove(documentsMember)
	}
	var files []File
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		files = append(files, File{name, asFile(taken[name])})
	}
	return files
}

// areFiles reports whether texts can be files beside definitions: within their folder, read by nobody as definitions, and none with the
// name of another one.
func areFiles(documents []member, taken map[string]string) bool {
	for _, m := range documents {
		other, isTaken := taken[m.name]
		isPassedOver := slices.Contains(strings.Split(path.Dir(m.name), "/"), schemasFolder)
		if m.value.kind != isText || !fs.ValidPath(m.name) || !filepath.IsLocal(filepath.FromSlash(m.name)) ||
			isTaken && other != m.value.text || isDefinitions(m.name) && !isPassedOver {
			return false
		}
	}
	return len(documents) > 0
}

// otherCharset finds the declaration of another charset than that in which files are written.
var otherCharset = regexp.MustCompile(`^<\?xml[^>]*encoding\s*=`)

// asFile gives a text the mark that comes before what its declaration says, where there is one.
func asFile(text string) []byte {
	if otherCharset.MatchString(text[:min(len(text), declarationBytes)]) {
		return []byte(byteOrderMark + text)
	}
	return []byte(text)
}
