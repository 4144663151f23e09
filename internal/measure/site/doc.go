// Package site runs brokers side by side on this machine, each as it would be on a host of its own: a private PostgreSQL with its own data,
// and a daemon that is a process of its own. The connections between the daemons can be cut like a cable.
//
// Nothing of it outlives the program. Servers stop when their last user is gone, daemons when the pipe from their parent
// closes, however the parent ended, and what a killed program left on the disk is removed by the next one.
package site
