package governor

const (
	slowCommits = "see what commits wait for, in wait_event of pg_stat_activity: " +
		"SyncRep is a synchronous standby that does not answer, WALSync and WALWrite are a slow disk, Lock is another session"
	space = "free some space, or make the volume larger"
)

// remedies says for each resource of the thresholds that are seeded what relieves it.
var remedies = map[string]string{
	CommitLatency:        slowCommits,
	"uncommitted":        slowCommits,
	"batch points":       slowCommits,
	"submission queue":   "start another daemon, or see in parley diagnose why messages are not categorized",
	"work waiting":       "start another daemon, or see in parley diagnose why work is not done",
	ProcessMemory:        "give the process more memory, or start it again",
	SystemMemory:         "give the machine more memory, or let less run on it",
	MemoryStalls:         "give the machine more memory, or let less run on it",
	DataVolume:           space,
	TemporaryVolume:      space,
	LogVolume:            space + "; pg_replication_slots and pg_stat_archiver show what keeps the log",
	"oldest transaction": "end it: xact_start of pg_stat_activity, pg_prepared_xacts and pg_replication_slots show which one it is",
	"connections":        "raise max_connections, or close what pg_stat_activity shows as idle",
	"replica lag":        "see pg_stat_replication: start the standby, or take it out of synchronous_standby_names",
	"retained log":       "see pg_replication_slots: start the reader of the slot, or drop it",
	"vacuum debt":        "see n_dead_tup of pg_stat_all_tables: vacuum that table, or end what parley diagnose names as old-snapshot",
}
