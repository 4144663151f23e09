package server

import (
	"sync/atomic"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// resolved counts what the categorizer came upon.
type resolved struct {
	failed, loops, chipped, created, recipients, senders atomic.Int64
}

func (r *resolved) add(more mailstore.Resolved) {
	r.failed.Add(int64(more.FailedRecipients))
	r.loops.Add(int64(more.LoopRecipients))
	r.chipped.Add(int64(more.Chipped))
	r.created.Add(int64(more.Created))
	r.recipients.Add(int64(more.UnresolvedRecipients))
	r.senders.Add(int64(more.UnresolvedSenders))
}

// countResolved counts the work of the categorizer.
func (s *Server) countResolved(f *figures) {
	const object = "Resolver"
	r := &s.tally.resolved
	f.total(object, "Messages Categorized", "", s.tally.categorized.Load())
	f.total(object, "Messages Retried", "", s.tally.categorizerFailures.Load())
	f.total(object, "Messages Set Aside", "", s.tally.setAside.Load())
	f.total(object, "Messages Chipped", "", r.chipped.Load())
	f.total(object, "Messages Created", "", r.created.Load())
	f.total(object, "Failed Recipients", "", r.failed.Load())
	f.total(object, "Loop Recipients", "", r.loops.Load())
	f.total(object, "Unresolved Org Recipients", "", r.recipients.Load())
	f.total(object, "Unresolved Org Senders", "", r.senders.Load())
}
