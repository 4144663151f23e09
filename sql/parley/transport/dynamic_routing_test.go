package transport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

func requireRoute(s sqltest.Session, service, address, status string) {
	s.Helper()
	if got, text := s.FindRoute(service, ""); got.Address != address || text != status {
		s.Errorf("%q goes to %q with status %q, want %q with status %q", service, got.Address, text, address, status)
	}
}

func TestMissingRouteIsAskedForOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
	// Step 4 is done: later dialogs go on with what follows.
	requireRoute(b.Session, sqltest.Far, "LOCAL", sqltest.Asked)
	b.Request(sqltest.MissingRoute)
	if got := b.Receive("Configuring"); len(got) > 0 {
		t.Errorf("asked again: %+v", got)
	}
	// Another service is another question, and this one knows better than XML.
	if got, _ := b.FindRoute("//a<b>&\"c\"", ""); got.Address != "" {
		t.Errorf("found %q", got)
	}
	b.Request(`<MissingRoute xmlns="` + sqltest.Notices + `/MissingRoute"><SERVICE_NAME>//a&lt;b&gt;&amp;"c"</SERVICE_NAME></MissingRoute>`)
}

func TestStepsBeforeDynamicRoutingAskNobody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	b.CreateRoutes(sqltest.Route{Address: "tcp://a:1", Service: sqltest.Far}, sqltest.Route{Address: "LOCAL", Service: sqltest.Here})
	requireRoute(b.Session, sqltest.Far, "tcp://a:1", "")
	requireRoute(b.Session, sqltest.Here, "LOCAL", "")
	requireRoute(b.Session, sqltest.ConfigurationService, "LOCAL", "")
	if got := b.Receive("Configuring"); len(got) > 0 {
		t.Errorf("asked: %+v", got)
	}
}

// The trap of spec 6.6: without a route of its own, even what is in the database is asked for.
func TestDynamicRoutingComesBeforeAutoCreatedLocal(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	if got, status := b.FindRoute(sqltest.Here, ""); got.Address != "" || status == "" {
		t.Errorf("found %q with status %q", got, status)
	}
}

func TestExpiredRouteToTheConfigurationServiceAsksNobody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	b.Exec("update parley._p_route set expires_at = clock_timestamp() where name = 'configuration'")
	requireRoute(b.Session, sqltest.Here, "LOCAL", "")
}

func TestAnswerOfTheConfigurationService(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		answer          func(s sqltest.Session, handle string)
		address, status string
	}{
		{
			"a route",
			func(s sqltest.Session, handle string) {
				s.Exec("select parley.create_route('found', 'tcp://a:1', $1, lifetime => 300)", sqltest.Far)
				s.End(handle)
			},
			"tcp://a:1", "",
		},
		{"nothing", sqltest.Session.End, "LOCAL", `The target service "` + sqltest.Far + `" does not exist in this database, and there is no route to it.`},
		{
			"an error",
			func(s sqltest.Session, handle string) { s.EndWithError(handle, 1, "unknown") },
			"LOCAL", `The target service "` + sqltest.Far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			"its lifetime",
			func(s sqltest.Session, _ string) {
				s.Exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'lifetime'")
				s.Exec("select parley._p_fire_alarms(null, 100)")
			},
			"LOCAL", `The target service "` + sqltest.Far + `" does not exist in this database, and there is no route to it.`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewConfigured(t)
			requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
			handle := b.Request(sqltest.MissingRoute)
			test.answer(b.Session, handle)
			requireRoute(b.Session, sqltest.Far, test.address, test.status)

			// The broker ends its side, and leaves nothing behind.
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where service_id < 65536")
			sqltest.Equal(b.Session, 0, `select count(*) from parley_queue."ServiceBrokerQueue"`)
			requireRoute(b.Session, sqltest.Far, test.address, test.status)

			// A service that gave no help is asked again after a while.
			b.Exec("update parley._p_configuration_request set answered_at = answered_at - interval '61 seconds'")
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, "select count(*) from parley._p_configuration_request")
			if test.address == "LOCAL" {
				requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
			}
		})
	}
}

func TestRequestOfARolledBackTransactionWasNeverMade(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	tx := b.Begin()
	requireRoute(tx, sqltest.Far, "", sqltest.Asked)
	tx.Rollback()
	if got := b.Receive("Configuring"); len(got) > 0 {
		t.Errorf("asked: %+v", got)
	}
	requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
}

// However much a transaction asks for and leaves open, others ask too, even for the same.
func TestOpenTransactionKeepsNobodyFromAskingForARoute(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	const another = "//another/Service"
	outsider := b.Begin()
	requireRoute(outsider, sqltest.Far, "", sqltest.Asked)
	outsider.Exec("savepoint more")
	outsider.Exec("select parley._p_ask_broker_configuration('//x/' || n, 6) from generate_series(1, 600) as n")
	other := b.Begin()
	other.Exec("set local lock_timeout = '3s'")
	for _, service := range []string{another, sqltest.Far} {
		requireRoute(other, service, "", strings.ReplaceAll(sqltest.Asked, sqltest.Far, service))
		requireRoute(other, service, "LOCAL", strings.ReplaceAll(sqltest.Asked, sqltest.Far, service))
	}
	other.Commit()
	b.Request(strings.ReplaceAll(sqltest.MissingRoute, sqltest.Far, another))
	handle := b.Request(sqltest.MissingRoute)
	outsider.Exec("rollback to more")
	outsider.Commit()

	// A route that two have asked for at once is answered when both are.
	b.End(handle)
	b.Exec("select parley.fire_timers()")
	requireRoute(b.Session, sqltest.Far, "LOCAL", sqltest.Asked)
	b.End(b.Request(sqltest.MissingRoute))
	b.Exec("select parley.fire_timers()")
	requireRoute(b.Session, sqltest.Far, "LOCAL", `The target service "`+sqltest.Far+`" does not exist in this database, and there is no route to it.`)
}

func TestRequestEndsOnItsOwnWithinTheHour(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
	left := time.Until(sqltest.Value[time.Time](b.Session, "select min(lifetime) from parley.conversation_endpoints"))
	if left > time.Hour || left < 50*time.Minute {
		t.Errorf("the request ends in %v", left)
	}
}

func TestNewBrokerForgetsWhatItHasAskedFor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
	b.Exec("select parley.new_broker()")
	requireRoute(b.Session, sqltest.Far, "", sqltest.Asked)
}
