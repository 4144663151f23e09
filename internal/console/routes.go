package console

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// listings are the lists, in groups that one page of the navigation shows as tabs. The first of a group is the page itself.
var listings = [][]listing{
	{conversations},
	{poisoned, setAsideMessages, failing, failingMessages},
	{schedules, scheduleRuns},
	{delayedMessages, delayedSends},
	{destinations, transmissions, connections, routes, peers},
	{
		sendPorts, receiveLocations, orchestrations, instances, suspendedMessages, routingFailures, flowMessages, trackedMessages,
		applications, subscriptions, flowHosts,
	},
	{mailQueues, mailMessages, mailTracking, mailPressure},
	{monitors, readers, workSessions, mailDaemons},
	{operatorActions, flowAudit},
}

func (c *Console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", assets())
	mux.HandleFunc("GET /login", c.showLogin)
	mux.HandleFunc("POST /login", c.login)
	mux.HandleFunc("POST /logout", c.logout)
	mux.HandleFunc("GET /{$}", c.page(c.showOverview))
	mux.HandleFunc("GET /queues", c.page(c.showQueues))
	mux.HandleFunc("GET /queues/{queue}", c.page(c.showQueue))
	mux.HandleFunc("GET /queues/{queue}/figures", c.page(c.sendFigures))
	mux.HandleFunc("POST /queues/{queue}", c.act(c.actOnOne(oneQueue, "queue")))
	mux.HandleFunc("GET /conversations/{handle}", c.page(c.showConversation))
	mux.HandleFunc("GET /failed/messages/{queue}/{message}", c.page(c.showSimpleMessage))
	mux.HandleFunc("POST /failed/messages/{queue}/{message}", c.act(c.actOnOne(setAsideMessages, "queue", "message")))
	mux.HandleFunc("GET /failed/messages/{queue}/{message}/edit", c.page(c.editSimpleMessage))
	mux.HandleFunc("POST /failed/messages/{queue}/{message}/edit", c.act(c.saveSimpleMessage))
	mux.HandleFunc("GET /flow/instances/{instance}", c.page(c.showInstance))
	mux.HandleFunc("POST /flow/instances/{instance}", c.act(c.actOnOne(instances, "instance")))
	mux.HandleFunc("GET /flow/messages/{message}", c.page(c.showFlowMessage))
	mux.HandleFunc("POST /flow/messages/{message}", c.act(c.showFlowContent))
	mux.HandleFunc("GET /flow/suspended/{suspension}", c.page(c.showSuspension))
	mux.HandleFunc("POST /flow/suspended/{suspension}", c.act(c.actOnOne(suspendedMessages, "suspension")))
	mux.HandleFunc("POST /flow/suspended/{suspension}/edit", c.act(c.editSuspension))
	mux.HandleFunc("POST /flow/suspended/{suspension}/resubmit", c.act(c.resubmitSuspension))
	mux.HandleFunc("GET /diagnosis", c.page(c.showDiagnosis))
	for _, group := range listings {
		for _, one := range group {
			mux.HandleFunc("GET "+one.path, c.page(c.showList(one, tabsOf(group))))
			if len(one.actions) > 0 {
				mux.HandleFunc("POST "+one.path, c.act(c.actOn(one)))
			}
		}
	}
	mux.HandleFunc("GET /", c.page(func(http.ResponseWriter, *http.Request, *session) error {
		return refused{http.StatusNotFound, "There is no such page."}
	}))
	return mux
}

// tab is a list beside others on a page.
type tab struct {
	Label, Path string
	IsCurrent   bool
}

func tabsOf(group []listing) []tab {
	if len(group) == 1 {
		return nil
	}
	tabs := make([]tab, 0, len(group))
	for _, one := range group {
		tabs = append(tabs, tab{Label: one.title, Path: one.path})
	}
	return tabs
}

// listPage is a list with the tabs beside it.
type listPage struct {
	Tabs []tab
	List list
}

func (c *Console) showList(l listing, tabs []tab) handler {
	return func(w http.ResponseWriter, request *http.Request, s *session) error {
		shown := listPage{}
		for _, one := range tabs {
			one.IsCurrent = one.Path == l.path
			shown.Tabs = append(shown.Tabs, one)
		}
		err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
			shown.List, err = l.read(ctx, tx, request.URL.Query())
			return err
		})
		if err != nil {
			return err
		}
		shown.List.Token = s.token
		c.pages.render(w, http.StatusOK, "list", c.frame(s, request, l.title), shown)
		return nil
	}
}
