package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// definitions are those that an interface description is made of.
type definitions struct {
	Ports     map[string]described         `json:"receive port"`
	Locations map[string]describedLocation `json:"receive location"`
	Types     map[string]describedType     `json:"message type"`
}

type described struct {
	Application string `json:"application"`
	Description string `json:"description"`
	Responds    bool   `json:"responds"`
}

type describedLocation struct {
	Description string            `json:"description"`
	Port        string            `json:"receive_port"`
	Adapter     string            `json:"adapter"`
	Address     string            `json:"address"`
	Settings    json.RawMessage   `json:"settings"`
	Secrets     map[string]string `json:"secrets"`
	Enabled     *bool             `json:"enabled"`
}

type describedType struct {
	Description string `json:"description"`
	Format      string `json:"format"`
	Schema      struct {
		File      string            `json:"file"`
		Documents map[string]string `json:"documents"`
	} `json:"schema"`
}

// object is one of JSON.
type object = map[string]any

// errNoLocation says that there is nothing to describe.
var errNoLocation = errors.New("no receive location that is enabled takes requests by HTTP")

// OpenAPI describes the HTTP locations of definitions, as parley_flow.export gives them, as a document of OpenAPI 3.1. JSON Schemas of
// message types stand in it; those of XML are named. listener, host:port, chooses the locations of one listener; empty: all.
func OpenAPI(written json.RawMessage, title, version, listener string) (json.RawMessage, error) {
	var d definitions
	if err := json.Unmarshal(written, &d); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	page := newAPIPage()
	page.definitions = d
	for _, name := range slices.Sorted(maps.Keys(d.Locations)) {
		if err := page.add(name, d.Locations[name], listener); err != nil {
			return nil, err
		}
	}
	if len(page.paths) == 0 {
		return nil, errNoLocation
	}
	return page.document(title, version)
}

// apiPage is a document that is being written.
type apiPage struct {
	definitions

	paths, schemas, security object
	of                       map[string]string // the location of each path
	operations               map[string]bool   // their identifiers
	sources                  map[string]string // the texts of the schemas
	isServed                 bool              // whether a listener serves the document, which describes itself alone
}

func newAPIPage() *apiPage {
	return &apiPage{
		paths: object{}, schemas: object{}, security: object{}, of: map[string]string{}, operations: map[string]bool{},
		sources: map[string]string{},
	}
}

// document gives the document of what was added.
func (p *apiPage) document(title, version string) (json.RawMessage, error) {
	document := object{
		"openapi": "3.1.0", "info": object{"title": title, "version": version}, "paths": p.paths,
		"components": object{"schemas": p.schemas, "securitySchemes": p.security, "responses": commonResponses()},
	}
	if p.isServed {
		document["servers"] = []object{{"url": "/"}}
	}
	return json.MarshalIndent(document, "", "  ")
}

// add describes a location.
func (p *apiPage) add(name string, l describedLocation, listener string) error {
	if l.Adapter != "HTTP" || l.Enabled != nil && !*l.Enabled {
		return nil
	}
	u, settings, problems := readReceive(l.Address, l.Settings, func(secret string) bool { _, has := l.Secrets[secret]; return has })
	if err := firstProblem(problems); err != nil {
		return fmt.Errorf("describe receive location %q: %w", name, err)
	}
	if listener != "" && hostPort(u) != listener {
		return nil
	}
	if other := p.of[u.Path]; other != "" {
		return fmt.Errorf("the path %s is that of the locations %q and %q: describe one listener at a time", u.Path, other, name)
	}
	p.of[u.Path] = name
	item := object{}
	if !p.isServed {
		item["servers"] = []object{{"url": (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()}}
	}
	security := ""
	if scheme, has := settings.scheme(); has {
		security = unused(identifier(settings.Authentication+"."+name), func(name string) bool { return p.security[name] != nil })
		p.security[security] = scheme
	}
	for _, method := range settings.Methods {
		item[strings.ToLower(method)] = p.operation(name, l, method, security, &settings)
	}
	// Braces would stand for parameters.
	p.paths[(&url.URL{Path: u.Path}).EscapedPath()] = item
	return nil
}

// operation describes a method of a location; security names how its callers identify themselves, empty: not at all.
func (p *apiPage) operation(name string, l describedLocation, method, security string, s *receiveSettings) object {
	port := p.Ports[l.Port]
	made := object{
		"operationId": p.operationID(method, name), "summary": name, "tags": []string{l.Port},
		"requestBody": object{"required": true, "content": p.content(s)}, "parameters": parameters(s), "responses": responses(port, s),
	}
	if text := strings.TrimSpace(l.Description + "\n\n" + port.Description); text != "" {
		made["description"] = text
	}
	if security != "" {
		made["security"] = []object{{security: []string{}}}
	}
	return made
}

// operationID names an operation as no other one is.
func (p *apiPage) operationID(method, name string) string {
	id := unused(identifier(strings.ToLower(method)+"."+name), func(id string) bool { return p.operations[id] })
	p.operations[id] = true
	return id
}

// unused gives a name that is not taken: the one that is wanted, or one with a number behind it.
func unused(wanted string, isTaken func(name string) bool) string {
	name := wanted
	for n := 2; isTaken(name); n++ {
		name = fmt.Sprint(wanted, "_", n)
	}
	return name
}

// content describes the body of a request.
func (p *apiPage) content(s *receiveSettings) object {
	schema, mediaType := object{}, "*/*"
	if t, has := p.Types[s.MessageType]; has {
		schema, mediaType = p.schema(s.MessageType, t)
	}
	types := s.ContentTypes
	if len(types) == 0 {
		types = []string{mediaType}
	}
	content := object{}
	for _, of := range types {
		content[of] = object{"schema": schema}
	}
	return content
}

// schema describes the body of a message type: a JSON Schema stands in the document, another one is named.
func (p *apiPage) schema(name string, t describedType) (schema object, mediaType string) {
	switch t.Format {
	case "json":
		mediaType = "application/json"
	case "", "xml":
		mediaType = "application/xml"
	case "flat":
		mediaType = "text/plain"
	default:
		mediaType = "application/octet-stream"
	}
	if t.Format != "json" {
		schema = object{"type": "string", "title": name, "contentMediaType": mediaType}
		if t.Schema.File != "" {
			schema["externalDocs"] = object{"url": t.Schema.File}
		}
		return schema, mediaType
	}
	place := p.embed(t.Schema.Documents)[t.Schema.File]
	if place == "" {
		return object{"title": name}, mediaType
	}
	return object{"$ref": place}, mediaType
}

var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// identifier makes a name of a component.
func identifier(text string) string {
	return strings.Trim(notInIdentifiers.ReplaceAllString(text, "_"), "_")
}

// parameters describes headers and parameters of the query.
func parameters(s *receiveSettings) []object {
	all := []object{}
	text := object{"type": "string"}
	if s.Idempotency != "ignored" {
		all = append(all, object{
			"name": s.IdempotencyHeader, "in": "header", "required": s.Idempotency == "required",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": keyBytesMax},
			"description": "A request that comes again under its key is taken once.",
		})
	}
	for _, of := range []struct {
		in    string
		names map[string]string
	}{{"header", s.Headers}, {"header", s.PromotedHeaders}, {"query", s.Query}, {"query", s.PromotedQuery}} {
		for _, name := range slices.Sorted(maps.Keys(of.names)) {
			all = append(all, object{"name": name, "in": of.in, "schema": text, "description": "Property " + of.names[name]})
		}
	}
	return all
}

// scheme describes how callers identify themselves.
func (s *receiveSettings) scheme() (scheme object, has bool) {
	switch s.Authentication {
	case "basic":
		return object{"type": "http", "scheme": "basic"}, true
	case "bearer":
		if strings.EqualFold(s.BearerHeader, authorization) {
			return object{"type": "http", "scheme": "bearer"}, true
		}
		return object{"type": "apiKey", "in": "header", "name": s.BearerHeader}, true
	case "hmac":
		return object{
			"type": "apiKey", "in": "header", "name": s.HMAC.Header,
			"description": fmt.Sprintf("HMAC with %s of %s, in %s, behind %q", s.HMAC.Algorithm, s.HMAC.Signed, s.HMAC.Encoding, s.HMAC.Prefix),
		}, true
	}
	return nil, false
}

// responses describes the statuses of a location.
func responses(port described, s *receiveSettings) object {
	made := object{}
	for _, status := range []int{400, 405, 408, 413, 415, 503} {
		made[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + strconv.Itoa(status)}
	}
	if s.Authentication != "none" {
		made["401"] = object{"$ref": "#/components/responses/401"}
	}
	if port.Responds {
		made["200"] = object{"description": "The answer", "content": object{"*/*": object{}}}
		for _, status := range []int{409, 422, 500, 502, 504} {
			made[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + strconv.Itoa(status)}
		}
		return made
	}
	made["202"] = object{"$ref": "#/components/responses/202"}
	made["200"] = object{"$ref": "#/components/responses/200"}
	if s.SuspendedStatus == 422 {
		made["422"] = object{"$ref": "#/components/responses/422"}
	}
	return made
}

// commonResponses are those that all locations have alike.
func commonResponses() object {
	made := object{}
	for status, text := range map[int]string{
		200: "The request was taken before, under its key", 202: "There is a message", 400: "The request does not fit",
		401: "The caller is not identified", 405: "The method brings no message", 408: "The body did not come in time",
		409: "The request was taken before, and its answer is kept no more", 413: "The body is too large",
		415: "The content type is not taken", 422: "The request is refused, and suspended", 500: "Nothing answers such requests",
		502: "The answer cannot be given", 503: "Come again after Retry-After", 504: "No answer came in time",
	} {
		outcome := object{"type": "object", "properties": object{"error": object{"type": "string"}}}
		if slices.Contains([]int{200, 202, 409, 422, 500, 502, 504}, status) {
			outcome = object{"type": "object", "properties": object{
				"outcome": object{"type": "string"}, "message_id": object{"type": "integer"}, "messages": object{"type": "integer"},
				"error": object{"type": "string"},
			}}
		}
		made[strconv.Itoa(status)] = object{
			"description": text, "content": object{"application/json": object{"schema": outcome}},
		}
	}
	return made
}
