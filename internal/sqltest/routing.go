package sqltest

import (
	"fmt"
	"slices"
	"testing"
)

// Texts about a missing remote service binding.
const (
	AskedForBinding = `The broker configuration service was asked for a remote service binding for the service "//far/Service",` +
		` and has not answered yet.`
	MissingBinding = `<MissingRemoteServiceBinding xmlns="` + Notices + `/MissingRemoteServiceBinding">` +
		`<SERVICE_NAME>//far/Service</SERVICE_NAME></MissingRemoteServiceBinding>`
)

// BindingRequest takes the one request that the broker configuration service has got, which is for a binding, and gives its handle.
func (s Session) BindingRequest() string {
	s.Helper()
	got := s.Receive("Configuring")
	if len(got) != 1 || got[0].MessageTypeName != Notices+"/MissingRemoteServiceBinding" || string(got[0].MessageBody) != MissingBinding ||
		got[0].ServiceContractName != Notices {
		s.Fatalf("the broker configuration service received %+v", got)
	}
	return got[0].ConversationHandle
}

// Names of the broker configuration service, and the status of a message that waits for its answer.
const (
	ConfigurationService = "SQL/ServiceBroker/BrokerConfiguration"
	Notices              = systemPrefix + "BrokerConfigurationNotice"
	Asked                = `The broker configuration service was asked for a route to the service "//far/Service", and has not answered yet.`
)

// NewConfigured returns a fixture with a broker configuration service, in the same database.
func NewConfigured(t *testing.T) *Broker {
	t.Helper()
	b := NewWorld(t)
	b.Configure()
	return b
}

// Configure makes a broker configuration service in this database.
func (s Session) Configure() {
	s.Helper()
	s.Exec("select parley.create_queue('Configuring')")
	s.Exec("select parley.create_service($1, 'Configuring', array[$2])", ConfigurationService, Notices)
	s.Exec("select parley.create_route('configuration', 'LOCAL', $1)", ConfigurationService)
}

// Request takes the one request that the broker configuration service has got, and gives its handle.
func (s Session) Request(body string) string {
	s.Helper()
	got := s.Receive("Configuring")
	if len(got) != 1 || got[0].MessageTypeName != Notices+"/MissingRoute" || string(got[0].MessageBody) != body || got[0].ServiceContractName != Notices {
		s.Fatalf("the broker configuration service received %+v", got)
	}
	return got[0].ConversationHandle
}

// MissingRoute is the notice that asks for a route.
const MissingRoute = `<MissingRoute xmlns="` + Notices + `/MissingRoute"><SERVICE_NAME>//far/Service</SERVICE_NAME></MissingRoute>`

// Services and broker instances of the tests of routes.
const (
	Far   = "//far/Service"
	Here  = "//test/Answerer"
	Other = "11111111-1111-1111-1111-111111111111"
	Third = "33333333-3333-3333-3333-333333333333"
)

// Way is the result of _p_find_route; empty for null.
type Way struct{ Address, Otherwise, Instance string }

// FindRoute asks for the way to a service of an instance, "" for any, and gives the status where there is none.
func (s Session) FindRoute(service, instance string) (w Way, status string) {
	s.Helper()
	const query = `
		select coalesce(r.address, ''), coalesce(r.otherwise, ''), coalesce(r.broker_instance, ''), coalesce(r.status, '')
		from parley._p_find_route($1, nullif($2, ''), gen_random_uuid()) as r`
	if err := s.DB.QueryRow(s.Context(), query, service, instance).Scan(&w.Address, &w.Otherwise, &w.Instance, &status); err != nil {
		s.Fatalf("finding a route to %q: %v", service, Describe(err))
	}
	return w, status
}

// CreateRoute creates a route to a service, or to every one where none is named.
func (s Session) CreateRoute(name, address, service string) {
	s.Helper()
	s.Exec("select parley.create_route($1, $2, nullif($3, ''))", name, address, service)
}

// A route in a table of tests, with the address as its name.
type Route struct {
	Address, Service, Instance, Mirror string
	IsExpired                          bool
}

// CreateRoutes creates routes that are named by their positions: r0, r1, ...
func (s Session) CreateRoutes(routes ...Route) {
	s.Helper()
	for i, r := range routes {
		name := fmt.Sprint("r", i)
		s.Exec(`select parley.create_route($1, $2, nullif($3, ''), nullif($4, ''), mirror_address => nullif($5, ''))`,
			name, r.Address, r.Service, r.Instance, r.Mirror)
		if r.IsExpired {
			s.Exec("update parley._p_route set expires_at = clock_timestamp() where name = $1", name)
		}
	}
}

// lanes reports what waits for, or is on its way to, each destination: "address: bodies in order".
func (s Session) lanes() []string {
	s.Helper()
	return Values[string](s, `
		select d.address || ': ' || string_agg(convert_from(f.body, 'UTF8'), ' ' order by m.is_waiting, m.n, i)
		from parley._p_destination as d
		join (
			select m.lane / 16, true, m.position, coalesce(m.frame, array[m.body]) from parley._p_message as m
			union all
			select t.destination_id, false, t.first_sequence, coalesce(t.frame, array[t.body]) from parley._p_transit as t
		) as m (destination_id, is_waiting, n, frame) using (destination_id)
		cross join lateral unnest(m.frame) with ordinality as f (body, i)
		group by d.address
		order by d.address`)
}

// RequireLanes compares what Lanes reports.
func (s Session) RequireLanes(want ...string) {
	s.Helper()
	if got := s.lanes(); !slices.Equal(got, want) {
		s.Errorf("on their way are %q, want %q", got, want)
	}
}

// RequireDelayed compares the texts with which messages wait, each once.
func (s Session) RequireDelayed(want ...string) {
	s.Helper()
	got := Values[string](s, "select distinct t.transmission_status from parley._p_transmission as t order by 1")
	if !slices.Equal(got, want) {
		s.Errorf("messages wait with %q, want %q", got, want)
	}
}

// DialogWithFar begins a dialog from Asker to a service that need not be known yet.
func (s Session) DialogWithFar() string {
	s.Helper()
	return Value[string](s, "select parley.begin_dialog('//test/Asker', '//far/Service', '//test/Work', allow_unknown_target => true)")
}
