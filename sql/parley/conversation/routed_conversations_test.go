package conversation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const missingFar = `The target service "//far/Service" does not exist in this database, and there is no route to it.`

func TestRouteTakesAConversationToItsAddress(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoute("far", "TCP://Far:4022", sqltest.Far)
	b.Send(b.DialogWithFar(), sqltest.Request, "hello")
	b.RequireLanes("tcp://far:4022: hello")
	b.RequireDelayed()
}

func TestCreatedRouteTakesWhatHasWaited(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.DialogWithFar()
	for _, text := range []string{"1", "2", "3"} {
		b.Send(handle, sqltest.Request, text)
	}
	b.RequireDelayed(missingFar)
	b.CreateRoute("other", "tcp://other:4022", "//other/Service")
	b.RequireDelayed(missingFar)
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	b.Send(handle, sqltest.Request, "4")
	b.RequireLanes("tcp://far:4022: 1 2 3 4")
	b.RequireDelayed()
}

func TestConversationWaitsWhenItsRouteIsDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	handle := b.DialogWithFar()
	b.Send(handle, sqltest.Request, "1")
	b.Exec("select parley.drop_route('far')")
	b.RequireLanes()
	b.RequireDelayed(missingFar)
	b.Send(handle, sqltest.Request, "2")
	b.CreateRoute("again", "tcp://far:4022", sqltest.Far)
	b.RequireLanes("tcp://far:4022: 1 2")
}

// It never left, so it may as well have its far side here.
func TestConversationComesBackToWhatIsHere(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		last func(b *sqltest.Broker, handle string)
		want []string
	}{
		{"when a service is created", func(b *sqltest.Broker, _ string) {
			b.Exec("select parley.create_service('//far/Service', 'Answering', array['//test/Work'])")
		}, []string{"1", "2"}},
		{"when it sends", func(b *sqltest.Broker, handle string) {
			b.Exec("update parley._p_service set name = '//far/Service' where name = '//test/Answerer'")
			b.Send(handle, sqltest.Request, "3")
		}, []string{"1", "2", "3"}},
		{"when it ends", func(b *sqltest.Broker, handle string) {
			b.Exec("update parley._p_service set name = '//far/Service' where name = '//test/Answerer'")
			b.End(handle)
		}, []string{"1", "2", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
			handle := b.DialogWithFar()
			b.Send(handle, sqltest.Request, "1")
			b.Exec("select parley.drop_route('far')")
			b.Send(handle, sqltest.Request, "2")
			test.last(b, handle)
			if got := b.Bodies("Answering"); !slices.Equal(got, test.want) {
				t.Errorf("received %q, want %q", got, test.want)
			}
			b.RequireLanes()
			b.RequireDelayed()
		})
	}
}

// A route that is LOCAL and names another instance is for that instance, whatever this database has.
func TestLocalRouteToAnotherInstanceIsNotServedHere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoutes(sqltest.Route{Address: "LOCAL", Service: sqltest.Here, Instance: sqltest.Other})
	b.Send(b.Dialog(), sqltest.Request, "x")
	if got := b.Bodies("Answering"); len(got) > 0 {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, sqltest.Other, "select to_broker::text from parley._p_unresolved(100)")
}

func TestMessagesWaitForTheBrokerConfigurationService(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	handle := b.DialogWithFar()
	b.Send(handle, sqltest.Request, "1")
	b.RequireDelayed(sqltest.Asked)
	configuring := b.Request(sqltest.MissingRoute)
	b.Send(handle, sqltest.Request, "2")
	tx := b.Begin()
	tx.Exec("select parley.create_route('found', 'tcp://far:4022', $1, lifetime => 300)", sqltest.Far)
	tx.End(configuring)
	tx.Commit()
	// The way is known; whether the dialog is to be sealed is asked next.
	b.RequireLanes()
	b.RequireDelayed(sqltest.AskedForBinding)
	b.End(b.BindingRequest())
	b.Exec("select parley.fire_timers()")
	b.RequireLanes("tcp://far:4022: 1 2")
	b.RequireDelayed()
}

// The service itself may be elsewhere.
func TestBrokerConfigurationServiceMayBeFarAway(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoute("configuration", "tcp://directory:4022", sqltest.ConfigurationService)
	b.Send(b.DialogWithFar(), sqltest.Request, "1")
	b.RequireLanes(fmt.Sprintf("tcp://directory:4022: %s", sqltest.MissingRoute))
	b.RequireDelayed(sqltest.Asked)
}
