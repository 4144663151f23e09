package host

import (
	"encoding/json"
	"errors"
	"fmt"
)

// errNotServed says that a location has gone.
var errNotServed = errors.New("the location is not served any more")

// describeLocation gives the definitions of a location as they are now, in the form of an export: the location, its receive port, and of
// the message types the one that is named.
func (h *Host) describeLocation(name, messageType string) (json.RawMessage, error) {
	c := h.settings.Load()
	if c == nil {
		return nil, errNotServed
	}
	l, isThere := c.Locations[name]
	if !isThere {
		return nil, errNotServed
	}
	exported := map[string]map[string]json.RawMessage{"receive location": {name: l.text}}
	for _, other := range []struct {
		kind, name string
		all        json.RawMessage
	}{{"receive port", l.ReceivePort, c.ReceivePorts}, {"message type", messageType, c.MessageTypes}} {
		var objects map[string]json.RawMessage
		if err := json.Unmarshal(other.all, &objects); err != nil {
			return nil, fmt.Errorf("read a %s: %w", other.kind, err)
		}
		if text, has := objects[other.name]; has {
			exported[other.kind] = map[string]json.RawMessage{other.name: text}
		}
	}
	return json.Marshal(exported)
}
