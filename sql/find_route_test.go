package sql_test

import (
	"fmt"
	"testing"
)

const (
	far   = "//far/Service"
	here  = "//test/Answerer"
	other = "11111111-1111-1111-1111-111111111111"
	third = "33333333-3333-3333-3333-333333333333"
)

// way is the result of _p_find_route; empty for null.
type way struct{ address, otherwise, instance string }

func (s session) findRoute(service, instance string) (w way, status string) {
	s.Helper()
	const query = `
		select coalesce(r.address, ''), coalesce(r.otherwise, ''), coalesce(r.broker_instance, ''), coalesce(r.status, '')
		from parley._p_find_route($1, nullif($2, ''), gen_random_uuid()) as r`
	if err := s.db.QueryRow(s.Context(), query, service, instance).Scan(&w.address, &w.otherwise, &w.instance, &status); err != nil {
		s.Fatalf("finding a route to %q: %v", service, describe(err))
	}
	return w, status
}

func (s session) createRoute(name, address, service string) {
	s.Helper()
	s.exec("select parley.create_route($1, $2, $3)", name, address, service)
}

// A route in a table of tests, with the address as its name.
type route struct {
	address, service, instance, mirror string
	isExpired                          bool
}

func (s session) createRoutes(routes ...route) {
	s.Helper()
	for i, r := range routes {
		name := fmt.Sprint("r", i)
		s.exec(`select parley.create_route($1, $2, nullif($3, ''), nullif($4, ''), mirror_address => nullif($5, ''))`,
			name, r.address, r.service, r.instance, r.mirror)
		if r.isExpired {
			s.exec("update parley._p_route set expires_at = clock_timestamp() where name = $1", name)
		}
	}
}

func TestRouteMatchingOrder(t *testing.T) {
	t.Parallel()
	own := "current database"
	for _, test := range []struct {
		name              string
		routes            []route
		service, instance string
		want              way
		status            string
	}{
		{
			name:   "step 1: service and instance come before service alone",
			routes: []route{{address: "tcp://b:1", service: far}, {address: "tcp://a:1", service: far, instance: other}, {address: "tcp://c:1"}},
			want:   way{address: "tcp://a:1", instance: other}, service: far, instance: other,
		},
		{
			name:   "step 2: the service, when its instance has no route",
			routes: []route{{address: "tcp://b:1", service: far}, {address: "tcp://a:1", service: far, instance: third}, {address: "tcp://c:1"}},
			want:   way{address: "tcp://b:1", instance: other}, service: far, instance: other,
		},
		{
			name:   "step 2: the service comes before the service with an instance when any instance will do",
			routes: []route{{address: "tcp://a:1", service: far, instance: other}, {address: "tcp://b:1", service: far}},
			want:   way{address: "tcp://b:1"}, service: far,
		},
		{
			name:   "step 3: any instance will do",
			routes: []route{{address: "tcp://a:1", service: far, instance: other}, {address: "tcp://c:1"}},
			want:   way{address: "tcp://a:1", instance: other}, service: far,
		},
		{
			name:   "step 3 is not for those who want an instance",
			routes: []route{{address: "tcp://a:1", service: far, instance: third}, {address: "tcp://c:1"}},
			want:   way{address: "LOCAL", otherwise: "tcp://c:1", instance: other}, service: far, instance: other,
			status: "The broker instance " + other + " is not this database, and there is no route to it.",
		},
		{
			name: "step 5: AutoCreatedLocal", want: way{address: "LOCAL"}, service: here,
		},
		{
			name: "step 5: LOCAL does not have the service", want: way{address: "LOCAL"}, service: far,
			status: `The target service "` + far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "step 5: names are compared byte by byte", want: way{address: "LOCAL"}, service: "//TEST/Answerer",
			status: `The target service "//TEST/Answerer" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "step 5: the forwarder gets what is not here", routes: []route{{address: "tcp://hub:4022"}},
			want: way{address: "LOCAL", otherwise: "tcp://hub:4022"}, service: far,
			status: `The target service "` + far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "step 5: the forwarder does not get what is here", routes: []route{{address: "tcp://hub:4022"}},
			want: way{address: "LOCAL"}, service: here,
		},
		{
			name: "an expired route does not exist", want: way{address: "LOCAL"}, service: here,
			routes: []route{{address: "tcp://a:1", service: here, isExpired: true}},
		},
		{
			name: "a route to a service that is here leads away all the same", want: way{address: "tcp://a:1"}, service: here,
			routes: []route{{address: "TCP://A:1/", service: here}},
		},
		{
			name: "LOCAL for the service comes before the network", want: way{address: "LOCAL"}, service: here,
			routes: []route{{address: "tcp://a:1", service: here}, {address: "local", service: here}},
		},
		{
			name: "LOCAL that is not here goes on within its step only", want: way{address: "LOCAL"}, service: far,
			routes: []route{{address: "LOCAL", service: far}, {address: "tcp://hub:4022"}},
			status: `The target service "` + far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "a mirror comes before LOCAL", service: here, instance: own,
			routes: []route{
				{address: "LOCAL", service: here, instance: own},
				{address: "tcp://[FE80::0:1]:04022", mirror: "TCP://Second:4022/", service: here, instance: own},
			},
			want: way{address: "tcp://[fe80::1]:4022,second:4022", instance: own},
		},
		{
			name: "the network comes before TRANSPORT", service: "tcp://far:4022/Service", want: way{address: "LOCAL", otherwise: "tcp://a:1"},
			routes: []route{{address: "TRANSPORT"}, {address: "tcp://a:1"}},
			status: `The target service "tcp://far:4022/Service" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "TRANSPORT takes the address from the name", service: "TCP://Far:4022/Service",
			routes: []route{{address: "TRANSPORT"}}, want: way{address: "LOCAL", otherwise: "tcp://far:4022"},
			status: `The target service "TCP://Far:4022/Service" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "an instance on a LOCAL route must be this one", service: here, want: way{address: "LOCAL", instance: other},
			routes: []route{{address: "LOCAL", service: here, instance: other}},
			status: "The broker instance " + other + " is not this database, and there is no route to it.",
		},
		{
			name: "an instance on a LOCAL route that is this one", service: here, want: way{address: "LOCAL", instance: own},
			routes: []route{{address: "LOCAL", service: here, instance: own}},
		},
		{
			name: "what differs by instance does not mix", service: far, want: way{address: "LOCAL", otherwise: "tcp://a:1", instance: other},
			routes: []route{{address: "LOCAL", service: far, instance: other}, {address: "tcp://a:1", service: far, instance: other}},
			status: "The broker instance " + other + " is not this database, and there is no route to it.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			guid := value[string](b.session, "select service_broker_guid::text from parley.databases")
			b.createRoutes(test.routes...)
			if test.instance == own {
				test.instance = guid
			}
			if test.want.instance == own {
				test.want.instance = guid
			}
			got, status := b.findRoute(test.service, test.instance)
			if got != test.want || status != test.status {
				t.Errorf("found %q with status %q,\nwant  %q with status %q", got, status, test.want, test.status)
			}
		})
	}
}

func TestRouteMatchingWithoutAutoCreatedLocal(t *testing.T) {
	t.Parallel()
	const noRoute = `There is no route to the service "%s".`
	for _, test := range []struct {
		name              string
		routes            []route
		service, instance string
		want              way
		status            string
	}{
		{name: "step 7: nothing leads there", service: far, status: fmt.Sprintf(noRoute, far)},
		{name: "step 7: not even to what is here", service: here, status: fmt.Sprintf(noRoute, here)},
		{
			name: "step 7: a name that differs by case", service: "//FAR/Service", routes: []route{{address: "tcp://a:1", service: far}},
			status: fmt.Sprintf(noRoute, "//FAR/Service"),
		},
		{name: "step 6: this instance has the service", service: here, instance: "current database", want: way{address: "LOCAL", instance: "current database"}},
		{
			name: "step 6: this instance does not have the service", service: far, instance: "current database",
			want: way{instance: "current database"}, status: fmt.Sprintf(noRoute, far),
		},
		{
			name: "step 6: another instance may be at hand", service: here, instance: other, want: way{address: "LOCAL", instance: other},
			status: "The broker instance " + other + " is not this database, and there is no route to it.",
		},
		{
			name: "TRANSPORT", service: "tcp://10.0.0.7:4022/Service", routes: []route{{address: "transport"}},
			want: way{address: "tcp://10.0.0.7:4022"},
		},
		{
			name: "TRANSPORT needs an address in the name", service: far, routes: []route{{address: "TRANSPORT"}},
			status: `The service name "` + far + `" does not begin with tcp://host:port, as the route to it, TRANSPORT, requires.`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.drop_route('AutoCreatedLocal')")
			guid := value[string](b.session, "select service_broker_guid::text from parley.databases")
			b.createRoutes(test.routes...)
			for _, instance := range []*string{&test.instance, &test.want.instance} {
				if *instance == "current database" {
					*instance = guid
				}
			}
			got, status := b.findRoute(test.service, test.instance)
			if got != test.want || status != test.status {
				t.Errorf("found %q with status %q,\nwant  %q with status %q", got, status, test.want, test.status)
			}
		})
	}
}
