package verbs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

func newTrackCommand(env environment) *cobra.Command {
	var property, value string
	var top int
	cmd := &cobra.Command{
		Use:   "track {MESSAGE | --property NAME --value VALUE}",
		Short: "Show the way of a message, or find messages by a property",
		Long: `Show the way of a message, and of those that it was made of or that were made of it: where it came from, who got it, when and
how often it was tried, what operators did, and what is open. Or find messages by the value of a property that is tracked. It goes back as
far as tracking is kept. You need the right VIEW.`,
		Example: `  parley flow track 17
  parley flow track --property 'http://shop.example/properties#PoNumber' --value 4711`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			isNamed := cmd.Flags().Changed("property")
			switch {
			case isNamed != cmd.Flags().Changed("value"):
				return verb.Usagef("--property and --value go together: give both")
			case isNamed == (len(args) == 1):
				return verb.Usagef("give the number of a message, or --property and --value")
			case top < 1:
				return verb.Usagef("--limit %d: give a positive number", top)
			case isNamed:
				return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]flowstore.Tracked, error) {
					return findTracked(ctx, db, property, value, top)
				}, func(out io.Writer, found []flowstore.Tracked) error { return writeTracked(out, found, top) })
			}
			message, err := readNumber(args[0], "message")
			if err != nil {
				return err
			}
			return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]flowstore.Event, error) {
				return flowstore.Track(ctx, db, message)
			}, writeWay)
		},
	}
	cmd.Flags().StringVar(&property, "property", "", "find messages by this tracked property, namespace#Name")
	cmd.Flags().StringVar(&value, "value", "", "that has this value")
	cmd.Flags().IntVar(&top, "limit", 100, "find at most so many")
	return cmd
}

// findTracked finds messages. Where there is none it says whether the property is one by which any could be found.
func findTracked(ctx context.Context, db parley.DB, property, value string, top int) ([]flowstore.Tracked, error) {
	found, err := flowstore.FindTracked(ctx, db, property, value, top)
	if err != nil || len(found) > 0 {
		return found, err
	}
	tracked, isDeclared, err := flowstore.TrackedProperties(ctx, db, property)
	if err != nil || slices.Contains(tracked, property) {
		return found, err
	}
	hint := "no property is tracked; set tracked: true where its property schema declares it"
	if len(tracked) > 0 {
		hint = "name one that is tracked: " + strings.Join(tracked, ", ")
	}
	if isDeclared {
		return nil, verb.WithHint(fmt.Errorf("property %s is not tracked", property), hint)
	}
	return nil, verb.WithHint(fmt.Errorf("property %s is not declared", property), hint)
}

func readNumber(text, what string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 {
		return 0, verb.Usagef("%q is no number of a %s", text, what)
	}
	return number, nil
}

func writeTracked(out io.Writer, found []flowstore.Tracked, top int) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "no message")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "MESSAGE\tTIME")
	for _, m := range found {
		fmt.Fprintf(table, "%d\t%s\n", m.MessageID, verb.Moment(&m.At))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return verb.ReportLimit(out, len(found), top)
}

func writeWay(out io.Writer, events []flowstore.Event) error {
	if len(events) == 0 {
		_, err := fmt.Fprintln(out, "nothing is known of this message: it never was, or its tracking is over")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "TIME\tMESSAGE\tRELATION\tEVENT\tHOST\tSEND PORT\tLOCATION\tFIELDS")
	for _, e := range events {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format("2006-01-02 15:04:05.000"), e.Message, e.Relation, e.Event,
			textOr(e.Host), textOr(e.SendPort), textOr(e.Location), verb.OneLine(string(e.Fields), errorWidth))
	}
	return table.Flush()
}
