package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

// messagesMost is how many messages of a queue its page shows; placeFormat is how an address names the one behind which a page begins, by
// its priority and its number.
const (
	messagesMost = 50
	placeFormat  = "%d:%d"
)

// queuesPage is the list of all queues.
type queuesPage struct {
	Queues []queueRow
	Pages  paged
}

// queueRow is a queue with its rates, which a role that may not receive from it does not see.
type queueRow struct {
	operate.QueueStatus
	InPerSecond, OutPerSecond *float64
	RunningReaders            int32
	// SetAside is how many conversations, or messages of a simple queue, are set aside.
	SetAside setAsideCount
}

func (c *Console) showQueues(w http.ResponseWriter, request *http.Request, s *session) error {
	var shown queuesPage
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
		all, err := s.queues(ctx, tx)
		shown.Queues, shown.Pages = pageOfQueues(all, request.URL.Query().Get(afterField))
		return err
	})
	if err != nil {
		return err
	}
	c.pages.render(w, http.StatusOK, "queues", c.frame(s, request, "Queues"), shown)
	return nil
}

// pageOfQueues gives the queues behind the one of a name; all from the beginning when no queue has this name any more.
func pageOfQueues(all []queueRow, after string) (page []queueRow, pages paged) {
	const path = "/queues"
	begin := 1 + slices.IndexFunc(all, func(one queueRow) bool { return one.Queue == after })
	if begin > 0 {
		pages.First = path
	}
	end := min(len(all), begin+rowsMost)
	if end < len(all) {
		pages.Next = path + "?" + url.Values{afterField: {all[end-1].Queue}}.Encode()
	}
	return all[begin:end], pages
}

// queues gives all queues with their rates. How much waits comes from the reading that the rates come from, which is the most costly part
// of these pages.
func (s *session) queues(ctx context.Context, tx pgx.Tx) ([]queueRow, error) {
	_, active, err := s.activity(ctx, tx)
	if err != nil {
		return nil, err
	}
	rates := map[int32]activeQueue{}
	for _, one := range active {
		rates[one.QueueID] = one
	}
	all, err := operate.ReadQueueSettings(ctx, tx)
	if err != nil {
		return nil, err
	}
	messages, err := s.setAsideMessages(ctx, tx)
	if err != nil {
		return nil, err
	}
	rows := make([]queueRow, 0, len(all))
	for _, one := range all {
		rate, isSeen := rates[one.QueueID]
		if isSeen {
			one.Backlog = &operate.QueueBacklog{
				WaitingMessages: rate.WaitingMessages, HeldMessages: rate.HeldMessages, DelayedMessages: rate.DelayedMessages,
				IsEstimated: rate.IsEstimated, OldestSeconds: rate.OldestSeconds,
			}
		}
		aside := countOfConversations(one.SetAsideConversations)
		if len(one.Services) == 0 {
			aside = messages.of(one.Queue)
		}
		rows = append(rows, queueRow{
			QueueStatus: one, InPerSecond: rate.InPerSecond, OutPerSecond: rate.OutPerSecond, RunningReaders: rate.RunningReaders,
			SetAside: aside,
		})
	}
	return rows, nil
}

// queuePage is the page of a queue.
type queuePage struct {
	queueRow
	Messages []queuedMessage
	// MayNotRead is why the messages are not shown; empty when they are.
	MayNotRead string
	Pages      paged
	Actions    []action
	Token      string
}

// queuedMessage is a message that waits, as its page shows it.
type queuedMessage struct {
	operate.QueuedMessage
	Content body
}

// queueNamed finds the queue that a path names.
func (s *session) queueNamed(ctx context.Context, tx pgx.Tx, name string) (queueRow, error) {
	rows, err := s.queues(ctx, tx)
	if err != nil {
		return queueRow{}, err
	}
	for _, one := range rows {
		if one.Queue == name {
			return one, nil
		}
	}
	return queueRow{}, refused{http.StatusNotFound, "There is no queue " + name + ", or your role may not see it."}
}

func (c *Console) showQueue(w http.ResponseWriter, request *http.Request, s *session) error {
	shown := queuePage{Actions: queueActions, Token: s.token}
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		if shown.queueRow, err = s.queueNamed(ctx, tx, request.PathValue("queue")); err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) (err error) {
			shown.Messages, shown.Pages, err = readMessages(ctx, part, shown.Queue, request.URL.Query().Get(afterField))
			return err
		})
		if err == nil {
			return nil
		}
		status, why := describe(err)
		if status != http.StatusForbidden {
			return err
		}
		shown.MayNotRead = why.Text
		return nil
	})
	if err != nil {
		return err
	}
	c.pages.render(w, http.StatusOK, "queue", c.frame(s, request, shown.Queue), shown)
	return nil
}

// readMessages gives the first messages of a queue, or those behind the place in an address, and the pages beside it; of each body the
// beginning.
func readMessages(ctx context.Context, tx pgx.Tx, queue, place string) (messages []queuedMessage, pages paged, err error) {
	path := "/queues/" + url.PathEscape(queue)
	var after *operate.QueuedMessage
	if place != "" {
		pages.First, after = path, &operate.QueuedMessage{}
		if _, err := fmt.Sscanf(place, placeFormat, &after.Priority, &after.Order); err != nil {
			return nil, paged{}, refused{http.StatusBadRequest, "This address names no place of the queue."}
		}
	}
	found, err := operate.ReadQueuedMessages(ctx, tx, queue, messagesMost+1, bodyMost, after)
	if err != nil {
		return nil, paged{}, err
	}
	if len(found) > messagesMost {
		found = found[:messagesMost]
		last := found[messagesMost-1]
		pages.Next = path + "?" + url.Values{afterField: {fmt.Sprintf(placeFormat, last.Priority, last.Order)}}.Encode()
	}
	messages = make([]queuedMessage, 0, len(found))
	for _, one := range found {
		messages = append(messages, queuedMessage{QueuedMessage: one, Content: showBody(one.Body, one.BodyBytes)})
	}
	return messages, pages, nil
}

// figures is one point of the chart of a queue.
type figures struct {
	At      int64    `json:"at"` // seconds
	Waiting int64    `json:"waiting"`
	In      *float64 `json:"in"`
	Out     *float64 `json:"out"`
}

func (c *Console) sendFigures(w http.ResponseWriter, request *http.Request, s *session) error {
	var found figures
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
		now, queues, err := s.activity(ctx, tx)
		if err != nil {
			return err
		}
		for _, one := range queues {
			if one.Queue == request.PathValue("queue") {
				found = figures{At: now.At.Unix(), Waiting: one.WaitingMessages, In: one.InPerSecond, Out: one.OutPerSecond}
				return nil
			}
		}
		return refused{http.StatusNotFound, "There is no such queue."}
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(found)
}

// oneQueue has the buttons of a queue's page, which are those of a list with one row.
var oneQueue = listing{path: "/queues", title: "the queue", key: []string{"queue"}, actions: queueActions}

var queueActions = []action{
	{
		Name: "pause", Label: "Pause readers", Sentence: "gets no readers until somebody resumes them; messages wait",
		run: func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
			return operate.PauseReaders(ctx, tx, key[0])
		},
	},
	{
		Name: "resume", Label: "Resume readers", Sentence: "gets readers again",
		run: func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
			return operate.ResumeReaders(ctx, tx, key[0])
		},
	},
	{
		Name: "on", Label: "Switch on", Sentence: "takes messages and gives them out again",
		run: func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
			return operate.SetQueueStatus(ctx, tx, key[0], true)
		},
	},
	{
		Name: "off", Label: "Switch off", IsGrave: true, Sentence: "gives nothing out any more, and what is sent to it waits at its senders",
		run: func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
			return operate.SetQueueStatus(ctx, tx, key[0], false)
		},
	},
	{
		Name: "quota", Label: "Set the quota", Sentence: "refuses senders when it holds that much; an empty field is no limit",
		Inputs: []input{
			{Name: "messages", Label: "Messages", Kind: "number"}, {Name: "bytes", Label: "Bytes", Kind: "number"},
		},
		run: setQuota,
	},
}

func setQuota(ctx context.Context, tx pgx.Tx, key []string, form url.Values) error {
	var quota operate.QueueQuota
	for name, limit := range map[string]**int64{"messages": &quota.Messages, "bytes": &quota.Bytes} {
		given := strings.TrimSpace(form.Get(name))
		if given == "" {
			continue
		}
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil {
			return refused{http.StatusUnprocessableEntity, "A quota is a number: " + given + " is none."}
		}
		*limit = &n
	}
	return operate.SetQueueQuota(ctx, tx, key[0], quota)
}
