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

// Settings of a message type that have its schema.
const (
	messageTypeKind  = "message type"
	schemaSetting    = "schema"
	fileMember       = "file"
	documentsMember  = "documents"
	byteOrderMark    = "\uFEFF"
	declarationBytes = 256
)

// A SchemaFile is a file that a message type names as its schema.
type SchemaFile struct {
	MessageType string
	File        string
	Place       Place // where it is named
}

// Folder is the folder of the file of definitions, from which the name of the schema counts.
func (s SchemaFile) Folder() string { return filepath.Dir(s.Place.File) }

// SchemaFiles gives the files that message types name and do not carry.
func (d *Document) SchemaFiles() []SchemaFile {
	var files []SchemaFile
	for name, schema := range d.schemas {
		if file := schema.member(fileMember); file != nil && file.value.kind == isText && schema.member(documentsMember) == nil {
			files = append(files, SchemaFile{name, file.value.text, file.value.place})
		}
	}
	return files
}

// schemas gives the schemas of message types that are objects.
func (d *Document) schemas(yield func(messageType string, schema *value) bool) {
	kind := d.root.member(messageTypeKind)
	if kind == nil {
		return
	}
	for _, m := range kind.value.members {
		if schema := m.value.member(schemaSetting); schema != nil && schema.value.kind == isObject && !yield(m.name, schema.value) {
			return
		}
	}
}

// Carry puts the texts of its schema, and of the files that the schema names, into a message type.
func (d *Document) Carry(messageType string, documents map[string]string) {
	for name, schema := range d.schemas {
		if name != messageType {
			continue
		}
		place := schema.member(fileMember).place
		texts := &value{kind: isObject, place: place}
		for _, file := range slices.Sorted(maps.Keys(documents)) {
			texts.add(member{file, place, &value{kind: isText, text: documents[file], place: place}})
		}
		schema.add(member{documentsMember, place, texts})
	}
}

// takeSchemas takes the texts of schemas out of message types, and gives them as files. Texts whose names are not those of files that Find
// passes over beside definitions stay where they are.
func (d *Document) takeSchemas() []File {
	taken := map[string]string{}
	for _, schema := range d.schemas {
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
