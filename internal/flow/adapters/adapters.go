// Package adapters lists the adapters that hosts have.
package adapters

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

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

// builtIn are the adapters of Parley.
var builtIn = []adapter.Kind{file.Kind, mail.Kind, postgresql.Kind, service.Kind, sftp.Kind, tcp.Kind, web.Kind}

// registered are those of the program in which this runs. They are set once, before anything asks for them.
var registered atomic.Pointer[[]adapter.Kind]

// All gives every adapter that is built in, and those that were registered.
func All() Registry {
	if more := registered.Load(); more != nil {
		return New(slices.Concat(builtIn, *more)...)
	}
	return New(builtIn...)
}

// Register adds adapters to those that [All] gives from now on.
func Register(kinds ...adapter.Kind) error {
	if _, err := With(kinds...); err != nil {
		return err
	}
	registered.Store(&kinds)
	return nil
}

// With gives every adapter that is built in, and some more. Each has a name of its own, and moves messages in some direction.
func With(kinds ...adapter.Kind) (Registry, error) {
	names := New(builtIn...).Names()
	for _, kind := range kinds {
		switch {
		case kind.Name == "" || kind.NewReceiver == nil && kind.NewSender == nil:
			return Registry{}, fmt.Errorf("an adapter %q has no name, or neither receives nor sends", kind.Name)
		case slices.Contains(names, kind.Name):
			return Registry{}, fmt.Errorf("there are two adapters %q; give yours another name", kind.Name)
		}
		names = append(names, kind.Name)
	}
	return New(slices.Concat(builtIn, kinds)...), nil
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
