package activation_test

import (
	"regexp"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestEventNotificationHasTheElementsInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Subscribe("activated", "queue_activation", false)
	sqltest.Equal(b.Session, 1, "select parley.notify_activation('Answering')")
	got := b.Receive("Listening")
	if len(got) != 1 || got[0].MessageTypeName != sqltest.Event || got[0].ServiceContractName != sqltest.PostEvent {
		t.Fatalf("received %+v", got)
	}
	want := regexp.MustCompile(`^<EVENT_INSTANCE><EventType>QUEUE_ACTIVATION</EventType><PostTime>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}</PostTime><SPID>\d+</SPID>` +
		`<ServerName>[^<]+</ServerName><LoginName>[^<]+</LoginName><UserName>[^<]+</UserName><DatabaseName>parley_test_[^<]+</DatabaseName>` +
		`<SchemaName>dbo</SchemaName><ObjectName>Answering</ObjectName><ObjectType>QUEUE</ObjectType></EVENT_INSTANCE>$`)
	if body := string(got[0].MessageBody); !want.MatchString(body) {
		t.Errorf("the body is %s", body)
	}
}

func TestEventNotificationsShareOneConversationEachForEver(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Subscribe("activated", "QUEUE_ACTIVATION", false)
	for range 3 {
		sqltest.Equal(b.Session, 1, "select parley.notify_activation('Answering')")
	}
	sqltest.Equal(b.Session, 1, "select count(distinct conversation_handle) from parley.queue_contents('Listening') having count(*) = 3")
	sqltest.Equal(b.Session, "CO", `
		select e.state from parley.event_notifications as n join parley.conversation_endpoints as e using (conversation_handle)`)
}

func TestEachEventNotificationGetsTheEventUnlessFannedIn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	for _, c := range []struct {
		name  string
		fanIn bool
		want  int
	}{{"a", false, 1}, {"b", false, 2}, {"c", true, 3}, {"d", true, 3}, {"e", true, 3}} {
		b.Subscribe(c.name, "QUEUE_ACTIVATION", c.fanIn)
		sqltest.Equal(b.Session, c.want, "select parley.notify_activation('Answering')")
	}
	// Those of another owner are not alike.
	name := b.Role("other")
	b.Grant(sqltest.RightTo("ALTER", "queue", "Answering"), name)
	b.As(name).Subscribe("f", "QUEUE_ACTIVATION", true)
	sqltest.Equal(b.Session, 4, "select parley.notify_activation('Answering')")
	b.Exec("select parley.drop_event_notification('f', 'Answering')")
	b.Revoke(sqltest.RightTo("ALTER", "queue", "Answering"), name)
}

func TestDroppedEventNotificationEndsItsConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Subscribe("activated", "QUEUE_ACTIVATION", false)
	b.Exec("select parley.notify_activation('Answering')")
	b.Exec("select parley.drop_event_notification('activated', 'Answering')")
	sqltest.Equal(b.Session, 0, "select parley.notify_activation('Answering')")
	if got := sqltest.TypesOf(b.Receive("Listening")); len(got) != 2 || got[0] != sqltest.Event || got[1] != sqltest.EndDialog {
		t.Errorf("received %q", got)
	}
	// One that never reported anything leaves nothing.
	b.Subscribe("activated", "QUEUE_ACTIVATION", false)
	b.Exec("select parley.drop_event_notification('activated', 'Answering')")
	if got := b.Receive("Listening"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestConversationThatIsOverTakesItsNotificationWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, end, then string }{
		{"ended, noticed at the next event", "select parley.end_conversation($1::uuid)", "select parley.notify_activation('Answering')"},
		{"failed, noticed at the next event", "select parley.end_conversation($1::uuid, 1, 'no')", "select parley.notify_activation('Answering')"},
		{"ended, noticed by the timers", "select parley.end_conversation($1::uuid)", "select parley.fire_timers()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewListener(t)
			b.Subscribe("activated", "QUEUE_ACTIVATION", false)
			b.Exec("select parley.notify_activation('Answering')")
			got := b.Receive("Listening")
			b.Exec(c.end, got[0].ConversationHandle)
			if c.then == "select parley.fire_timers()" {
				// No delivery waits for a session that holds the conversation.
				holder := b.Begin()
				holder.Exec("select from parley._p_endpoint where conversation_handle = $1 for update", got[0].ConversationHandle)
				b.Exec(c.then)
				holder.Rollback()
				sqltest.Equal(b.Session, 1, "select count(*) from parley.event_notifications")
			}
			b.Exec(c.then)
			sqltest.Equal(b.Session, 0, "select count(*) from parley.event_notifications")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where state <> 'CD'")
		})
	}
}

func TestServiceThatRefusesLosesItsNotificationAndHarmsNobody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Subscribe("one", "QUEUE_ACTIVATION", false)
	b.Exec("select parley.create_service('//test/Second', 'Listening', array['" + sqltest.PostEvent + "'])")
	b.Exec("select parley.create_event_notification('two', 'Answering', 'QUEUE_ACTIVATION', '//test/Second')")
	b.Exec("select parley.alter_service('//test/Listener', drop_contracts => array['" + sqltest.PostEvent + "'])")
	sqltest.Equal(b.Session, 1, "select parley.notify_activation('Answering')")
	sqltest.Equal(b.Session, "two", "select name from parley.event_notifications")
}

func TestServiceThatIsGoneLosesItsNotification(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Subscribe("one", "QUEUE_ACTIVATION", false)
	sqltest.Equal(b.Session, 1, "select parley.notify_activation('Answering')")
	b.Exec("select parley.drop_service('//test/Listener')")
	sqltest.Equal(b.Session, 0, "select parley.notify_activation('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.event_notifications")
}

func TestNotificationToAnotherDatabaseWaitsForItsRoute(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Exec("select parley.create_event_notification('far', 'Answering', 'QUEUE_ACTIVATION', '//far/Listener', gen_random_uuid()::text)")
	sqltest.Equal(b.Session, 1, "select parley.notify_activation('Answering')")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.transmission_queue where to_service_name = '//far/Listener'")
}

func TestDisabledQueueIsReportedOnceForEachTime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
	b.Subscribe("plain", "BROKER_QUEUE_DISABLED", false)
	b.Subscribe("merged 1", "BROKER_QUEUE_DISABLED", true)
	b.Subscribe("merged 2", "BROKER_QUEUE_DISABLED", true)
	sqltest.Equal(b.Session, 0, "select parley._p_notify_disabled_queues(parley._p_current_role(), null)")
	for range 2 {
		b.Disable()
		b.Exec("select parley.fire_timers()")
		sqltest.Equal(b.Session, 0, "select parley._p_notify_disabled_queues(parley._p_current_role(), null)")
		got := b.Messages("select * from parley.receive('Listening') union all select * from parley.receive('Listening')")
		if len(got) != 2 || !regexp.MustCompile("<EventType>BROKER_QUEUE_DISABLED</EventType>.*<ObjectName>Answering</ObjectName>").Match(got[0].MessageBody) {
			t.Errorf("received %+v", got)
		}
		// It is enabled, and disabled again, before it is read.
		b.Exec("select parley.alter_queue('Answering', status => true)")
		b.Exec("select parley.receive('Answering')")
	}
	sqltest.Equal(b.Session, 0, "select parley._p_notify_disabled_queues(parley._p_current_role(), null)")
}
