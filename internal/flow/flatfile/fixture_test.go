package flatfile_test

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// collected keeps what a file held.
type collected struct {
	messages []string
	types    []string
	bad      []interchange.Bad
	aborted  int
	current  bytes.Buffer
}

func (c *collected) Begin(int64) (io.Writer, error) {
	c.current.Reset()
	return &c.current, nil
}

func (c *collected) End(m interchange.Message) error {
	c.messages, c.types = append(c.messages, c.current.String()), append(c.types, m.Type)
	return nil
}

func (c *collected) Abort(int64) error {
	c.aborted++
	return nil
}

func (c *collected) Bad(bad interchange.Bad) error {
	bad.Raw = bytes.Clone(bad.Raw)
	c.bad = append(c.bad, bad)
	return nil
}

var (
	info      = regexp.MustCompile(`<b:schemaInfo ([^>]*)/>\s*`)
	annotated = regexp.MustCompile(`<b:(recordInfo|fieldInfo|groupInfo)\b[^>]*/>`)
	rootName  = regexp.MustCompile(`<xs:element name="(\w+)"`)
)

// frame puts the frame around an element, and its annotations where they belong.
func frame(element string) string {
	settings := `standard="Flat File"`
	if found := info.FindStringSubmatch(element); found != nil {
		settings += " " + found[1]
		element = info.ReplaceAllString(element, "")
	}
	if !strings.Contains(settings, "codepage") {
		settings += ` codepage="65001"`
	}
	if root := rootName.FindStringSubmatch(element); root != nil && !strings.Contains(settings, "root_reference") {
		settings += ` root_reference="` + root[1] + `"`
	}
	element = annotated.ReplaceAllString(element, "<xs:annotation><xs:appinfo>$0</xs:appinfo></xs:annotation>")
	return `<?xml version="1.0" encoding="utf-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" xmlns="urn:x" targetNamespace="urn:x">
<xs:annotation><xs:appinfo><b:schemaInfo ` + settings + `/></xs:appinfo></xs:annotation>` + element + `</xs:schema>`
}

func compiled(t testing.TB, element string, settings flatfile.Settings) *flatfile.Schema {
	t.Helper()
	source, err := xsd.Parse("test.xsd", []byte(frame(element)), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := flatfile.Compile(source, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func disassembled(t testing.TB, s *flatfile.Schema, file string, settings flatfile.ReadSettings) (*collected, flatfile.Summary, error) {
	t.Helper()
	c := &collected{}
	summary, err := s.Disassemble(t.Context(), strings.NewReader(file), settings, c)
	return c, summary, err
}

func assembled(t testing.TB, s *flatfile.Schema, settings flatfile.WriteSettings, documents ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a, err := s.NewAssembler(&out, settings)
	if err != nil {
		return "", err
	}
	for _, document := range documents {
		if err := a.Write(t.Context(), s, strings.NewReader(document)); err != nil {
			return "", err
		}
	}
	err = a.Close()
	return out.String(), err
}

// plain writes a message of the tests without its namespace.
func plain(message string) string {
	return strings.NewReplacer("ns0:", "", ` xmlns:ns0="urn:x"`, "").Replace(message)
}

// named is the opposite of plain.
func named(message string) string {
	name := regexp.MustCompile(`^<(\w+)`).FindStringSubmatch(message)[1]
	message = strings.Replace(message, "<"+name, "<ns0:"+name+` xmlns:ns0="urn:x"`, 1)
	if end := strings.LastIndex(message, "</"+name+">"); end >= 0 {
		message = message[:end] + "</ns0:" + name + ">"
	}
	return message
}

func compileError(element string) error {
	source, err := xsd.Parse("test.xsd", []byte(frame(element)), nil)
	if err == nil {
		_, err = flatfile.Compile(source, flatfile.Settings{})
	}
	return err
}
