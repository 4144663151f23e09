package bench

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

const (
	// unreachable is the service whose route leads to where nobody listens.
	unreachable = "unreachable"
	// unreachableConversations is how many share the messages that wait for it.
	unreachableConversations = 100
	// localConversations is how many the local sends go to, and those to a target within reach.
	localConversations = 1000

	operationSendLocal   = "send_local"
	operationSendThrough = "send_through"
)

// unreachableTrials measure sends in a database that has much for a target out of reach, and in one that has not.
func unreachableTrials(b *bench, variant string) []trial {
	t := traffic{
		initiators: 1, targets: 1, sessions: or(b.Sessions, unreachableSenders), readers: or(b.Dialog.Readers, usualReaders()),
		conversations: or(b.Conversations, localConversations), size: b.Size, batch: 1, in: explicit,
	}
	var trials []trial
	for _, operation := range []string{operationSendLocal, operationSendThrough} {
		for _, phase := range []string{phaseAged, phaseFresh} {
			r := Result{
				System: systemParley, Variant: variant, Operation: operation, Phase: phase,
				Sessions: t.sessions, Conversations: t.conversations, Size: t.size, Batch: 1,
			}
			trials = append(trials, trial{result: r, run: func(ctx context.Context) (rate float64, err error) {
				made, err := b.newDeployment(ctx, t, dialogQueue, dialogReader)
				if err != nil {
					return 0, err
				}
				if phase == phaseAged {
					err = b.pileUp(ctx, made.initiators[0])
				}
				switch {
				case err != nil:
				case operation == operationSendLocal:
					rate, err = b.driveLocal(ctx, made.initiators[0], t)
				default:
					rate, err = b.driveThrough(ctx, made, t)
				}
				return rate, closeDeployment(ctx, made, err)
			}})
		}
	}
	return trials
}

// pileUp sends as many messages as Config states to a service whose address does not answer.
func (b *bench) pileUp(ctx context.Context, one *broker) error {
	address, err := nobodysAddress(ctx)
	if err != nil {
		return err
	}
	_, err = one.control.Exec(ctx, "select parley.create_route('unreachable', 'tcp://' || $1, service_name => $2)", address, unreachable)
	if err != nil {
		return fmt.Errorf("create a route to nowhere: %w", err)
	}
	rows, err := one.control.Query(ctx, "select parley.begin_dialog($1, $2, contract => $3, encryption => false) from generate_series(1, $4)",
		initiator(dialogQueue), unreachable, messageType, unreachableConversations)
	if err != nil {
		return fmt.Errorf("begin dialogs: %w", err)
	}
	handles, err := pgx.CollectRows(rows, pgx.RowTo[parley.UUID])
	if err != nil {
		return fmt.Errorf("begin dialogs: %w", err)
	}
	return sendBatches(ctx, one.control, handles, b.Size, b.Messages)
}

// nobodysAddress is a port of this machine that nobody listens on.
func nobodysAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// driveLocal sends to a queue of the same database, which nobody reads.
func (b *bench) driveLocal(ctx context.Context, one *broker, t traffic) (float64, error) {
	local := stage{database: one.database, dialogs: map[string][]parley.UUID{}}
	if err := local.addQueue(ctx, one.control, sendQueue, t.conversations); err != nil {
		return 0, err
	}
	return b.driveCounted(ctx, one.database, t.sessions, b.sending(local.dialogs[sendQueue], 1, t.in), moreIn(sendQueue))
}
