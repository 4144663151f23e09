// Package nemesis tests the promises of dialogs between databases while servers, daemons and links fail. It runs several private PostgreSQL
// servers, a real daemon process for each, proxies between them, and a workload whose ledgers show afterwards which messages were lost,
// repeated or turned round. docs/concepts/reliability.md states the promises and how to run the tests for longer.
//
// Three kinds of tests. The nemesis lets faults loose on the whole, at places drawn from one seed, heals everything, and then all must
// come to rest and the checker must find nothing. The courier carries runs between two databases in this process and repeats, turns
// round and drops them, as no network below TLS can. The failover tests promote standbys, bring old primaries back and copy servers.
package nemesis
