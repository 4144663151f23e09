package process

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// EngineProperties are the types of the properties of the engine itself, those of parley_flow._p_engine_property.
var EngineProperties = map[string]string{
	"MessageType": "text", "ReceivePortName": "text", "ReceiveLocationName": "text", "InboundTransportType": "text",
	"InboundTransportLocation": "text", "SourceFileName": "text", "MessageID": "integer", "InterchangeID": "integer",
	"ParentMessageID": "integer", "ReceivedTime": "timestamp", "SendPortName": "text", TokenProperty: "text",
	"Transport.Address": "text", "Transport.Adapter": "text",
	"ErrorReport.ErrorType": "text", "ErrorReport.FailureCode": "text",
	"ErrorReport.FailureCategory": "text", "ErrorReport.MessageType": "text", "ErrorReport.ReceivePortName": "text",
	"ErrorReport.InboundTransportLocation": "text", "ErrorReport.SendPortName": "text", "ErrorReport.OutboundTransportLocation": "text",
	"ErrorReport.RoutingFailureReportID": "integer", "ErrorReport.Description": "text", "ErrorReport.FailureTime": "timestamp",
	"ErrorReport.FailureMessageID": "integer", "ErrorReport.FailureAdapter": "text",
}

// definitionsDocument is a document of definitions as far as orchestrations are concerned.
type definitionsDocument struct {
	Orchestrations  map[string]json.RawMessage `json:"orchestration"`
	PropertySchemas map[string]struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	} `json:"property schema"`
	MessageTypes map[string]json.RawMessage `json:"message type"`
	Maps         map[string]json.RawMessage `json:"map"`
	SendPorts    map[string]json.RawMessage `json:"send port"`
	ReceivePorts map[string]json.RawMessage `json:"receive port"`
}

// KnownOf gives what orchestrations may name, of a whole document of definitions, {kind: {name: settings}}.
func KnownOf(document json.RawMessage) (Known, error) {
	var d definitionsDocument
	if err := json.Unmarshal(document, &d); err != nil {
		return Known{}, fmt.Errorf("read the definitions: %w", err)
	}
	known := Known{
		Orchestrations: d.Orchestrations, Properties: maps.Clone(EngineProperties), MessageTypes: namesOf(d.MessageTypes),
		Maps: namesOf(d.Maps), SendPorts: namesOf(d.SendPorts), ReceivePorts: namesOf(d.ReceivePorts),
	}
	for space, schema := range d.PropertySchemas {
		for name, property := range schema.Properties {
			typ := property.Type
			if typ == "" {
				typ = "text"
			}
			known.Properties[space+"#"+name] = typ
		}
	}
	return known, nil
}

func namesOf(objects map[string]json.RawMessage) map[string]bool {
	names := make(map[string]bool, len(objects))
	for name := range objects {
		names[name] = true
	}
	return names
}

// Check gives all that is wrong with the orchestrations of a whole document of definitions.
func Check(document json.RawMessage) ([]Problem, error) {
	known, err := KnownOf(document)
	if err != nil {
		return nil, err
	}
	var found []Problem
	for _, name := range slices.Sorted(maps.Keys(known.Orchestrations)) {
		_, problems := Compile(name, known.Orchestrations[name], known)
		found = append(found, problems...)
	}
	return found, nil
}
