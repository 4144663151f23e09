// Package operate is for operators of a broker: definitions of queues and services, views of its objects and of the sessions that hold
// them, diagnosis, failures and their fate, traces.
package operate
