package server

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// bound is a configuration whose connectors keep, of their bindings, those that this daemon is to listen on. None given means all. One that
// no connector has is an error beside it.
func bound(configuration *receive.Configuration, only []netip.AddrPort) (*receive.Configuration, error) {
	if len(only) == 0 {
		return configuration, nil
	}
	kept, found := *configuration, make(map[netip.AddrPort]bool)
	kept.Connectors = nil
	for _, connector := range configuration.Connectors {
		copied := *connector
		copied.Bindings = nil
		for _, binding := range connector.Bindings {
			if slices.Contains(only, binding) {
				copied.Bindings = append(copied.Bindings, binding)
				found[binding] = true
			}
		}
		kept.Connectors = append(kept.Connectors, &copied)
	}
	var missing []error
	for _, binding := range only {
		if !found[binding] {
			missing = append(missing, fmt.Errorf("no receive connector has the binding %s", binding))
		}
	}
	return &kept, errors.Join(missing...)
}
