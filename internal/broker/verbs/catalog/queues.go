package catalog

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/verbs/top"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newQueuesCommand(a *verb.App) *cobra.Command {
	return verb.Lists(a, &cobra.Command{
		Use:   "queues",
		Short: "List the queues and what waits in them",
		Long: `List the queues: whether they are on, what they keep, who reads them, the services bound to them, how many
messages wait and for how long the oldest has waited.

STATUS is ON, OFF (by ALTER QUEUE) or POISONED (a message was rolled back too often); PAUSED is added when its readers are paused.
POISON shows how often the message at the head was rolled back, of how many times that set its conversation aside or, as
the queue is set, disable the queue; and how many conversations are set aside (parley poison list).
READERS is how many readers activation starts at most, and which: procedure, program or webhook.
WAITING is exact up to some 10,000 rows; beyond that it is an estimate, marked with ~, a few percent off at most.
Messages that arrived while the queue was off are counted apart as held: they are still their senders'. Those of a simple queue that
failed and wait for another attempt are counted apart as retrying: parley poison messages --failing lists them.`,
		Example: `  parley queues
  parley queues --json | jq '.[] | select(.status != "ON") | .queue'`,
	}, verb.Listing[operate.QueueStatus]{
		Read:     operate.ReadQueues,
		IsSystem: func(queue operate.QueueStatus) bool { return queue.IsSystem },
		Write:    writeQueues,
		AllHelp:  "list the broker's own queues too",
	})
}

func writeQueues(out io.Writer, queues []operate.QueueStatus) error {
	if len(queues) == 0 {
		_, err := fmt.Fprintln(out, "no queues; parley queue create QUEUE creates one")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "QUEUE\tSTATUS\tRETENTION\tPOISON\tREADERS\tWAITING\tOLDEST\tSERVICES")
	for _, queue := range queues {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			verb.OneLine(queue.Queue, 0), status(queue), verb.OnOff(queue.Retention), poison(queue), readers(queue),
			waiting(queue.Backlog), oldest(queue.Backlog), verb.OrNone(verb.OneLine(strings.Join(queue.Services, ", "), 0)))
	}
	return table.Flush()
}

func status(queue operate.QueueStatus) string {
	if queue.ReadersPausedAt != nil {
		return queue.Status + ", PAUSED"
	}
	return queue.Status
}

func poison(queue operate.QueueStatus) string {
	text := "OFF"
	switch {
	case queue.PoisonMessageHandling && queue.Backlog == nil:
		text = "ON"
	case queue.PoisonMessageHandling:
		text = fmt.Sprintf("%d/%d", queue.Backlog.Rollbacks, queue.PoisonRollbacks)
	}
	aside := queue.SetAsideConversations
	if queue.Backlog != nil {
		aside += queue.Backlog.SetAsideMessages
	}
	if aside > 0 {
		text += fmt.Sprintf(" + %d set aside", aside)
	}
	return text
}

func readers(queue operate.QueueStatus) string {
	switch {
	case queue.Activation:
		return fmt.Sprintf("%d procedure", queue.MaxQueueReaders)
	case queue.ExternalEnabled:
		return fmt.Sprintf("%d %s", queue.MaxInstances, *queue.ExternalActivation)
	}
	return "-"
}

func waiting(backlog *operate.QueueBacklog) string {
	if backlog == nil {
		return "not allowed"
	}
	about := ""
	if backlog.IsEstimated {
		about = "~"
	}
	text := fmt.Sprintf("%s%d", about, backlog.WaitingMessages)
	if backlog.HeldMessages > 0 {
		text += fmt.Sprintf(" + %s%d held", about, backlog.HeldMessages)
	}
	if backlog.DelayedMessages > 0 {
		text += fmt.Sprintf(" + %d delayed", backlog.DelayedMessages)
	}
	if backlog.RetryingMessages > 0 {
		text += fmt.Sprintf(" + %d retrying", backlog.RetryingMessages)
	}
	return text
}

func oldest(backlog *operate.QueueBacklog) string {
	if backlog == nil || backlog.OldestSeconds == nil {
		return "-"
	}
	return top.Age(*backlog.OldestSeconds)
}
