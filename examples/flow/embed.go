// Package flow is an example of the integration engine, which parley demo flow plays: definitions, the schema of an order, and tables.
package flow

import "embed"

// Files are the files of the example, as parley flow apply takes them; shop.sql is run before.
//
//go:embed *.yaml shop.sql schemas
var Files embed.FS
