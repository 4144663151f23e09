package main

import "github.com/parley-broker/parley/internal/measure/bench"

// graphilePeer is Graphile Worker, whose documentation recommends as many connections as it works on jobs at once.
func graphilePeer() bench.Peer {
	return newProgramQueue(programQueue{
		name:     "graphile-worker",
		language: inNode,
		short:    "the same through Graphile Worker: add_job, to a task in Node woken by LISTEN/NOTIFY",
		promise:  "no conversations and no order of them; its task does nothing in the database",
		insert:   "select graphile_worker.add_job('job', json_build_object('number', $1::bigint, 'padding', $2::text))",
		count: `
			select coalesce(pg_sequence_last_value(pg_get_serial_sequence('graphile_worker._private_jobs', 'id')), 0),
				(select count(*) from graphile_worker._private_jobs)`,
		connections: 20,
	})
}
