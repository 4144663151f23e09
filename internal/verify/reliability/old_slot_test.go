//go:build unix

package reliability_test

import "testing"

const oldSlots = "select count(*) from parley.diagnose_runtime(patience => '0') where code = 'old-slot'"

// An unread replication slot keeps every row that was received, however long ago. Diagnosis names it, and its cure, done
// as printed, lets vacuum remove them.
func TestDiagnosisFindsTheSlotThatKeepsReceivedRows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server of its own")
	}
	server := newOwnServer(t, map[string]string{"wal_level": "logical", "max_replication_slots": "4", "max_wal_senders": "4"})
	b := server.fixture(t)
	if found := ask[int](b.admin, oldSlots); found != 0 {
		t.Fatalf("%d slots are found before there is any", found)
	}
	b.admin.exec("select pg_create_logical_replication_slot('forgotten', 'pgoutput')")
	// A slot that has nothing to hold, and one of another database, are none of ours.
	b.admin.exec("select pg_create_physical_replication_slot('fresh')")
	other := server.fixture(t)
	if found := ask[int](other.admin, oldSlots); found != 0 {
		t.Errorf("%d slots are found in another database", found)
	}
	if found := ask[int](b.admin, oldSlots); found != 1 {
		t.Fatalf("%d slots are found, want 1", found)
	}
	cure := ask[string](b.admin, "select cure from parley.diagnose_runtime(patience => '0') where code = 'old-slot' and object_name = 'forgotten'")
	b.admin.exec(cure)
	if found := ask[int](b.admin, oldSlots); found != 0 {
		t.Errorf("%d slots are found after %s", found, cure)
	}
}
