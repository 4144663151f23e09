package verbs

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// nodeReport has the part of the report of a node that is shown.
type nodeReport struct {
	InProcess   int `json:"in_process"`
	Locations   int `json:"receive_locations"`
	Received    int64
	Sent        int64
	Publishing  throttlingReport
	Correlation throttlingReport
	Delivery    throttlingReport
	IsStopping  bool `json:"is_stopping"`
	Problems    []struct{ Object, Cause string }
}

type throttlingReport struct {
	State   int
	DelayMS int64 `json:"delay_ms"`
}

func (t throttlingReport) String() string {
	if t.State == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%d ms)", t.State, t.DelayMS)
}

// newHostsCommand makes parley flow hosts.
func newHostsCommand(env environment) *cobra.Command {
	return list[flowstore.HostNode]{
		name: "hosts", short: "List hosts, and the nodes that serve them", nothing: "there is no host",
		long: `List hosts, a row for each node that serves one, or did in the last day. PUBLISHING, CORRELATION (intake of
messages that something waits for) and DELIVERY are the states of throttling, with their delays: 0 none, 3 messages in
process, 4 memory of the process, 5 memory of the system, 6 size of the database, 8 sessions, 10 and 11 a setting of the host. PROBLEM is the first thing that the node cannot do.`,
		example: "  parley flow hosts --host Send", read: flowstore.Hosts,
		header: "HOST\tROLE\tNODE\tSTATUS\tSINCE\tIN PROCESS\tLOCATIONS\tRECEIVED\tSENT\tPUBLISHING\tCORRELATION\tDELIVERY\tPROBLEM",
		write: func(out io.Writer, h flowstore.HostNode) {
			var r nodeReport
			_ = json.Unmarshal(h.Report, &r) // of another version: what it does not have is 0
			status := "Away"
			switch {
			case h.Node == nil:
				status = "Never served"
			case h.IsThere && r.IsStopping:
				status = "Stopped"
			case h.IsThere:
				status = "Serving"
			}
			problem := ""
			if len(r.Problems) > 0 {
				problem = r.Problems[0].Object + ": " + r.Problems[0].Cause
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n",
				verb.OneLine(h.Host, 0), textOr(h.Role), textOr(h.Node), status, verb.Moment(h.StartedAt), r.InProcess, r.Locations,
				r.Received, r.Sent, r.Publishing, r.Correlation, r.Delivery, verb.OrNone(verb.OneLine(problem, errorWidth)))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.Host, "host", "", "this host")
		},
	}.command(env)
}
