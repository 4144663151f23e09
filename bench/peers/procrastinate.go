package main

import "github.com/parley-broker/parley/internal/measure/bench"

// procrastinatePeer is procrastinate, the job queue for Python that waits by LISTEN.
func procrastinatePeer() bench.Peer {
	return newProgramQueue(programQueue{
		name:     "procrastinate",
		short:    "the same through procrastinate: its function that defers, to a task of asyncio in Python woken by LISTEN/NOTIFY",
		promise:  "order of jobs of one lock alone; its task does nothing in the database; a job is doing until its worker's heartbeat is old",
		language: inPython,
		insert: `
			select procrastinate_defer_jobs_v1(array[
				('jobs', 'job', 0, null, null, jsonb_build_object('number', $1::bigint, 'padding', $2::text), null)::procrastinate_job_to_defer_v1
			])`,
		count: `
			select coalesce(pg_sequence_last_value(pg_get_serial_sequence('procrastinate_jobs', 'id')), 0),
				(select count(*) from procrastinate_jobs where status in ('todo', 'doing'))`,
		connections: 10,
	})
}
