package schema_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// A job that waits belongs to no conversation, and is not to be lost without a word either.
func TestUninstallSparesMessagesOfSimpleQueuesUnlessForced(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]string{
		"that wait":        "select parley.put('jobs', 'x')",
		"that are delayed": "select parley.put('jobs', 'x', deliver_at => now() + interval '1 hour')",
		"that are set aside": `do $$ begin
			perform parley.put('jobs', 'x');
			perform parley.fail('jobs', 1024, 'in vain');
		end $$`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := fixture.Connect(t, parleytest.Database(t))
			fixture.Execute(t, conn, "select parley.create_queue('jobs', kind => 'SIMPLE')", put)
			requireUninstallOnlyByForce(t, conn, "queues hold messages")
		})
	}
}
