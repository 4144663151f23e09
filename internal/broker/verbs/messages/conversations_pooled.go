package messages

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func listPooled(a *verb.App, cmd *cobra.Command, limit int) error {
	return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.PooledConversation, error) {
		return operate.ReadPooledConversations(ctx, db, limit)
	}, func(out io.Writer, found []operate.PooledConversation) error { return writePooled(out, found, limit) })
}

func writePooled(out io.Writer, pooled []operate.PooledConversation, limit int) error {
	if len(pooled) == 0 {
		_, err := fmt.Fprintln(out, "no conversations that are used again; parley send --pooled begins them")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "CONVERSATION HANDLE\tSTATE\tFROM\tTO\tCONTRACT\tKEY\tMESSAGES\tBEGUN\tREPLACED AT")
	for _, c := range pooled {
		key := "-"
		if c.Key != nil {
			key = strconv.Quote(*c.Key)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			c.ConversationHandle, c.State, verb.OneLine(c.FromService, 0), verb.OneLine(c.ToService, 0),
			verb.OneLine(c.Contract, 0), verb.OneLine(key, 0), c.Messages, verb.Moment(&c.BegunAt), verb.Moment(&c.RetireAt))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return verb.ReportLimit(out, len(pooled), limit)
}

// warmedConversations is the output of warm for programs; a stable format.
type warmedConversations struct {
	Begun int `json:"begun"`
}

func newConversationsWarmCommand(a *verb.App) *cobra.Command {
	var from, to, contract string
	var conversations int32
	cmd := &cobra.Command{
		Use:   "warm --from SERVICE --to SERVICE",
		Short: "Begin the conversations of parley send --pooled before they are needed",
		Long: `Begin the conversations that parley.get_conversation and parley send --pooled give without a key, before they are needed, so that
the first message on them costs no more than the next. Those that are there already are left alone.`,
		Example: `  parley conversations warm --from //example.com/web --to //example.com/audit`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			begun, err := parley.WarmConversations(ctx, conn, from, to,
				parley.PoolDialog(parley.OnContract(contract)), parley.OverConversations(conversations))
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), warmedConversations{begun})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "began %s\n", verb.Counted(begun, "conversation"))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "service of this database that sends")
	flags.StringVar(&to, "to", "", "service that they lead to")
	flags.StringVar(&contract, "contract", parley.DefaultMessageType, "contract")
	flags.Int32Var(&conversations, "conversations", 8, "how many, 1 to 1000")
	for _, flag := range []string{"from", "to"} {
		_ = cmd.MarkFlagRequired(flag)
		a.CompleteFlag(cmd, flag, verb.CompleteServices)
	}
	a.CompleteFlag(cmd, "contract", verb.CompleteContracts)
	return cmd
}
