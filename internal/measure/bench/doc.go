// Package bench measures the speed of the broker, in ratio to a bare INSERT that the same client does in the same run.
//
// A scenario is what one command measures: send, receive, life, decay or dialog. It has variants, and a variant has one or more systems:
// "parley", "insert", the bare INSERT beside it, and each Peer that the command was given. One system under one variant is a trial. Trials
// are run in turns, A, B, C, A, B, C, so that whatever drifts on the machine hits all alike; of the runs of each the median counts.
//
// Latency is another matter: not how much, but how soon. It is measured at a rate that is offered, beside the peers.
//
// Nothing is measured in a database that is in use. A stage is a database of our own, prepared once: schema, queues,
// conversations, waiting messages, vacuumed and analyzed. Each run has a fresh copy of a stage, which is dropped afterwards,
// so no run finds what an earlier one left, and nothing is left behind at the end, however that comes.
package bench
