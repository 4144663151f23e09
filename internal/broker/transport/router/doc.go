// Package router finds out to which database messages go that have come to this daemon.
//
// Terms. The directory knows the databases that the daemon serves, which broker each of them is, and which services it has. The router
// takes a batch that came over a link apart: each run goes to the database of the broker instance that it names, else where an inbound
// route leads, else to a database that has the service (spec 6.1 to 6.4). A run that has to go on to another server is forwarded, when the
// operator lets this daemon forward: it is neither stored nor acknowledged here (spec 6.8).
//
// Owner of the truth: the databases. The directory's memory of them is a second old at most for services that it has found, and it asks
// again for those that it has not. A run that goes to the wrong place is not taken there, and comes again.
package router
