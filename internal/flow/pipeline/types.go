package pipeline

import (
	"encoding/json"
	"fmt"
)

// Types are the message types that pipelines know, with their schemas and promotions. They can be used by several pipelines at a time.
type Types struct {
	byName     map[string]*messageType
	properties map[string]property
}

// messageType is a message type as definitions have it.
type messageType struct {
	name       string
	Format     string            `json:"format"`
	Schema     json.RawMessage   `json:"schema"`
	Promotions map[string]string `json:"promotions"`
	Written    map[string]string `json:"written"`
}

// property is a property as its schema declares it.
type property struct {
	Type        string `json:"type"`
	IsSensitive bool   `json:"sensitive"`
}

// NewTypes takes message types and property schemas, each an object of names and settings, as definitions and the configuration of a host
// have them; nil: none.
func NewTypes(messageTypes, propertySchemas json.RawMessage) (*Types, error) {
	t := &Types{byName: map[string]*messageType{}, properties: map[string]property{}}
	if len(messageTypes) > 0 {
		if err := json.Unmarshal(messageTypes, &t.byName); err != nil {
			return nil, fmt.Errorf("read the message types: %w", err)
		}
	}
	var schemas map[string]struct {
		Properties map[string]property `json:"properties"`
	}
	if len(propertySchemas) > 0 {
		if err := json.Unmarshal(propertySchemas, &schemas); err != nil {
			return nil, fmt.Errorf("read the property schemas: %w", err)
		}
	}
	for name, m := range t.byName {
		if m == nil {
			m = &messageType{}
			t.byName[name] = m
		}
		m.name = name
	}
	for namespace, schema := range schemas {
		for name, p := range schema.Properties {
			t.properties[namespace+"#"+name] = p
		}
	}
	return t, nil
}
