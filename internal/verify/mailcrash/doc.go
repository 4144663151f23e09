// Package mailcrash tests the promises of mail transport while daemons, backends and the database server are killed under load, and while
// the hosts that it sends to fail in every way that they can. Accepted mail arrives or is reported, other mail never arrives, and nothing
// is changed, lost or sent twice without need. docs/concepts/reliability.md states the promises and how to run it for longer.
//
// Several daemon processes work on one database. Letters come in by SMTP and by transactions of which some roll back; they go out by SMTP
// to hosts of [github.com/parley-broker/parley/internal/verify/mailcheck], by LMTP, into Maildirs, to a service and into a table. The
// judge knows what submitters learned and what these places hold, and nothing of mail transport.
package mailcrash
