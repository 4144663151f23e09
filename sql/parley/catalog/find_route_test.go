package catalog_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestRouteMatchingOrder(t *testing.T) {
	t.Parallel()
	own := "current database"
	for _, test := range []struct {
		name              string
		routes            []sqltest.Route
		service, instance string
		want              sqltest.Way
		status            string
	}{
		{
			name:   "step 1: service and instance come before service alone",
			routes: []sqltest.Route{{Address: "tcp://b:1", Service: sqltest.Far}, {Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Other}, {Address: "tcp://c:1"}},
			want:   sqltest.Way{Address: "tcp://a:1", Instance: sqltest.Other}, service: sqltest.Far, instance: sqltest.Other,
		},
		{
			name:   "step 2: the service, when its instance has no route",
			routes: []sqltest.Route{{Address: "tcp://b:1", Service: sqltest.Far}, {Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Third}, {Address: "tcp://c:1"}},
			want:   sqltest.Way{Address: "tcp://b:1", Instance: sqltest.Other}, service: sqltest.Far, instance: sqltest.Other,
		},
		{
			name:   "step 2: the service comes before the service with an instance when any instance will do",
			routes: []sqltest.Route{{Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Other}, {Address: "tcp://b:1", Service: sqltest.Far}},
			want:   sqltest.Way{Address: "tcp://b:1"}, service: sqltest.Far,
		},
		{
			name:   "step 3: any instance will do",
			routes: []sqltest.Route{{Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Other}, {Address: "tcp://c:1"}},
			want:   sqltest.Way{Address: "tcp://a:1", Instance: sqltest.Other}, service: sqltest.Far,
		},
		{
			name:   "step 3 is not for those who want an instance",
			routes: []sqltest.Route{{Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Third}, {Address: "tcp://c:1"}},
			want:   sqltest.Way{Address: "LOCAL", Otherwise: "tcp://c:1", Instance: sqltest.Other}, service: sqltest.Far, instance: sqltest.Other,
			status: "The broker instance " + sqltest.Other + " is not this database, and there is no route to it.",
		},
		{
			name: "step 5: AutoCreatedLocal", want: sqltest.Way{Address: "LOCAL"}, service: sqltest.Here,
		},
		{
			name: "step 5: LOCAL does not have the service", want: sqltest.Way{Address: "LOCAL"}, service: sqltest.Far,
			status: `The target service "` + sqltest.Far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "step 5: names are compared byte by byte", want: sqltest.Way{Address: "LOCAL"}, service: "//TEST/Answerer",
			status: `The target service "//TEST/Answerer" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "step 5: the forwarder gets what is not here", routes: []sqltest.Route{{Address: "tcp://hub:4022"}},
			want: sqltest.Way{Address: "LOCAL", Otherwise: "tcp://hub:4022"}, service: sqltest.Far,
			status: `The target service "` + sqltest.Far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "step 5: the forwarder does not get what is here", routes: []sqltest.Route{{Address: "tcp://hub:4022"}},
			want: sqltest.Way{Address: "LOCAL"}, service: sqltest.Here,
		},
		{
			name: "an expired route does not exist", want: sqltest.Way{Address: "LOCAL"}, service: sqltest.Here,
			routes: []sqltest.Route{{Address: "tcp://a:1", Service: sqltest.Here, IsExpired: true}},
		},
		{
			name: "a route to a service that is here leads away all the same", want: sqltest.Way{Address: "tcp://a:1"}, service: sqltest.Here,
			routes: []sqltest.Route{{Address: "TCP://A:1/", Service: sqltest.Here}},
		},
		{
			name: "LOCAL for the service comes before the network", want: sqltest.Way{Address: "LOCAL"}, service: sqltest.Here,
			routes: []sqltest.Route{{Address: "tcp://a:1", Service: sqltest.Here}, {Address: "local", Service: sqltest.Here}},
		},
		{
			name: "LOCAL that is not here goes on within its step only", want: sqltest.Way{Address: "LOCAL"}, service: sqltest.Far,
			routes: []sqltest.Route{{Address: "LOCAL", Service: sqltest.Far}, {Address: "tcp://hub:4022"}},
			status: `The target service "` + sqltest.Far + `" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "a mirror comes before LOCAL", service: sqltest.Here, instance: own,
			routes: []sqltest.Route{
				{Address: "LOCAL", Service: sqltest.Here, Instance: own},
				{Address: "tcp://[FE80::0:1]:04022", Mirror: "TCP://Second:4022/", Service: sqltest.Here, Instance: own},
			},
			want: sqltest.Way{Address: "tcp://[fe80::1]:4022,second:4022", Instance: own},
		},
		{
			name: "the network comes before TRANSPORT", service: "tcp://far:4022/Service", want: sqltest.Way{Address: "LOCAL", Otherwise: "tcp://a:1"},
			routes: []sqltest.Route{{Address: "TRANSPORT"}, {Address: "tcp://a:1"}},
			status: `The target service "tcp://far:4022/Service" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "TRANSPORT takes the address from the name", service: "TCP://Far:4022/Service",
			routes: []sqltest.Route{{Address: "TRANSPORT"}}, want: sqltest.Way{Address: "LOCAL", Otherwise: "tcp://far:4022"},
			status: `The target service "TCP://Far:4022/Service" does not exist in this database, and there is no route to it.`,
		},
		{
			name: "an instance on a LOCAL route must be this one", service: sqltest.Here, want: sqltest.Way{Address: "LOCAL", Instance: sqltest.Other},
			routes: []sqltest.Route{{Address: "LOCAL", Service: sqltest.Here, Instance: sqltest.Other}},
			status: "The broker instance " + sqltest.Other + " is not this database, and there is no route to it.",
		},
		{
			name: "an instance on a LOCAL route that is this one", service: sqltest.Here, want: sqltest.Way{Address: "LOCAL", Instance: own},
			routes: []sqltest.Route{{Address: "LOCAL", Service: sqltest.Here, Instance: own}},
		},
		{
			name: "what differs by instance does not mix", service: sqltest.Far, want: sqltest.Way{Address: "LOCAL", Otherwise: "tcp://a:1", Instance: sqltest.Other},
			routes: []sqltest.Route{{Address: "LOCAL", Service: sqltest.Far, Instance: sqltest.Other}, {Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Other}},
			status: "The broker instance " + sqltest.Other + " is not this database, and there is no route to it.",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			guid := sqltest.Value[string](b.Session, "select service_broker_guid::text from parley.databases")
			b.CreateRoutes(test.routes...)
			if test.instance == own {
				test.instance = guid
			}
			if test.want.Instance == own {
				test.want.Instance = guid
			}
			got, status := b.FindRoute(test.service, test.instance)
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
		routes            []sqltest.Route
		service, instance string
		want              sqltest.Way
		status            string
	}{
		{name: "step 7: nothing leads there", service: sqltest.Far, status: fmt.Sprintf(noRoute, sqltest.Far)},
		{name: "step 7: not even to what is here", service: sqltest.Here, status: fmt.Sprintf(noRoute, sqltest.Here)},
		{
			name: "step 7: a name that differs by case", service: "//FAR/Service", routes: []sqltest.Route{{Address: "tcp://a:1", Service: sqltest.Far}},
			status: fmt.Sprintf(noRoute, "//FAR/Service"),
		},
		{name: "step 6: this instance has the service", service: sqltest.Here, instance: "current database", want: sqltest.Way{Address: "LOCAL", Instance: "current database"}},
		{
			name: "step 6: this instance does not have the service", service: sqltest.Far, instance: "current database",
			want: sqltest.Way{Instance: "current database"}, status: fmt.Sprintf(noRoute, sqltest.Far),
		},
		{
			name: "step 6: another instance may be at hand", service: sqltest.Here, instance: sqltest.Other, want: sqltest.Way{Address: "LOCAL", Instance: sqltest.Other},
			status: "The broker instance " + sqltest.Other + " is not this database, and there is no route to it.",
		},
		{
			name: "TRANSPORT", service: "tcp://10.0.0.7:4022/Service", routes: []sqltest.Route{{Address: "transport"}},
			want: sqltest.Way{Address: "tcp://10.0.0.7:4022"},
		},
		{
			name: "TRANSPORT needs an address in the name", service: sqltest.Far, routes: []sqltest.Route{{Address: "TRANSPORT"}},
			status: `The service name "` + sqltest.Far + `" does not begin with tcp://host:port, as the route to it, TRANSPORT, requires.`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.drop_route('AutoCreatedLocal')")
			guid := sqltest.Value[string](b.Session, "select service_broker_guid::text from parley.databases")
			b.CreateRoutes(test.routes...)
			for _, instance := range []*string{&test.instance, &test.want.Instance} {
				if *instance == "current database" {
					*instance = guid
				}
			}
			got, status := b.FindRoute(test.service, test.instance)
			if got != test.want || status != test.status {
				t.Errorf("found %q with status %q,\nwant  %q with status %q", got, status, test.want, test.status)
			}
		})
	}
}
