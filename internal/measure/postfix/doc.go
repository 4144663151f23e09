// Package postfix runs Postfix and its two test programs for a measurement: smtp-source, which sends, smtp-sink, which takes and throws
// away, and a Postfix of our own that relays between them, with a configuration and a queue in a folder of ours. A Postfix that the machine
// has is never touched.
package postfix
