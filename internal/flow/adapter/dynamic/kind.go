// Package dynamic is the adapter Dynamic: each message says by which adapter it goes, and where to, within what its port permits.
package dynamic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Name is that of the adapter.
const Name = "Dynamic"

// The properties of the engine that say where a message goes. Hosts alone set them: a program that publishes cannot.
const (
	addressProperty = "Transport.Address"
	adapterProperty = "Transport.Adapter"
)

// Find gives an adapter by its name.
type Find func(name string) (adapter.Kind, bool)

// Kind makes the adapter, for messages that go by those of find.
func Kind(find Find) adapter.Kind {
	return adapter.Kind{
		Name: Name,
		Guarantee: map[adapter.Direction]string{
			adapter.Send: "At least once, as the adapter that the message names",
		},
		Key: map[adapter.Direction]string{adapter.Send: "that of the adapter"},
		Check: func(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
			if direction != adapter.Send {
				return []adapter.Problem{{Path: []string{"adapter"}, Message: "nothing comes in by it", Remedy: "Name another adapter."}}
			}
			_, problems := read(find, address, settings, secrets)
			return problems
		},
		NewSender: func(e adapter.Endpoint) (adapter.Sender, error) { return newSender(find, e) },
	}
}

// sendSettings are those of a port.
type sendSettings struct {
	AddressProperty string             `json:"address_property"`
	AdapterProperty string             `json:"adapter_property"`
	Adapters        map[string]through `json:"adapters"`
	Rest            adapter.Duration   `json:"rest"`
}

// through is an adapter by which messages may go.
type through struct {
	Settings   map[string]json.RawMessage `json:"settings"`   // the same for all messages
	Properties map[string]string          `json:"properties"` // settings that messages have as properties
	Secrets    []string                   `json:"secrets"`    // those of the port that it gets
}

func sendDefaults() sendSettings {
	return sendSettings{AddressProperty: addressProperty, AdapterProperty: adapterProperty, Rest: adapter.Duration(10 * time.Second)}
}

// port is the definition of a port.
type port struct {
	sendSettings
	prefix string // how the address of each message begins
}

func wrong(message, remedy string, path ...string) adapter.Problem {
	return adapter.Problem{Path: path, Message: message, Remedy: remedy}
}

// read reads the definition of a port.
func read(find Find, address string, settings json.RawMessage, secrets []string) (port, []adapter.Problem) {
	p := port{sendSettings: sendDefaults()}
	problems := adapter.CheckSettings(settings, &p.sendSettings)
	prefix, isPattern := strings.CutSuffix(address, "*")
	p.prefix = prefix
	if !isPattern || prefix == "" || strings.Contains(prefix, "*") || !strings.HasSuffix(prefix, "/") && prefix != "mailto:" {
		problems = append(problems, wrong(fmt.Sprintf("the address %q does not say how the addresses of messages begin", address),
			"Write the beginning of all, up to a slash, and *: https://api.partner.example/*, https://*, /data/out/* or mailto:*.", "address"))
	}
	if len(p.Adapters) == 0 {
		problems = append(problems, wrong("nothing says by which adapters messages may go",
			`Name them: adapters: {HTTP: {}}.`, "settings", "adapters"))
	}
	if len(secrets) > 0 && !isOfOneHost(prefix) {
		problems = append(problems, wrong("messages choose the host that gets the secrets", "Let the address begin with one host and a slash.",
			"address"))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Adapters)) {
		problems = append(problems, check(find, name, p.Adapters[name], prefix, secrets)...)
	}
	return p, problems
}

// isOfOneHost reports whether all addresses that begin so are of one host: a folder, or a host with a slash behind it.
func isOfOneHost(prefix string) bool {
	_, rest, isURL := strings.Cut(prefix, "://")
	return strings.HasPrefix(prefix, "/") || isURL && strings.Index(rest, "/") > 0
}

// check gives what is wrong with an adapter of a port. Settings that messages bring are checked when they come.
func check(find Find, name string, t through, prefix string, secrets []string) []adapter.Problem {
	at := func(path ...string) []string { return append([]string{"settings", "adapters", name}, path...) }
	kind, known := find(name)
	if !known || kind.NewSender == nil || name == Name {
		return []adapter.Problem{wrong(fmt.Sprintf("there is no adapter %q to send by", name), "Name one that sends.", at()...)}
	}
	var problems []adapter.Problem
	for _, secret := range t.Secrets {
		if !slices.Contains(secrets, secret) {
			problems = append(problems, wrong(fmt.Sprintf("the port has no secret %q", secret), "Add it to the secrets of the port.",
				at("secrets")...))
		}
	}
	for setting, property := range t.Properties {
		if _, isFixed := t.Settings[setting]; isFixed || property == "" {
			problems = append(problems, wrong(fmt.Sprintf("the setting %q is fixed, or has no property", setting),
				"Give its value in settings, or the property in properties.", at("properties", setting)...))
		}
	}
	if kind.Check == nil {
		return problems
	}
	written, err := json.Marshal(t.Settings)
	if err != nil {
		return append(problems, wrong(err.Error(), "Write names and values.", at("settings")...))
	}
	for _, p := range kind.Check(adapter.Send, prefix+"x", written, t.Secrets) {
		// Of the settings that are missing here some come with messages, and so does the address.
		isGiven := len(p.Path) > 1 && p.Path[0] == "settings" && t.Settings[p.Path[1]] != nil
		if isGiven || len(p.Path) > 1 && p.Path[0] == "secrets" {
			p.Path = at(p.Path...)
			problems = append(problems, p)
		}
	}
	return problems
}

// checkAddress returns an error unless a port may send to an address.
func (p port) checkAddress(address string) error {
	switch {
	case address == "":
		return fmt.Errorf("the message has no property %s, which says where it goes", p.AddressProperty)
	case !strings.HasPrefix(address, p.prefix) || len(address) == len(p.prefix):
		return fmt.Errorf("the message goes to %q, and the port sends only to addresses that begin with %s", address, p.prefix)
	case strings.ContainsFunc(address, unicode.IsControl) || strings.ContainsRune(address, '\\'):
		return errors.New("the address of the message has a control character or a backslash")
	}
	// A path that leads up again would leave what the port permits.
	path, _, _ := strings.Cut(strings.TrimPrefix(address, p.prefix), "?")
	for segment := range strings.SplitSeq(strings.ReplaceAll(strings.ToLower(path), "%2e", "."), "/") {
		if segment == ".." {
			return fmt.Errorf("the address %q of the message leads upwards", address)
		}
	}
	return nil
}
