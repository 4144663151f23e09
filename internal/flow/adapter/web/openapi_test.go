package web

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const described1 = `{
	"receive port": {"Prices": {"application": "A", "responds": true, "description": "of all articles"}, "Orders": {"application": "A"}},
	"receive location": {
		"Prices by HTTP": {"receive_port": "Prices", "adapter": "HTTP", "address": "http://10.0.0.1:8080/prices", "secrets": {"token": "env:T"},
			"settings": {"authentication": "bearer", "message_type": "question", "promoted_headers": {"X-Shop": "urn:p#Shop"}}},
		"Orders by HTTP": {"receive_port": "Orders", "adapter": "HTTP", "address": "https://10.0.0.1:8443/orders",
			"secrets": {"certificate": "file:/c", "private_key": "file:/k"},
			"settings": {"authentication": "none", "message_type": "urn:s#Order", "methods": ["POST", "PUT"], "idempotency": "required"}},
		"Files": {"receive_port": "Orders", "adapter": "FILE", "address": "/in/*.xml"},
		"Off": {"receive_port": "Orders", "adapter": "HTTP", "address": "http://10.0.0.1:8080/off", "enabled": false}
	},
	"message type": {
		"question": {"format": "json", "schema": {"file": "schemas/question.json", "documents": {
			"schemas/question.json": "{\"type\": \"object\", \"properties\": {\"article\": {\"$ref\": \"article.json#/$defs/name\"}}, \"required\": [\"article\"]}",
			"schemas/article.json": "{\"$defs\": {\"name\": {\"$ref\": \"#/$defs/short\"}, \"short\": {\"type\": \"string\", \"maxLength\": 5}}}"}}},
		"urn:s#Order": {"schema": {"file": "schemas/order.xsd", "documents": {"schemas/order.xsd": "<xs:schema/>"}}}
	}
}`

func TestLocationsAreDescribedAsOpenAPI(t *testing.T) {
	t.Parallel()
	written, err := OpenAPI(json.RawMessage(described1), "Shop", "1", "")
	if err != nil {
		t.Fatal(err)
	}
	at := func(path ...string) any {
		t.Helper()
		var value any
		if err := json.Unmarshal(written, &value); err != nil {
			t.Fatal(err)
		}
		for _, name := range path {
			o, is := value.(map[string]any)
			if !is || o[name] == nil {
				t.Fatalf("there is no %s of %v in\n%s", name, path, written)
			}
			value = o[name]
		}
		return value
	}
	at("paths", "/prices", "post", "responses", "504")
	at("paths", "/prices", "post", "security")
	at("paths", "/orders", "put", "responses", "202")
	if got := at("paths", "/orders", "post", "requestBody", "content", "application/xml", "schema", "externalDocs", "url"); got != "schemas/order.xsd" {
		t.Errorf("the schema of XML is %v", got)
	}
	if len(at("paths").(map[string]any)) != 2 || strings.Contains(string(written), "env:T") || strings.Contains(string(written), "xs:schema") {
		t.Errorf("it shows more than it should:\n%s", written)
	}
	// A schema that refers to another one finds it in the document.
	compiler := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("http://x/api.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("http://x/api.json#/components/schemas/schemas_question.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, isValid := range map[string]bool{`{"article": "A-1"}`: true, `{"article": "A-12345"}`: false, `{}`: false} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != isValid {
			t.Errorf("%s is valid: %v, %v", text, err == nil, err)
		}
	}
	if written, err = OpenAPI(json.RawMessage(described1), "Shop", "1", "10.0.0.1:8443"); err != nil || strings.Contains(string(written), "/prices") {
		t.Errorf("of one listener it is %s, %v", written, err)
	}
	if _, err := OpenAPI(json.RawMessage(described1), "Shop", "1", "10.0.0.2:8443"); err == nil {
		t.Error("a listener that there is not is described")
	}
	twice := strings.ReplaceAll(described1, "https://10.0.0.1:8443/orders", "https://10.0.0.1:8443/prices")
	if _, err := OpenAPI(json.RawMessage(twice), "Shop", "1", ""); err == nil || !strings.Contains(err.Error(), "one listener") {
		t.Errorf("a path of two listeners gave %v", err)
	}
}
