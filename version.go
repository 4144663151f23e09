package parley

const (
	// Release is the version of this package, and of the program that is built from it.
	Release = "0.1.0-dev"

	// SchemaVersion is the version of the schema that this package installs and works with.
	// It grows by one with each release that changes anything in sql/. Until a version is released its schema changes under the same
	// number: the fingerprint of the installation shows which build has made it.
	SchemaVersion = 1

	// OldestClientVersion is the oldest schema version whose programs work with the schema that this package installs.
	// It grows only when something that such a program calls is removed or changes its meaning, and then to the first
	// version that does without it. See docs/guides/upgrading.md.
	OldestClientVersion = 1
)
