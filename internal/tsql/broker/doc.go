// Package broker compiles the statements of Service Broker: conversations, messages, and the definitions that they need. Each becomes one
// call of a function of the schema parley; values travel as parameters.
package broker
