package main

import "github.com/parley-broker/parley/internal/measure/bench"

// awaPeer is awa, whose workers are Rust; its package for Python brings them built, with handlers in Python.
func awaPeer() bench.Peer {
	return newProgramQueue(programQueue{
		name:     "awa",
		short:    "the same through awa: its function for SQL, to a handler in Python of its workers in Rust woken by LISTEN/NOTIFY",
		promise:  "no conversations and no order of them; its handler does nothing in the database; a job runs until its heartbeat is old",
		language: inPython,
		insert: `
			select from awa.insert_job_compat(
				p_kind => 'job', p_queue => 'jobs', p_args => jsonb_build_object('number', $1::bigint, 'padding', $2::text))`,
		count: `
			select -1::bigint,
				(select count(*) from awa.jobs as j where j.state in ('available', 'running', 'retryable', 'scheduled'))`,
		connections: 20,
	})
}
