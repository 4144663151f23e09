// Package schema installs the schemas of Parley in a database, upgrades, verifies and removes them: what the owner of a database does
// before programs that import parley can work there.
package schema
