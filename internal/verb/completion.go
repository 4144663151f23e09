package verb

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
)

// completionTimeout bounds how long a completion by Tab waits for the database.
const completionTimeout = 3 * time.Second

// A completer lists what may stand at the cursor: a value, then perhaps a tab and what it is.
type Completer string

// The completers of each kind of object.
const (
	CompleteQueues Completer = `
		select case q.schema_name when 'dbo' then q.name else q.schema_name || '.' || q.name end
		from parley.service_queues as q
		order by q.is_ms_shipped, 1`
	CompleteServices     Completer = `select s.name from parley.services as s order by s.name`
	CompleteContracts    Completer = `select c.name from parley.service_contracts as c order by c.name`
	CompleteMessageTypes Completer = `select t.name from parley.service_message_types as t order by t.name`
	CompleteHandles      Completer = `
		select e.conversation_handle || chr(9) || e.state || ' ' || coalesce(e.service_name, '') || ' with ' || e.far_service
		from parley.conversation_endpoints as e
		where e.state <> 'CD'
		order by e.state_since desc
		limit 50`
	CompleteGroups Completer = `
		select g.conversation_group_id || chr(9) || s.name
		from parley.conversation_groups as g
		join parley.services as s using (service_id)
		limit 50`
)

// CompleteStates needs no database.
const CompleteStates Completer = ""

// CompleteArgument completes the arguments of a verb, as many as it takes (0: any number).
func (a *App) CompleteArgument(cmd *cobra.Command, list Completer, most int) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.complete(cmd.Context(), list), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFlag completes the value of a flag.
func (a *App) CompleteFlag(cmd *cobra.Command, flag string, list Completer) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd.Context(), list), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the verb has no such flag
	}
}

// complete asks the database that is named. A private one is not started for it, and what goes wrong completes nothing.
func (a *App) complete(ctx context.Context, list Completer) []string {
	if list == CompleteStates {
		var states []string
		for _, state := range EndpointStates {
			states = append(states, state[0]+"\t"+state[1])
		}
		return states
	}
	dsn := cmp.Or(a.DSN, os.Getenv("PARLEY_DSN"), os.Getenv("DATABASE_URL"))
	if dsn == "" {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil
	}
	defer CloseConnection(ctx, conn)
	if PrepareSession(ctx, conn) != nil {
		return nil
	}
	rows, err := conn.Query(ctx, string(list))
	if err != nil {
		return nil
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil
	}
	return found
}

// EndpointStates are the states of a side of a conversation: code, then name.
var EndpointStates = [][2]string{
	{"SO", "STARTED_OUTBOUND"},
	{"SI", "STARTED_INBOUND"},
	{"CO", "CONVERSING"},
	{"DI", "DISCONNECTED_INBOUND"},
	{"DO", "DISCONNECTED_OUTBOUND"},
	{"ER", "ERROR"},
	{"CD", "CLOSED"},
}
