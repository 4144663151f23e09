// Package metrics reports the counters of the integration engine to Prometheus: each under its own name in lower case, with the name that
// operators know it by as its help text.
package metrics
