// Package postgresql is the adapter PostgreSQL: rows of statements are taken in, and messages are written by inserts, functions or
// statements.
//
// In the database of the host both happen in the transactions of the host, exactly once. In another database they happen at least once,
// with a key. Texts of statements come from definitions alone: values of messages are parameters.
package postgresql

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "PostgreSQL",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once in the database of the host, where the statement takes its rows away; elsewhere by the key",
		adapter.Send:    "Exactly once in the database of the host; elsewhere at least once, and once where the key is unique",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "the value of `key_column`; needless in the database of the host",
		adapter.Send:    "`MessageID` in a column of `key`, or as an argument; needless in the database of the host",
	},
	Answers: map[adapter.Direction]bool{adapter.Send: true},
	Check: func(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
		has := func(secret string) bool { return slices.Contains(secrets, secret) }
		problems := adapter.OnlySecrets(secrets, secretPassword, secretAuthorities)
		if direction == adapter.Receive {
			_, _, found := readReceive(address, settings, has)
			return append(problems, found...)
		}
		_, _, found := readSend(address, settings, has)
		return append(problems, found...)
	},
	NewReceiver: newReceiver,
	NewSender:   newSender,
}

// The names of secrets.
const (
	secretPassword    = "password"
	secretAuthorities = "authorities"
)

// anySecret stands for the secrets of a definition that was checked when it was applied.
func anySecret(string) bool { return true }

// firstProblem gives a problem as an error.
func firstProblem(problems []adapter.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	return fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy)
}

func wrong(message, remedy string, path ...string) adapter.Problem {
	return adapter.Problem{Path: append([]string{"settings"}, path...), Message: message, Remedy: remedy}
}
