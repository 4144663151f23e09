package main

import "github.com/parley-broker/parley/internal/measure/bench"

// pgBossPeer is pg-boss. It takes jobs from a statement, which has to notify as its own statement in Node does: the channel is a hash of
// the schema's name.
func pgBossPeer() bench.Peer {
	return newProgramQueue(programQueue{
		name:     "pg-boss",
		language: inNode,
		short:    "the same through pg-boss: a row of its table, to a handler in Node of batches, woken by LISTEN/NOTIFY",
		promise:  "no conversations and no order of them; its handler does nothing in the database; a finished job is kept for a week",
		insert: `
			with inserted as (
				insert into pgboss.job (name, data, policy)
				select q.name, jsonb_build_object('number', $1::bigint, 'padding', $2::text), q.policy
				from pgboss.queue as q where q.name = 'jobs'
			)
			select pg_notify('pgboss_' || left(encode(sha224('pgboss'::bytea), 'hex'), 24), 'jobs')`,
		count:       "select count(*), count(*) filter (where j.state < 'completed') from pgboss.job as j where j.name = 'jobs'",
		connections: 10,
	})
}
