package schema

import (
	"fmt"

	"github.com/parley-broker/parley"
)

// RequireBuild reports whether a broker that was attached to has the schema of this build. While a version is not released, builds of it
// differ: a program of one must not work on the schema of another, as on a copy of a database that another build has installed.
//
// Errors: [ErrOtherBuild].
func RequireBuild(b parley.Broker) error {
	if b.SchemaVersion == parley.SchemaVersion && b.Fingerprint != currentFingerprint() {
		return fmt.Errorf("attach to the broker: %w (version %d, release %s)", ErrOtherBuild, b.SchemaVersion, b.Release)
	}
	return nil
}
