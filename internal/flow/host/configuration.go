package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/flow/process"
)

// configuration has the definitions that concern a host, as parley_flow._p_configuration gives them. It does not change.
type configuration struct {
	Version         int64                    `json:"version"`
	Epoch           int64                    `json:"epoch"`
	Host            hostSettings             `json:"host"`
	Locations       map[string]location      `json:"receive_locations"`
	ReceivePorts    json.RawMessage          `json:"receive_ports"`
	SendPorts       map[string]sendPort      `json:"send_ports"`
	Orchestrations  map[string]orchestration `json:"orchestrations"`
	Known           json.RawMessage          `json:"known"`
	Pipelines       map[string]pipelineText  `json:"pipelines"`
	MessageTypes    json.RawMessage          `json:"message_types"`
	PropertySchemas json.RawMessage          `json:"property_schemas"`
	Maps            json.RawMessage          `json:"maps"`
	Groups          []match.Group            `json:"groups"`

	matcher *match.Matcher
	types   *pipeline.Types
	maps    *mapping.Maps
	known   process.Known
	// receivePorts are those of ReceivePorts, as far as a host uses them.
	receivePorts map[string]receivePort
}

// receivePort is a receive port.
type receivePort struct {
	Maps         []string `json:"maps"`
	ResponseMaps []string `json:"response_maps"` // of answers on their way to clients
}

// hostSettings are those of the host itself.
type hostSettings struct {
	Role            string `json:"role"`
	InProcessPerCPU int    `json:"in_process_per_cpu"`
	Publishing      string `json:"publishing_throttling"` // auto, force or never
	Correlation     string `json:"correlation_throttling"`
	Delivery        string `json:"delivery_throttling"`
}

// location is a receive location.
type location struct {
	ReceivePort      string            `json:"receive_port"`
	Adapter          string            `json:"adapter"`
	Address          string            `json:"address"`
	Pipeline         string            `json:"pipeline"`
	PipelineSettings json.RawMessage   `json:"pipeline_settings"`
	Settings         json.RawMessage   `json:"settings"`
	Secrets          map[string]string `json:"secrets"`
	IsEnabled        bool              `json:"enabled"`
	Application      string            `json:"application"`
	Brings           string            `json:"brings"`
	Responds         bool              `json:"responds"` // as its port says
	ResponsePipeline string            `json:"response_pipeline"`
	ResponseMS       int64             `json:"response_ms"`
	Schedule         json.RawMessage   `json:"schedule"`

	opening opening
	text    json.RawMessage // the definition as it is written
}

// UnmarshalJSON reads a location, and keeps its text.
func (l *location) UnmarshalJSON(text []byte) error {
	type fields location
	if err := json.Unmarshal(text, (*fields)(l)); err != nil {
		return err
	}
	l.text = bytes.Clone(text)
	return nil
}

// sendPort is a send port.
type sendPort struct {
	Number           int64             `json:"send_port"`
	Application      string            `json:"application"`
	Adapter          string            `json:"adapter"`
	Address          string            `json:"address"`
	Pipeline         string            `json:"pipeline"`
	PipelineSettings json.RawMessage   `json:"pipeline_settings"`
	Settings         json.RawMessage   `json:"settings"`
	Secrets          map[string]string `json:"secrets"`
	Maps             []string          `json:"maps"`
	State            string            `json:"state"`
	IsOrdered        bool              `json:"ordered"`
	Concurrency      int               `json:"concurrency"`
	Batch            int               `json:"batch"`
	Responds         bool              `json:"responds"`
	ResponsePipeline string            `json:"response_pipeline"`
	ResponseMaps     []string          `json:"response_maps"`
	Schedule         json.RawMessage   `json:"schedule"`

	opening opening
}

// pipelineText is a pipeline in a version.
type pipelineText struct {
	Version   int64           `json:"version"`
	Direction string          `json:"direction"`
	Stages    json.RawMessage `json:"stages"`
}

// readConfiguration reads what the database gives.
func readConfiguration(written json.RawMessage, pool *mapping.Pool) (*configuration, error) {
	c := &configuration{}
	if err := json.Unmarshal(written, c); err != nil {
		return nil, fmt.Errorf("read the configuration of the host: %w", err)
	}
	types, err := pipeline.NewTypes(c.MessageTypes, c.PropertySchemas)
	if err != nil {
		return nil, fmt.Errorf("use the message types: %w", err)
	}
	if c.maps, err = mapping.New(c.Maps, pool); err != nil {
		return nil, err
	}
	if len(c.ReceivePorts) > 0 {
		if err := json.Unmarshal(c.ReceivePorts, &c.receivePorts); err != nil {
			return nil, fmt.Errorf("read the receive ports: %w", err)
		}
	}
	for name, l := range c.Locations {
		l.opening = newOpening(l.Schedule)
		c.Locations[name] = l
	}
	for name, p := range c.SendPorts {
		p.opening = newOpening(p.Schedule)
		c.SendPorts[name] = p
	}
	if c.known, err = knownTo(c); err != nil {
		return nil, err
	}
	c.types, c.matcher = types, match.New(c.Epoch, c.Groups)
	return c, nil
}

// definition gives a pipeline as its package wants it.
func (c *configuration) definition(name string) (pipeline.Definition, error) {
	text, known := c.Pipelines[name]
	if !known {
		return pipeline.Definition{}, fmt.Errorf("there is no pipeline %q", name)
	}
	d := pipeline.Definition{Name: name, Direction: text.Direction}
	if len(text.Stages) > 0 {
		if err := json.Unmarshal(text.Stages, &d.Stages); err != nil {
			return d, fmt.Errorf("read pipeline %q: %w", name, err)
		}
	}
	return d, nil
}

// fingerprint is a text that differs when something differs of which a location or a port is made. It is that of a definition, its
// pipelines and maps and, where components of these may use them, the message types.
func (c *configuration) fingerprint(definition any, maps []string, pipelines ...string) string {
	parts, usesTypes := []any{definition}, len(maps) > 0
	for _, name := range maps {
		parts = append(parts, name, c.maps.Definition(name))
	}
	for _, name := range pipelines {
		text := c.Pipelines[name]
		parts, usesTypes = append(parts, text), usesTypes || string(text.Stages) != "{}"
	}
	if usesTypes {
		parts = append(parts, c.MessageTypes, c.PropertySchemas)
	}
	written, err := json.Marshal(parts)
	if err != nil { // only of what was read as JSON
		return err.Error()
	}
	return string(written)
}

// mapsOf gives the names of the maps of a location: those of its port.
func (c *configuration) mapsOf(l location) []string { return c.receivePorts[l.ReceivePort].Maps }

// allMapsOf gives them with those of its answers.
func (c *configuration) allMapsOf(l location) []string {
	return slices.Concat(c.mapsOf(l), c.receivePorts[l.ReceivePort].ResponseMaps)
}

// names of a map, in order.
func names[T any](of map[string]T) []string { return slices.Sorted(maps.Keys(of)) }

// The intervals of a host.
const (
	configurationInterval = 5 * time.Second // when the number of the configuration is asked for without a notification
	maintenanceInterval   = 2 * time.Second
	reportInterval        = 5 * time.Second
	claimTimeout          = time.Second // how long a claim waits for work
	statementTimeout      = time.Minute
	restartPause          = time.Second // before a location that failed begins again, at first
	longestRestart        = 30 * time.Second
)
