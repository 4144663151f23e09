package server

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// bound is a configuration whose connectors keep, of their bindings, those that this daemon is to listen on. None given means all.
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
	for _, binding := range only {
		if !found[binding] {
			return nil, fmt.Errorf("no receive connector has the binding %s", binding)
		}
	}
	return &kept, nil
}
