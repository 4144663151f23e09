package sql_test

import (
	"regexp"
	"testing"
)

const (
	postEvent = "http://schemas.microsoft.com/SQL/Notifications/PostEventNotification"
	event     = "http://schemas.microsoft.com/SQL/Notifications/EventNotification"
)

// newListener returns a fixture with a service that is to be notified.
func newListener(t *testing.T) *broker {
	t.Helper()
	b := newWorld(t)
	b.exec("select parley.create_queue('Listening')")
	b.exec("select parley.create_service('//test/Listener', 'Listening', array['" + postEvent + "'])")
	return b
}

func (s session) subscribe(name, event string, fanIn bool) {
	s.Helper()
	s.exec("select parley.create_event_notification($1, 'Answering', $2, '//test/Listener', fan_in => $3)", name, event, fanIn)
}

func TestEventNotificationHasTheElementsInOrder(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.subscribe("activated", "queue_activation", false)
	equal(b.session, 1, "select parley.notify_activation('Answering')")
	got := b.receive("Listening")
	if len(got) != 1 || got[0].MessageTypeName != event || got[0].ServiceContractName != postEvent {
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
	b := newListener(t)
	b.subscribe("activated", "QUEUE_ACTIVATION", false)
	for range 3 {
		equal(b.session, 1, "select parley.notify_activation('Answering')")
	}
	equal(b.session, 1, "select count(distinct conversation_handle) from parley.queue_contents('Listening') having count(*) = 3")
	equal(b.session, "CO", `
		select e.state from parley.event_notifications as n join parley.conversation_endpoints as e using (conversation_handle)`)
}

func TestEachEventNotificationGetsTheEventUnlessFannedIn(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	for _, c := range []struct {
		name  string
		fanIn bool
		want  int
	}{{"a", false, 1}, {"b", false, 2}, {"c", true, 3}, {"d", true, 3}, {"e", true, 3}} {
		b.subscribe(c.name, "QUEUE_ACTIVATION", c.fanIn)
		equal(b.session, c.want, "select parley.notify_activation('Answering')")
	}
	// Those of another owner are not alike.
	name := b.role("other")
	b.grant(right{"ALTER", "queue", "Answering"}, name)
	b.as(name).subscribe("f", "QUEUE_ACTIVATION", true)
	equal(b.session, 4, "select parley.notify_activation('Answering')")
	b.exec("select parley.drop_event_notification('f', 'Answering')")
	b.revoke(right{"ALTER", "queue", "Answering"}, name)
}

func TestDroppedEventNotificationEndsItsConversation(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.subscribe("activated", "QUEUE_ACTIVATION", false)
	b.exec("select parley.notify_activation('Answering')")
	b.exec("select parley.drop_event_notification('activated', 'Answering')")
	equal(b.session, 0, "select parley.notify_activation('Answering')")
	if got := typesOf(b.receive("Listening")); len(got) != 2 || got[0] != event || got[1] != endDialog {
		t.Errorf("received %q", got)
	}
	// One that never reported anything leaves nothing.
	b.subscribe("activated", "QUEUE_ACTIVATION", false)
	b.exec("select parley.drop_event_notification('activated', 'Answering')")
	if got := b.receive("Listening"); len(got) > 0 {
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
			b := newListener(t)
			b.subscribe("activated", "QUEUE_ACTIVATION", false)
			b.exec("select parley.notify_activation('Answering')")
			got := b.receive("Listening")
			b.exec(c.end, got[0].ConversationHandle)
			if c.then == "select parley.fire_timers()" {
				// Whoever holds the conversation is waited for by nobody.
				holder := b.begin()
				holder.exec("select from parley._p_endpoint where conversation_handle = $1 for update", got[0].ConversationHandle)
				b.exec(c.then)
				holder.rollback()
				equal(b.session, 1, "select count(*) from parley.event_notifications")
			}
			b.exec(c.then)
			equal(b.session, 0, "select count(*) from parley.event_notifications")
			equal(b.session, 0, "select count(*) from parley.conversation_endpoints where state <> 'CD'")
		})
	}
}

func TestServiceThatRefusesLosesItsNotificationAndHarmsNobody(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.subscribe("one", "QUEUE_ACTIVATION", false)
	b.exec("select parley.create_service('//test/Second', 'Listening', array['" + postEvent + "'])")
	b.exec("select parley.create_event_notification('two', 'Answering', 'QUEUE_ACTIVATION', '//test/Second')")
	b.exec("select parley.alter_service('//test/Listener', drop_contracts => array['" + postEvent + "'])")
	equal(b.session, 1, "select parley.notify_activation('Answering')")
	equal(b.session, "two", "select name from parley.event_notifications")
}

func TestServiceThatIsGoneLosesItsNotification(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.subscribe("one", "QUEUE_ACTIVATION", false)
	equal(b.session, 1, "select parley.notify_activation('Answering')")
	b.exec("select parley.drop_service('//test/Listener')")
	equal(b.session, 0, "select parley.notify_activation('Answering')")
	equal(b.session, 0, "select count(*) from parley.event_notifications")
}

func TestNotificationToAnotherDatabaseWaitsForItsRoute(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.exec("select parley.create_event_notification('far', 'Answering', 'QUEUE_ACTIVATION', '//far/Listener', gen_random_uuid()::text)")
	equal(b.session, 1, "select parley.notify_activation('Answering')")
	equal(b.session, 1, "select count(*) from parley.transmission_queue where to_service_name = '//far/Listener'")
}

// disable lets poison message handling disable a queue, as five readers do that fail.
func (b *broker) disable() {
	b.Helper()
	b.send(b.dialog(), request, "poison")
	for range 5 {
		tx := b.begin()
		tx.exec("select parley.receive('Answering')")
		tx.rollback()
	}
	b.refuses(9617, "select parley.receive('Answering')")
}

func TestDisabledQueueIsReportedOnceForEachTime(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
	b.subscribe("plain", "BROKER_QUEUE_DISABLED", false)
	b.subscribe("merged 1", "BROKER_QUEUE_DISABLED", true)
	b.subscribe("merged 2", "BROKER_QUEUE_DISABLED", true)
	equal(b.session, 0, "select parley._p_notify_disabled_queues(parley._p_current_role(), null)")
	for range 2 {
		b.disable()
		b.exec("select parley.fire_timers()")
		equal(b.session, 0, "select parley._p_notify_disabled_queues(parley._p_current_role(), null)")
		got := b.messages("select * from parley.receive('Listening') union all select * from parley.receive('Listening')")
		if len(got) != 2 || !regexp.MustCompile("<EventType>BROKER_QUEUE_DISABLED</EventType>.*<ObjectName>Answering</ObjectName>").Match(got[0].MessageBody) {
			t.Errorf("received %+v", got)
		}
		// It is enabled, and disabled again, before it is read.
		b.exec("select parley.alter_queue('Answering', status => true)")
		b.exec("select parley.receive('Answering')")
	}
	equal(b.session, 0, "select parley._p_notify_disabled_queues(parley._p_current_role(), null)")
}
