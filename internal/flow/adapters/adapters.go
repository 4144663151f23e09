// Package adapters lists the adapters that hosts have.
package adapters

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/dynamic"
	"github.com/parley-broker/parley/internal/flow/adapter/file"
	"github.com/parley-broker/parley/internal/flow/adapter/mail"
	"github.com/parley-broker/parley/internal/flow/adapter/postgresql"
	"github.com/parley-broker/parley/internal/flow/adapter/service"
	"github.com/parley-broker/parley/internal/flow/adapter/sftp"
	"github.com/parley-broker/parley/internal/flow/adapter/tcp"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
)

// Registry has adapters by their names.
type Registry struct{ kinds []adapter.Kind }

// All gives every adapter that is built in.
func All() Registry {
	return New(file.Kind, mail.Kind, postgresql.Kind, service.Kind, sftp.Kind, tcp.Kind, web.Kind)
}

// New makes a registry of some adapters, and of the one by which messages choose among them.
func New(kinds ...adapter.Kind) Registry {
	kinds = append(slices.Clone(kinds), dynamic.Kind(Registry{kinds}.Find))
	slices.SortFunc(kinds, func(a, b adapter.Kind) int { return strings.Compare(a.Name, b.Name) })
	return Registry{kinds}
}

// Find gives the adapter of a name, as definitions write it.
func (r Registry) Find(name string) (adapter.Kind, bool) {
	at := slices.IndexFunc(r.kinds, func(k adapter.Kind) bool { return k.Name == name })
	if at < 0 {
		return adapter.Kind{}, false
	}
	return r.kinds[at], true
}

// Names gives the names of all, in order.
func (r Registry) Names() []string {
	names := make([]string, len(r.kinds))
	for i, kind := range r.kinds {
		names[i] = kind.Name
	}
	return names
}

// Kinds gives all, in the order of their names.
func (r Registry) Kinds() []adapter.Kind { return slices.Clone(r.kinds) }
