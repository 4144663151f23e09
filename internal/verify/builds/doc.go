// Package builds plays the same random scripts on two builds of Parley, each in a database of its own, and compares what their sessions
// see: results, errors, conversations and queues.
//
// Sessions crash in the scripts: between two calls, inside of one, in front of any of its writes, and with the whole server. Without
// another build the scripts are played on this one, in a world of crashes and in one of rollbacks.
//
// The other build is a command at the path that PARLEY_TEST_BUILD_BEFORE names. It installs its own schema. Without it that test
// is skipped, because no build of another commit is kept here:
//
//	git worktree add /tmp/before COMMIT && (cd /tmp/before && go build -o /tmp/parley-before ./cmd/parley)
//	PARLEY_TEST_BUILD_BEFORE=/tmp/parley-before go test ./internal/verify/builds -timeout 60m -builds.scripts=3000
//
// A script has two sessions that take turns, so that each of its runs meets the same locks. It begins, sends, receives, ends, moves, goes
// back to savepoints, rolls back, and crashes. A script ends early where a session waits for the other one in the build before alone: a
// build may come to wait for less.
package builds
