// Package metrics reports to monitoring systems what the daemon and its brokers do: as Prometheus text, over OTLP, and as the
// answers of /healthz and /readyz.
//
// Two kinds of numbers meet here. Numbers that the database knows (depths, ages, counters) are read from it in one statement when a scrape
// comes, at most once a second. Numbers that only the daemon knows (readers, leadership, its own statements) it counts itself: [Database]
// is an observer of the activation engine and a tracer of the connections of its pool.
//
// Nothing here is on the path of a message, and nothing waits for a scrape: when the database is away, its figures are
// left out and parley_up is 0. The number of series is bounded: beyond MaxQueues queues the rest are shown as one.
package metrics
