// Package metrics reads the figures of a broker that monitoring systems ask the daemon for.
package metrics
