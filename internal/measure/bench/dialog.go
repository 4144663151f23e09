package bench

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
)

// DialogOptions state how dialogs between databases are measured, beside what Config states.
type DialogOptions struct {
	// Readers is how many readers activation may start at a target.
	Readers int
	// SeparateServers gives each database a server and a daemon of its own; else all are on one server, with a daemon for each side.
	SeparateServers bool
	// Rate is how many messages a second are offered where latency is measured.
	Rate int
	// ConversationSteps and TargetSteps are over how many conversations, and target databases, the cost of a message is compared.
	ConversationSteps, TargetSteps []int
	// Program is the program parley that the daemons are; the default is this program itself.
	Program string
	// PostgresVersion is the major version of the servers that are made when Config has no DSN.
	PostgresVersion string
	// Logger receives what takes long.
	Logger *slog.Logger
}

// The paper's set-up, and what the other variants use.
const (
	paperInitiators    = 3
	paperSessions      = 150
	paperConversations = 150
	flatSessions       = 24
	unreachableSenders = 16
)

var (
	conversationSteps = []int{1, 150, 22_500}
	targetSteps       = []int{1, 10, 100}
)

// usualReaders is one for each core, 16 at most as in the paper: more of them share out what waits in smaller parts, and each part costs
// a RECEIVE and a commit (docs/internals/measurements.md).
func usualReaders() int { return min(16, runtime.NumCPU()) }

// dialogVariant is a variant with the trials it consists of.
type dialogVariant struct {
	Variant
	trials func(b *bench, variant string) []trial
}

func dialogVariants() []dialogVariant {
	const paper = "3 initiators, 1 target, 150 sessions, begin, send, commit, against a bare INSERT; bodies of "
	return []dialogVariant{
		{Variant{"paper_100", paper + "100 B"}, paperTrials(100, explicit)},
		{Variant{"paper_1k", paper + "1 KB"}, paperTrials(1024, explicit)},
		{Variant{"paper_4k", paper + "4 KB"}, paperTrials(4096, explicit)},
		{Variant{"paper_8k", paper + "8 KB"}, paperTrials(8192, explicit)},
		{Variant{"paper_100_autocommit", "as paper_100, as single statements"}, paperTrials(100, autocommit)},
		{Variant{"batch_1000", "3 initiators, 1 target, a session each, 1,000 messages a transaction"}, batchTrials},
		{Variant{"unreachable", "sends to others, beside --messages that wait for a target out of reach"}, unreachableTrials},
		{Variant{"latency", "from a sender's commit to the reader's first statement, at --rate, and in one database"}, dialogLatencyTrials},
		{Variant{"conversations", "the same sends over 1 to 22,500 conversations"}, conversationTrials},
		{Variant{"targets", "the same sends to 1 to 100 target databases"}, targetTrials},
		{Variant{"idle_readers", "the processor's time of sessions that wait in RECEIVE, nothing sent"}, idleTrials},
	}
}

func dialogScenario() Scenario {
	s := Scenario{
		Name:    "dialog",
		Short:   "dialogs between databases, from SEND to the row that the reader commits, against a bare INSERT",
		Takes:   TakesDialog,
		servers: func(Config) map[string]string { return dialogSettings },
		Paper:   "18,000 to 19,000 messages/s: three initiators and a target on a server each, 8 cores and a SAN, small bodies",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range dialogVariants() {
				if b.wants(v.Name) {
					trials = append(trials, v.trials(b, v.Name)...)
				}
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range dialogVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// traffic is how much each server sends to each other.
type traffic struct {
	initiators, targets int
	sessions, readers   int
	conversations       int
	size, batch         int
	in                  transaction
	// every, where it is not 0, gives each session one conversation of its own, the first of so many.
	every int
}

func paperTrials(size int, in transaction) func(b *bench, variant string) []trial {
	return func(b *bench, variant string) []trial {
		t := traffic{
			initiators: paperInitiators, targets: 1, sessions: or(b.Sessions, paperSessions), readers: or(b.Dialog.Readers, usualReaders()),
			conversations: or(b.Conversations, paperConversations), size: size, batch: 1, in: in,
		}
		return []trial{b.throughTrial(Result{Variant: variant}, t), b.insertAroundTrial(variant, t)}
	}
}

func batchTrials(b *bench, variant string) []trial {
	t := traffic{
		initiators: paperInitiators, targets: 1, sessions: or(b.Sessions, paperInitiators), readers: or(b.Dialog.Readers, usualReaders()),
		conversations: or(b.Conversations, paperInitiators), size: b.Size, batch: or(b.Batch, sendBatch), in: explicit,
	}
	return []trial{b.throughTrial(Result{Variant: variant}, t), b.insertAroundTrial(variant, t)}
}

func conversationTrials(b *bench, variant string) []trial {
	return steps(b, variant, orSteps(b.Dialog.ConversationSteps, conversationSteps), func(n int) traffic {
		return traffic{
			initiators: 1, targets: 1, sessions: or(b.Sessions, flatSessions), readers: or(b.Dialog.Readers, usualReaders()),
			conversations: n, size: b.Size, batch: 1, in: explicit,
		}
	})
}

func targetTrials(b *bench, variant string) []trial {
	counts := orSteps(b.Dialog.TargetSteps, targetSteps)
	return steps(b, variant, counts, func(n int) traffic {
		return traffic{
			initiators: 1, targets: n, sessions: or(b.Sessions, flatSessions), readers: max(1, or(b.Dialog.Readers, usualReaders())/n),
			conversations: max(b.Conversations, slices.Max(counts)), size: b.Size, batch: 1, in: explicit,
		}
	})
}

// steps makes a trial for each step, each of which is compared with the first.
func steps(b *bench, variant string, counts []int, shape func(n int) traffic) []trial {
	var trials []trial
	for i, n := range counts {
		r := Result{Variant: variant, Operation: fmt.Sprintf("%s_%d", variant, n)}
		if i > 0 {
			r.Base = fmt.Sprintf("%s_%d", variant, counts[0])
		}
		trials = append(trials, b.throughTrial(r, shape(n)))
	}
	return trials
}

func orSteps(asked, usual []int) []int {
	if len(asked) > 0 {
		return asked
	}
	return usual
}
