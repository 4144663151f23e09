package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// decayVariant is a burden under which a database may get slower.
type decayVariant struct {
	Variant
	// age puts the burden on a database, and gives what lifts it in the end.
	age      func(ctx context.Context, b *bench, s stage, d database) (lift func(), err error)
	isSimple bool // of a simple queue, and not of dialogs
	hasLives bool // whole lives are measured too
}

func decayVariants() []decayVariant {
	return append([]decayVariant{
		{
			Variant{"old_snapshot", "an idle repeatable-read transaction is held while messages are sent and received"},
			ageUnderOldSnapshot, false, false,
		},
		{Variant{"pg_dump", "a dump is running while messages are sent and received"}, ageUnderDump, false, false},
		{Variant{"locked_neighbour", "messages wait in a locked conversation group of the same queue"}, ageByLockedNeighbour, false, false},
		{Variant{"idle_conversations", "many conversations are idle: a tenth of --messages"}, ageByIdleConversations, false, false},
		{Variant{"short_conversations", "many conversations were begun, used and ended on both sides"}, ageByShortConversations, false, true},
		{
			Variant{"short_conversations_old_snapshot", "the same while an idle repeatable-read transaction is held"},
			ageByShortConversationsUnderOldSnapshot, false, true,
		},
	}, simpleDecayVariants()...)
}

func decayScenario() Scenario {
	s := Scenario{
		Name:  "decay",
		Short: "send and receive, put and take, in an aged database against a fresh one",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var results []Result
			for _, v := range decayVariants() {
				if !b.wants(v.Name) {
					continue
				}
				more, err := b.measureDecay(ctx, v)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.Name, err)
				}
				results = append(results, more...)
			}
			return results, nil
		},
	}
	for _, v := range decayVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// measureDecay ages one copy of the stage, and compares runs in it with runs in fresh copies, in turns.
func (b *bench) measureDecay(ctx context.Context, v decayVariant) ([]Result, error) {
	s, operations, err := b.decayStage(ctx, v)
	if err != nil {
		return nil, err
	}
	aged, err := b.cluster.create(ctx, s.database)
	if err != nil {
		return nil, err
	}
	b.progress("ageing: %s", v.Name)
	lift, err := v.age(ctx, b, s, aged)
	if err != nil {
		return nil, err
	}
	defer lift()
	var trials []trial
	for _, op := range operations {
		trials = append(
			trials,
			b.decayTrial(v.Name, op, phaseFresh, func(ctx context.Context) (float64, error) {
				return b.onCopy(ctx, s, func(d database) (float64, error) { return op.run(ctx, b, s, d) })
			}),
			b.decayTrial(v.Name, op, phaseAged, func(ctx context.Context) (float64, error) { return op.run(ctx, b, s, aged) }),
		)
	}
	results, err := b.measure(ctx, trials)
	if err != nil {
		return nil, err
	}
	lift()
	return results, b.cluster.drop(ctx, aged)
}

// decayStage is the stage that is aged, and the operations that are measured there.
func (b *bench) decayStage(ctx context.Context, v decayVariant) (stage, []decayOperation, error) {
	if v.isSimple {
		s, err := b.simpleStage(ctx, 0)
		return s, simpleDecayOperations(), err
	}
	s, err := b.stage(ctx, "conversations to send and to receive", func(ctx context.Context, conn *pgx.Conn, s *stage) error {
		if err := s.addQueue(ctx, conn, sendQueue, or(b.Conversations, sendConversations)); err != nil {
			return err
		}
		return s.addQueue(ctx, conn, receiveQueue, receiveConversations)
	})
	operations := decayOperations()
	if v.hasLives {
		operations = append([]decayOperation{lifeOperation()}, operations...)
	}
	return s, operations, err
}

func (b *bench) decayTrial(variant string, op decayOperation, phase string, run func(context.Context) (float64, error)) trial {
	sessions, conversations := op.shape(b.Config)
	return trial{
		result: Result{
			System: systemParley, Variant: variant, Operation: op.name, Phase: phase,
			Sessions: sessions, Conversations: conversations, Size: b.Size, Batch: op.top,
		},
		run: run,
	}
}
