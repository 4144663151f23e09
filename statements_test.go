package parley_test

import (
	"testing"

	"github.com/parley-broker/parley"
)

// setUpServices creates the services initiator and target, each on a queue of the same name, for the contract DEFAULT.
func setUpServices(t *testing.T, db parley.DB) {
	t.Helper()
	execute(t, db,
		"select parley.create_queue('initiator')", "select parley.create_service('initiator', 'initiator')",
		"select parley.create_queue('target')", "select parley.create_service('target', 'target', array['DEFAULT'])")
}
