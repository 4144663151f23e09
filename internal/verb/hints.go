package verb

import (
	"regexp"
)

// A remedy in SQL has a form on the command line where there is a verb for it.
type remedy struct {
	sql  *regexp.Regexp
	verb string
}

// A name stays in its quotes, which a shell takes as SQL does. One with a quote in it is not matched: a shell writes it in another way.
var remedies = []remedy{
	{
		regexp.MustCompile(`See parley\.service_queues, or create it with parley\.create_queue\.`),
		"parley queues lists them; parley queue create makes one.",
	},
	{
		regexp.MustCompile(`See parley\.schedules, or make it with parley\.schedule\.`),
		"parley schedule lists them; parley schedule set makes one.",
	},
	{
		regexp.MustCompile(`select message_id from parley\.set_aside_messages where queue_name = ('[^']*');`),
		"parley poison messages --queue $1",
	},
	{regexp.MustCompile(`(See parley\.service_message_types\.) The body is .*`), "$1"},
	{regexp.MustCompile(`Use alter_queue to change it`), "Use parley queue alter to change it"},
	{regexp.MustCompile(`See parley\.services\.`), "parley service list lists them."},
	{regexp.MustCompile(`See parley\.conversation_endpoints([;.])`), "parley conversations lists them$1"},
	{regexp.MustCompile(`parley\.conversation_endpoints shows`), "parley conversations --json shows"},
	{regexp.MustCompile(`See parley\.conversation_groups([;.])`), "parley conversations --json shows them$1"},
	{regexp.MustCompile(`See parley\.poison_conversations\.`), "parley poison list lists them."},
	{regexp.MustCompile(`See parley\.peers\.`), "parley peers list lists them."},
	{regexp.MustCompile(`See parley\.certificates\.`), "parley certificate list lists them."},
	{regexp.MustCompile(`See parley\.external_activations\.`), "parley activation list lists them."},
	{regexp.MustCompile(`select parley\.alter_queue\(('[^']*'), status => true\)`), "parley queue enable $1"},
	{regexp.MustCompile(`select parley\.drop_queue\(('[^']*'), force => true\)`), "parley queue drop $1 --force"},
	{regexp.MustCompile(`select \* from parley\.take\(('[^']*')\);`), "parley take $1"},
	{regexp.MustCompile(`select parley\.resume_readers\(('[^']*')\)`), "parley queue resume $1"},
	{regexp.MustCompile(`select parley\.alter_queue\(('[^']*'), activation => false\)`), "parley queue alter $1 --activation=false"},
	{
		regexp.MustCompile(`select parley\.alter_service\(('[^']*'), add_contracts => array\[('[^']*')\]\)`),
		"parley service alter $1 --add-contract $2",
	},
	{regexp.MustCompile(`select parley\.end_conversation\(('[^']*')\)`), "parley end $1"},
	{regexp.MustCompile(`select parley\.retry_poison\(('[^']*')\)`), "parley poison retry $1"},
	{regexp.MustCompile(`select parley\.drop_external_activation\(('[^']*')\)`), "parley activation drop $1"},
	{regexp.MustCompile(`See parley_mail\.queues, or name`), "parley mail queues lists them; or name"},
	{regexp.MustCompile(`select \* from parley_mail\.tracking where internal_message_id = '([0-9]+)'`), "parley mail track --message $1"},
	{
		regexp.MustCompile(`select parley_mail\.suspend_messages\('\{"messages": \[([0-9]+)\]\}'\)`),
		"parley mail suspend --message $1",
	},
	{
		regexp.MustCompile(`select parley_mail\.(remove|resume)_messages\('\{"messages": \[([0-9]+)\]\}'\)`),
		"parley mail $1 --message $2",
	},
	{regexp.MustCompile(`select parley_mail\.suspend_queue\(('[^']*')\)`), "parley mail suspend $1"},
	{regexp.MustCompile(`select parley_mail\.resume_queue\(('[^']*')\)`), "parley mail resume $1"},
	{regexp.MustCompile(`select \* from parley_flow\.track\(([0-9]+)\)`), "parley flow track $1"},
	{regexp.MustCompile(`See parley_flow\.suspended\.`), "parley flow suspended lists them."},
	{
		regexp.MustCompile(`See parley_flow\.definitions, or define it by parley_flow\.apply\.`),
		"parley flow export writes what there is; or define it by parley flow apply.",
	},
	{
		regexp.MustCompile(`Edit and resubmit it, or terminate it: parley_flow\.resubmit, parley_flow\.terminate_suspended\.`),
		"Edit and resubmit it, or terminate it: parley flow suspended resubmit, parley flow suspended terminate.",
	},
	{regexp.MustCompile(`select parley_flow\.enable\(('[^']*')\)`), "parley flow enable $1"},
	{regexp.MustCompile(`[Dd]rop it with parley\.drop_peer`), "drop it with parley peers drop"},
}

// InVerbs gives a hint of the database as somebody on the command line follows it.
func InVerbs(hint string) string {
	for _, r := range remedies {
		hint = r.sql.ReplaceAllString(hint, r.verb)
	}
	return hint
}
