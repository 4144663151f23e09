package sql_test

import (
	"strings"
	"testing"
	"time"
)

const (
	configurationService = "SQL/ServiceBroker/BrokerConfiguration"
	notices              = systemPrefix + "BrokerConfigurationNotice"
	asked                = `The broker configuration service was asked for a route to the service "//far/Service", and has not answered yet.`
)

// newConfigured returns a fixture with a broker configuration service, in the same database.
func newConfigured(t *testing.T) *broker {
	t.Helper()
	b := newWorld(t)
	b.configure()
	return b
}

func (s session) configure() {
	s.Helper()
	s.exec("select parley.create_queue('Configuring')")
	s.exec("select parley.create_service($1, 'Configuring', array[$2])", configurationService, notices)
	s.exec("select parley.create_route('configuration', 'LOCAL', $1)", configurationService)
}

func (s session) requireRoute(service, address, status string) {
	s.Helper()
	if got, text := s.findRoute(service, ""); got.address != address || text != status {
		s.Errorf("%q goes to %q with status %q, want %q with status %q", service, got.address, text, address, status)
	}
}

// request takes the one request that the broker configuration service has got, and gives its handle.
func (s session) request(body string) string {
	s.Helper()
	got := s.receive("Configuring")
	if len(got) != 1 || got[0].MessageTypeName != notices+"/MissingRoute" || string(got[0].MessageBody) != body || got[0].ServiceContractName != notices {
		s.Fatalf("the broker configuration service received %+v", got)
	}
	return got[0].ConversationHandle
}

const missingRoute = `<MissingRoute xmlns="` + notices + `/MissingRoute"><SERVICE_NAME>//far/Service</SERVICE_NAME></MissingRoute>`

func TestMissingRouteIsAskedForOnce(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	b.requireRoute(far, "", asked)
	// Step 4 is done: later dialogs go on with what follows.
	b.requireRoute(far, "LOCAL", asked)
	b.request(missingRoute)
	if got := b.receive("Configuring"); len(got) > 0 {
		t.Errorf("asked again: %+v", got)
	}
	// Another service is another question, and this one knows better than XML.
	if got, _ := b.findRoute("//a<b>&\"c\"", ""); got.address != "" {
		t.Errorf("found %q", got)
	}
	b.request(`<MissingRoute xmlns="` + notices + `/MissingRoute"><SERVICE_NAME>//a&lt;b&gt;&amp;"c"</SERVICE_NAME></MissingRoute>`)
}

func TestStepsBeforeDynamicRoutingAskNobody(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	b.createRoutes(route{address: "tcp://a:1", service: far}, route{address: "LOCAL", service: here})
	b.requireRoute(far, "tcp://a:1", "")
	b.requireRoute(here, "LOCAL", "")
	b.requireRoute(configurationService, "LOCAL", "")
	if got := b.receive("Configuring"); len(got) > 0 {
		t.Errorf("asked: %+v", got)
	}
}

// The trap of spec 6.6: without a route of its own, even what is in the database is asked for.
func TestDynamicRoutingComesBeforeAutoCreatedLocal(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	if got, status := b.findRoute(here, ""); got.address != "" || status == "" {
		t.Errorf("found %q with status %q", got, status)
	}
}

func TestExpiredRouteToTheConfigurationServiceAsksNobody(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	b.exec("update parley._p_route set expires_at = clock_timestamp() where name = 'configuration'")
	b.requireRoute(here, "LOCAL", "")
}

func TestAnswerOfTheConfigurationService(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		answer          func(s session, handle string)
		address, status string
	}{
		{
			"a route",
			func(s session, handle string) {
				s.exec("select parley.create_route('found', 'tcp://a:1', $1, lifetime => 300)", far)
				s.end(handle)
			},
			"tcp://a:1", "",
		},
		{"nothing", session.end, "LOCAL", `The target service "` + far + `" does not exist in this database, and there is no route to it.`},
		{
			"an error",
			func(s session, handle string) { s.endWithError(handle, 1, "unknown") },
			"LOCAL", `The target service "` + far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			"its lifetime",
			func(s session, _ string) {
				s.exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'lifetime'")
				s.exec("select parley._p_fire_alarms(null, 100)")
			},
			"LOCAL", `The target service "` + far + `" does not exist in this database, and there is no route to it.`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newConfigured(t)
			b.requireRoute(far, "", asked)
			handle := b.request(missingRoute)
			test.answer(b.session, handle)
			b.requireRoute(far, test.address, test.status)

			// The broker ends its side, and leaves nothing behind.
			b.exec("select parley.fire_timers()")
			equal(b.session, 0, "select count(*) from parley.conversation_endpoints where service_id < 65536")
			equal(b.session, 0, `select count(*) from parley_queue."ServiceBrokerQueue"`)
			b.requireRoute(far, test.address, test.status)

			// A service that gave no help is asked again after a while.
			b.exec("update parley._p_configuration_request set answered_at = answered_at - interval '61 seconds'")
			b.exec("select parley.fire_timers()")
			equal(b.session, 0, "select count(*) from parley._p_configuration_request")
			if test.address == "LOCAL" {
				b.requireRoute(far, "", asked)
			}
		})
	}
}

func TestRequestOfARolledBackTransactionWasNeverMade(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	tx := b.begin()
	tx.requireRoute(far, "", asked)
	tx.rollback()
	if got := b.receive("Configuring"); len(got) > 0 {
		t.Errorf("asked: %+v", got)
	}
	b.requireRoute(far, "", asked)
}

// However much a transaction asks for and leaves open, others ask too, even for the same.
func TestOpenTransactionKeepsNobodyFromAskingForARoute(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	const another = "//another/Service"
	outsider := b.begin()
	outsider.requireRoute(far, "", asked)
	outsider.exec("savepoint more")
	outsider.exec("select parley._p_ask_broker_configuration('//x/' || n, 6) from generate_series(1, 600) as n")
	other := b.begin()
	other.exec("set local lock_timeout = '3s'")
	for _, service := range []string{another, far} {
		other.requireRoute(service, "", strings.ReplaceAll(asked, far, service))
		other.requireRoute(service, "LOCAL", strings.ReplaceAll(asked, far, service))
	}
	other.commit()
	b.request(strings.ReplaceAll(missingRoute, far, another))
	handle := b.request(missingRoute)
	outsider.exec("rollback to more")
	outsider.commit()

	// What two have asked at once is answered when both are.
	b.end(handle)
	b.exec("select parley.fire_timers()")
	b.requireRoute(far, "LOCAL", asked)
	b.end(b.request(missingRoute))
	b.exec("select parley.fire_timers()")
	b.requireRoute(far, "LOCAL", `The target service "`+far+`" does not exist in this database, and there is no route to it.`)
}

func TestRequestEndsOnItsOwnWithinTheHour(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	b.requireRoute(far, "", asked)
	left := time.Until(value[time.Time](b.session, "select min(lifetime) from parley.conversation_endpoints"))
	if left > time.Hour || left < 50*time.Minute {
		t.Errorf("the request ends in %v", left)
	}
}

func TestNewBrokerForgetsWhatItHasAskedFor(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	b.requireRoute(far, "", asked)
	b.exec("select parley.new_broker()")
	b.requireRoute(far, "", asked)
}
