package verbs

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

func newMailTrackCommand(a *verb.App) *cobra.Command {
	var filter mailstore.EventFilter
	var since, until string
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "track",
		Short: "Show what has happened to messages",
		Long: `Show events of messages, the oldest first or by a column: those that match each flag that is given. You see all with the right
VIEW, and otherwise those of what you have submitted.

Times are spans such as 2h, counted back from now, or times as in RFC 3339. Without --message, --message-id or --since it is the last day.`,
		Example: `  parley mail track --message 17
  parley mail track --recipient 'ann@*' --event FAIL --since 48h
  parley mail track --since 2026-11-01T00:00:00Z --csv > november.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asCSV && a.JSON {
				return verb.Usagef("give --csv or --json")
			}
			if filter.Limit < 0 {
				return verb.Usagef("--limit %d: give a positive number, or 0 for all", filter.Limit)
			}
			if err := requireKnownEvents(filter); err != nil {
				return err
			}
			if asCSV && !cmd.Flags().Changed("limit") {
				filter.Limit = 0
			}
			if since == "" && filter.Message == 0 && filter.MessageID == "" {
				since = "24h"
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) (err error) {
				if filter.Since, err = readMoment(ctx, conn, "since", since); err != nil {
					return err
				}
				if filter.Until, err = readMoment(ctx, conn, "until", until); err != nil {
					return err
				}
				if asCSV {
					return writeEventsAsCSV(cmd.OutOrStdout(), func(each func(mailstore.Event) error) error {
						return mailstore.Events(ctx, conn, filter, each)
					})
				}
				events := []mailstore.Event{}
				if err := mailstore.Events(ctx, conn, filter, func(e mailstore.Event) error {
					events = append(events, e)
					return nil
				}); err != nil {
					return fmt.Errorf("track messages: %w", err)
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), events)
				}
				return writeEvents(cmd.OutOrStdout(), events, filter.Limit)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&filter.Message, "message", 0, "of this message, by its number")
	flags.StringVar(&filter.MessageID, "message-id", "", "of messages with this Message-ID in their header")
	flags.StringVar(&filter.Sender, "sender", "", "of messages from this sender; * stands for anything")
	flags.StringVar(&filter.Recipient, "recipient", "", "to this recipient; * stands for anything")
	flags.StringVar(&filter.Tag, "tag", "", "of messages with this tag of the submitter; * stands for anything")
	flags.StringVar(&filter.Event, "event", "", "events of this kind, such as FAIL")
	flags.StringVar(&filter.Source, "source", "", "that this part has seen, such as SMTP or ADMIN")
	flags.StringVar(&since, "since", "", "from then on")
	flags.StringVar(&until, "until", "", "before then")
	flags.IntVar(&filter.Limit, "limit", 1000, "show at most so many; 0 for all (with --csv that is the default)")
	flags.StringVar(&filter.Sort, "sort", "", mailSortUsage)
	flags.BoolVar(&asCSV, "csv", false, "write comma-separated values, in the order of fields of message tracking logs")
	return cmd
}

// requireKnownEvents refuses names that no event has: they would find nothing.
func requireKnownEvents(filter mailstore.EventFilter) error {
	for _, named := range []struct {
		flag, value string
		known       []string
	}{{"event", filter.Event, mailstore.EventNames}, {"source", filter.Source, mailstore.EventSources}} {
		if named.value != "" && !slices.Contains(named.known, strings.ToUpper(named.value)) {
			return verb.Usagef("--%s %q: it is one of %s", named.flag, named.value, strings.Join(named.known, ", "))
		}
	}
	return nil
}

// readMoment reads a span, which is counted back from now, or a time; nil for none.
func readMoment(ctx context.Context, conn *pgx.Conn, flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if span, spanErr := time.ParseDuration(text); spanErr == nil {
		at, err = verb.DueIn(ctx, conn, -span)
	} else if err != nil {
		return nil, verb.Usagef("--%s %q: give a span such as 2h, or a time such as 2026-11-01T00:00:00Z", flag, text)
	}
	return &at, err
}

func writeEvents(out io.Writer, events []mailstore.Event, limit int) error {
	if len(events) == 0 {
		_, err := fmt.Fprintln(out, "no event")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "TIME\tEVENT\tSOURCE\tMESSAGE\tRECIPIENTS\tSTATUS\tSERVER\tTEXT")
	for _, e := range events {
		status := "-"
		if len(e.RecipientStatus) > 0 {
			status, _, _ = strings.Cut(e.RecipientStatus[0], " ")
		}
		text := verb.OrEmpty(e.SourceContext) + verb.OrEmpty(e.RelatedRecipient) + verb.OrEmpty(e.Reference)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.DateTime.Local().Format("2006-01-02 15:04:05.000"), e.EventID, e.Source,
			verb.OrNone(verb.OrEmpty(e.InternalMessageID)), mailRecipients(e.RecipientAddress, e.RecipientCount), verb.OneLine(status, 0),
			verb.OrNone(verb.OneLine(verb.OrEmpty(e.ServerHostname), 0)), verb.OrNone(verb.OneLine(text, verb.BodyWidth)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return verb.ReportLimit(out, len(events), limit)
}

func writeEventsAsCSV(out io.Writer, events func(func(mailstore.Event) error) error) error {
	writer := csv.NewWriter(out)
	if err := writer.Write(strings.Split(strings.ReplaceAll(strings.Join(mailstore.EventColumns, ","), "_", "-"), ",")); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	err := events(func(e mailstore.Event) error {
		bytes := ""
		if e.TotalBytes != nil {
			bytes = strconv.FormatInt(*e.TotalBytes, 10)
		}
		return writer.Write([]string{
			e.DateTime.UTC().Format("2006-01-02T15:04:05.000Z"),
			verb.OrEmpty(e.ClientIP), verb.OrEmpty(e.ClientHostname), verb.OrEmpty(e.ServerIP), verb.OrEmpty(e.ServerHostname),
			verb.OrEmpty(e.SourceContext), verb.OrEmpty(e.ConnectorID), e.Source, e.EventID,
			verb.OrEmpty(e.InternalMessageID), verb.OrEmpty(e.MessageID), verb.OrEmpty(e.NetworkMessageID),
			strings.Join(e.RecipientAddress, ";"), strings.Join(e.RecipientStatus, ";"), bytes, strconv.Itoa(e.RecipientCount),
			verb.OrEmpty(e.RelatedRecipient), verb.OrEmpty(e.Reference), verb.OrEmpty(e.MessageSubject),
			verb.OrEmpty(e.SenderAddress), verb.OrEmpty(e.ReturnPath), verb.OrEmpty(e.MessageInfo), verb.OrEmpty(e.Directionality),
			verb.OrEmpty(e.OriginalClientIP), verb.OrEmpty(e.OriginalServerIP), verb.OrEmpty(e.CustomData),
			verb.OrEmpty(e.TrafficType), verb.OrEmpty(e.LogID), verb.OrEmpty(e.SchemaVersion),
		})
	})
	writer.Flush()
	if err == nil {
		err = writer.Error()
	}
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
