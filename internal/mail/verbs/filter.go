package verbs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// completeMailQueues lists the queues of mail.
const completeMailQueues verb.Completer = `
	select q.queue || chr(9) || q.status || ' ' || q.messages
	from parley_mail.queues as q
	order by q.messages desc
	limit 50`

// mailFilterFlags are the conditions that choose messages. The database defines their meaning.
type mailFilterFlags struct {
	cmd       *cobra.Command
	texts     map[string]*string
	messages  []int64
	statuses  []string
	where     []string
	olderThan time.Duration
	larger    string
	attempts  int
}

func (f *mailFilterFlags) add(a *verb.App, cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	f.texts = map[string]*string{}
	for _, condition := range []struct{ name, usage string }{
		{"queue", "in this queue; * stands for anything"},
		{"sender", "from this sender; * stands for anything, '' is the null sender"},
		{"recipient", "to this recipient; * stands for anything"},
		{"subject", "with this subject; * stands for anything"},
		{"tag", "with this tag of the submitter; * stands for anything"},
		{"error", "whose last error contains this text"},
		{"source", "that came by SMTP, SQL, HTTP, PICKUP, REPLAY or DSN"},
		{"priority", "of priority HIGH, NORMAL or LOW"},
	} {
		f.texts[condition.name] = flags.String(condition.name, "", "messages "+condition.usage)
	}
	flags.Int64SliceVar(&f.messages, "message", nil, "these messages, by their numbers")
	flags.StringSliceVar(&f.statuses, "status", nil,
		"messages that are READY, ACTIVE, RETRY, SUSPENDED, PENDING_SUSPEND, PENDING_REMOVE or SCHEDULED")
	flags.DurationVar(&f.olderThan, "older-than", 0, "messages that came longer ago, such as 1h")
	flags.StringVar(&f.larger, "larger-than", "", "messages of more bytes, or of more than '5 MB'")
	flags.StringArrayVar(&f.where, "where", nil, "messages by "+mailWhereUsage)
	flags.IntVar(&f.attempts, "attempts", 0, "messages that were tried so often at least")
	a.CompleteFlag(cmd, "queue", completeMailQueues)
}

// filter writes the flags that were given as the database takes them.
func (f *mailFilterFlags) filter() (mailstore.Filter, error) {
	filter := mailstore.Filter{}
	for name, value := range f.texts {
		if f.cmd.Flags().Changed(name) {
			filter[name] = *value
		}
	}
	for _, condition := range []struct {
		flag, key string
		value     any
	}{
		{"message", "messages", f.messages},
		{"status", "status", f.statuses},
		{"older-than", "older", fmt.Sprintf("%f seconds", f.olderThan.Seconds())},
		{"larger-than", "larger", f.larger},
		{"attempts", "attempts", f.attempts},
	} {
		if f.cmd.Flags().Changed(condition.flag) {
			filter[condition.key] = condition.value
		}
	}
	return filter, addMailConditions(filter, f.where)
}
