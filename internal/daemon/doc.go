// Package daemon runs the parts of a daemon, and says which of several daemons leads a database.
//
// Terms. A part is one thing that a daemon does: it is prepared, runs and is closed ([Part], [Run]). A [Leader] is the part that serves one
// database. Any number of daemons may serve it; one leads, and only that one does the work of the led parts ([LedPart]): it starts
// readers, fires timers, transmits. The time for which a daemon leads is a [Term], and has a number. It lasts while its lease is renewed.
//
//	waits --lead--> leads --lease not renewed, refused, or stopped--> resigns --> waits
//
// The database alone owns the truth: a row there says which daemon leads, until when, and under which term. Each statement by which a
// led part changes anything carries the term's number, and is refused when the term is over; so a daemon that was paused does nothing when
// it wakes up.
//
// Clock: leases are judged by the clock of the database. A daemon's own clock measures only how long something took.
package daemon
