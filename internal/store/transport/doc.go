// Package transport holds the statements by which a daemon takes messages for other servers out of a database and brings those of others
// in, with the shapes in which messages travel between.
package transport
