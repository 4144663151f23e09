package verbs

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// newHostsCommand makes parley flow hosts.
func newHostsCommand(env environment) *cobra.Command {
	return list[flowstore.HostNode]{
		name: "hosts", short: "List hosts, and the nodes that serve them", nothing: "there is no host",
		long: `List hosts, a row for each node that serves one, or did in the last day. PUBLISHING, CORRELATION (intake of
messages that something waits for) and DELIVERY are the states of throttling, with their delays: 0 none, 3 messages in
process, 4 memory of the process, 5 memory of the system, 6 size of the database, 8 sessions, 10 and 11 a setting of the host.
PROBLEM is the first thing that the node cannot do.`,
		example: "  parley flow hosts --host Send", read: flowstore.Hosts,
		header: "HOST\tROLE\tNODE\tSTATUS\tSINCE\tIN PROCESS\tLOCATIONS\tRECEIVED\tSENT\tPUBLISHING\tCORRELATION\tDELIVERY\tPROBLEM",
		write: func(out io.Writer, h flowstore.HostNode) {
			r := h.Read()
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n",
				verb.OneLine(h.Host, 0), textOr(h.Role), textOr(h.Node), h.Status(), verb.Moment(h.StartedAt), r.InProcess, r.Locations,
				r.Received, r.Sent, r.Publishing, r.Correlation, r.Delivery, verb.OrNone(verb.OneLine(r.Problem(), errorWidth)))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.Host, "host", "", "this host")
		},
	}.command(env)
}
