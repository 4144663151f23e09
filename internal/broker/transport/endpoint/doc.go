// Package endpoint is the part of a daemon through which its databases talk to each other and to others: a broker endpoint
// (spec 2.8). It puts together what the packages beside it do: each database has an inbox and, while the daemon leads it, a
// transmitter; the router takes in what comes over links, and links lead to other servers.
package endpoint
