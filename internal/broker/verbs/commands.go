// Package verbs is the verbs of the broker, a folder an idea.
package verbs

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/verbs/catalog"
	"github.com/parley-broker/parley/internal/broker/verbs/messages"
	"github.com/parley-broker/parley/internal/broker/verbs/operating"
	"github.com/parley-broker/parley/internal/broker/verbs/trust"
	"github.com/parley-broker/parley/internal/verb"
)

// Commands makes the verbs of the broker.
func Commands(a *verb.App) []*cobra.Command {
	return slices.Concat(messages.Commands(a), catalog.Commands(a), trust.Commands(a), operating.Commands(a))
}
