package parley_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

func TestCopyOfADatabaseIsSwitchedOffUntilItsIdentityIsDecided(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		copy func(t *testing.T, original *pgxpool.Pool) *pgxpool.Pool
		// Its roles are known by their oids.
		isSamePlace bool
	}{
		{"create database template", fixture.Copy, true},
		{"pg_dump and pg_restore", fixture.Restored, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			original := parleytest.Database(t)
			fixture.Execute(t, original, fixture.Talk)
			fixture.Execute(t, original, "select parley_mail.grant_right('VIEW', 'pg_monitor')")
			id := fixture.RequireBrokerState(t, original, parley.BrokerEnabled).ServiceBrokerGUID
			copied := test.copy(t, original)

			broker := fixture.RequireBrokerState(t, copied, parley.BrokerElsewhere)
			if broker.ServiceBrokerGUID != id {
				t.Errorf("the copy is broker %s before anybody has said so", broker.ServiceBrokerGUID)
			}
			cure := "select parley.new_broker();"
			if !strings.Contains(broker.Advice, cure) || !strings.Contains(broker.Advice, original.Config().ConnConfig.Database) {
				t.Errorf("the advice is %q", broker.Advice)
			}
			if fixture.Value[bool](t, copied, "select is_broker_enabled from parley.databases") {
				t.Error("the copy is enabled")
			}
			err := operate.EnableBroker(t.Context(), copied)
			if number, _ := parley.ErrorNumber(err); number != 9772 {
				t.Errorf("enabling a second broker of the same id gives %v, want error 9772", err)
			}
			fixture.Execute(t, copied, cure)
			broker = fixture.RequireBrokerState(t, copied, parley.BrokerEnabled)
			if broker.ServiceBrokerGUID == id {
				t.Error("the copy still has the id of the original")
			}
			if n := fixture.Value[int](t, copied, "select count(*)::int from parley.conversation_endpoints"); n != 0 {
				t.Errorf("the copy still has %d sides of conversations", n)
			}
			// Of mail, a role has in the copy what it had in the original, by its name where that is another place.
			for _, db := range []*pgxpool.Pool{original, copied, copied} {
				if role := fixture.Value[string](t, db, "select role from parley_mail.rights"); role != "pg_monitor" {
					t.Errorf("VIEW is the right of %q", role)
				}
				fixture.Execute(t, db, "select parley_mail._p_follow_roles()")
			}
			const place = "select place::text from parley._p_place"
			if is := fixture.Value[string](t, copied, place) == fixture.Value[string](t, original, place); is != test.isSamePlace {
				t.Errorf("the copy is the same place: %v", is)
			}
			// The original knows nothing of all this.
			fixture.RequireBrokerState(t, original, parley.BrokerEnabled)
			if n := fixture.Value[int](t, original, "select count(*)::int from parley.conversation_endpoints"); n != 3 {
				t.Errorf("the original has %d sides of conversations, want 3", n)
			}
		})
	}
}

func TestDatabaseThatHasMovedGoesOnOnceItIsEnabled(t *testing.T) {
	t.Parallel()
	original := parleytest.Database(t)
	fixture.Execute(t, original, fixture.Talk)
	id := fixture.RequireBrokerState(t, original, parley.BrokerEnabled).ServiceBrokerGUID
	moved := fixture.Copy(t, original)
	// The original is gone, as after a restore on another server.
	fixture.Execute(t, moved, "update parley._p_broker set system_identifier = system_identifier - 1")

	cure := "select parley.enable_broker();"
	if broker := fixture.RequireBrokerState(t, moved, parley.BrokerElsewhere); !strings.Contains(broker.Advice, cure) {
		t.Errorf("the advice is %q", broker.Advice)
	}
	fixture.Execute(t, moved, "select parley.send(parley.begin_dialog('//asker', '//answerer'), 'DEFAULT', 'sent meanwhile')", cure)
	if broker := fixture.RequireBrokerState(t, moved, parley.BrokerEnabled); broker.ServiceBrokerGUID != id {
		t.Errorf("the id is %s, want %s", broker.ServiceBrokerGUID, id)
	}
	if n := fixture.Value[int](t, moved, `select count(*)::int from parley_queue.answering`); n != 2 {
		t.Errorf("%d messages wait, want 2", n)
	}
	fixture.RequireBrokerState(t, moved, parley.BrokerEnabled)
}

func TestCopyThatTakesThePlaceOfItsOriginalIsEnabledByForce(t *testing.T) {
	t.Parallel()
	original := parleytest.Database(t)
	fixture.Execute(t, original, "select parley.disable_broker()")
	copied := fixture.Copy(t, original)
	fixture.RequireBrokerState(t, copied, parley.BrokerElsewhere)
	fixture.Execute(t, copied, "select parley.enable_broker(original_is_disabled => true)")
	fixture.RequireBrokerState(t, copied, parley.BrokerEnabled)
}

func TestAnybodyMayAttach(t *testing.T) {
	t.Parallel()
	original := parleytest.Database(t)
	copied := fixture.Copy(t, original)
	conn := fixture.Connect(t, copied)
	role := "attacher_" + strings.ToLower(copied.Config().ConnConfig.Database)
	fixture.Execute(t, conn, "create role "+role)
	t.Cleanup(func() { _, _ = conn.Exec(context.Background(), "drop role "+role) })
	fixture.Execute(t, conn, "set role "+role)
	fixture.RequireBrokerState(t, conn, parley.BrokerElsewhere)
	fixture.Execute(t, conn, "reset role")
	if fixture.Value[bool](t, conn, "select is_broker_enabled from parley.databases") {
		t.Error("the copy is still enabled")
	}
}

// A database that cannot be written is read, and nothing else.
func TestAttachToAReadOnlyDatabaseReportsTheState(t *testing.T) {
	t.Parallel()
	copied := fixture.Copy(t, parleytest.Database(t))
	conn := fixture.Connect(t, copied)
	fixture.Execute(t, conn, "set default_transaction_read_only = on")
	fixture.RequireBrokerState(t, conn, parley.BrokerElsewhere)
}

func TestAttachReportsWhetherProgramAndSchemaFit(t *testing.T) {
	t.Parallel()
	const this, next = parley.SchemaVersion, parley.SchemaVersion + 1
	requireAttach := func(t *testing.T, program int, db parley.DB, want error) {
		t.Helper()
		_, err := parley.AttachKnowing(t.Context(), db, program)
		fixture.RequireIs(t, err, want)
	}
	conn := fixture.Connect(t, parleytest.Database(t))
	requireAttach(t, this, conn, nil)
	requireAttach(t, next, conn, parley.ErrUpgradeNeeded)

	// The schema is upgraded first, and programs of the version before go on.
	fixture.Execute(t, conn, "update parley._p_installation set schema_version = schema_version + 1")
	requireAttach(t, this, conn, nil)
	requireAttach(t, next, conn, nil)

	// A version that takes something away states it.
	fixture.Execute(t, conn, "update parley._p_installation set schema_version = schema_version + 1, oldest_client_version = schema_version")
	requireAttach(t, this, conn, parley.ErrReleaseTooOld)
	requireAttach(t, next, conn, nil)

	requireAttach(t, this, fixture.Connect(t, parleytest.EmptyDatabase(t)), parley.ErrNotInstalled)
}
