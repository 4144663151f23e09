package web

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	html "html/template"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

//go:embed description.html.tmpl
var descriptionText string

var descriptionTemplate = html.Must(html.New("description").Parse(descriptionText))

// describedAPI is a document as the page needs it.
type describedAPI struct {
	Info       struct{ Title, Version string }
	Paths      map[string]map[string]describedOperation
	Components struct {
		Schemas         map[string]json.RawMessage
		SecuritySchemes map[string]describedScheme
		Responses       map[string]struct{ Description string }
	}
}

type describedOperation struct {
	Summary, Description string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
	}
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Reference    string `json:"$ref"`
				Title        string
				ExternalDocs struct{ URL string }
			}
		}
	}
	Responses map[string]struct {
		Reference   string `json:"$ref"`
		Description string
	}
	Security []map[string][]string
}

type describedScheme struct{ Type, Scheme, In, Name, Description string }

// shownOperation is a method of a path on the page.
type shownOperation struct {
	describedOperation

	Method, Path string
	Callers      string // how they identify themselves
	Bodies       []shownBody
	Answers      []shownAnswer
}

type shownBody struct{ MediaType, Schema, Title string }

type shownAnswer struct{ Status, Text string }

type shownSchema struct{ Name, Text string }

// writeDescription writes a document of OpenAPI as a page that needs nothing else.
func writeDescription(out io.Writer, document json.RawMessage) error {
	var api describedAPI
	if err := json.Unmarshal(document, &api); err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	page := struct {
		Title, Document string
		Operations      []shownOperation
		Schemas         []shownSchema
	}{Title: api.Info.Title, Document: documentPath}
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(api.Paths[path])) {
			page.Operations = append(page.Operations, api.shown(strings.ToUpper(method), path, api.Paths[path][method]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(api.Components.Schemas)) {
		var text bytes.Buffer
		if err := json.Indent(&text, api.Components.Schemas[name], "", "  "); err != nil {
			return fmt.Errorf("read a schema: %w", err)
		}
		page.Schemas = append(page.Schemas, shownSchema{name, text.String()})
	}
	return descriptionTemplate.Execute(out, page)
}

func (d *describedAPI) shown(method, path string, o describedOperation) shownOperation {
	s := shownOperation{describedOperation: o, Method: method, Path: path, Callers: "everybody"}
	for _, one := range o.Security {
		for name := range one {
			s.Callers = d.Components.SecuritySchemes[name].text()
		}
	}
	for _, mediaType := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
		schema := o.RequestBody.Content[mediaType].Schema
		body := shownBody{MediaType: mediaType, Title: schema.Title, Schema: strings.TrimPrefix(schema.Reference, "#/components/schemas/")}
		if schema.ExternalDocs.URL != "" {
			body.Title += ", by " + schema.ExternalDocs.URL
		}
		s.Bodies = append(s.Bodies, body)
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		text := o.Responses[status].Description
		if text == "" {
			text = d.Components.Responses[strings.TrimPrefix(o.Responses[status].Reference, "#/components/responses/")].Description
		}
		code, _ := strconv.Atoi(status)
		s.Answers = append(s.Answers, shownAnswer{strings.TrimSpace(status + " " + http.StatusText(code)), text})
	}
	return s
}

// text says how callers identify themselves.
func (s describedScheme) text() string {
	switch {
	case s.Type == "http" && s.Scheme == "basic":
		return "callers with a name and a password (Basic)"
	case s.Type == "http":
		return "callers with a token (Authorization: Bearer)"
	case s.Description != "":
		return "callers who sign, in the header " + s.Name + ": " + s.Description
	default:
		return "callers with a token in the header " + s.Name
	}
}
