// Package operate is for who runs a broker: definitions of queues and services, what is there and who holds it, diagnosis, what failed and
// what becomes of it, traces.
package operate
