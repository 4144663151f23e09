// Package server is mail transport as a part of a daemon: it puts the parts of internal/mail together, over the statements of
// internal/store/mail.
//
// Terms. A delivery is a message on its way to a next hop. The categorizer is a statement that is called again and again, as are the
// timers of maintenance. The body cache keeps bodies from their receipt to their delivery, so that none is read back while all goes well.
//
// Owner of the truth: the database. Any number of daemons work on one database side by side; what one has claimed is another's when its
// lease is over. Nothing here has to be repaired after a crash.
package server
