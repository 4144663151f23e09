package sqltest

import (
	"testing"
)

// Contract and message type of event notifications.
const (
	PostEvent = "http://schemas.microsoft.com/SQL/Notifications/PostEventNotification"
	Event     = "http://schemas.microsoft.com/SQL/Notifications/EventNotification"
)

// NewListener returns a fixture with a service that is to be notified.
func NewListener(t *testing.T) *Broker {
	t.Helper()
	b := NewWorld(t)
	b.Exec("select parley.create_queue('Listening')")
	b.Exec("select parley.create_service('//test/Listener', 'Listening', array['" + PostEvent + "'])")
	return b
}

// Subscribe makes an event notification for the answering queue.
func (s Session) Subscribe(name, event string, fanIn bool) {
	s.Helper()
	s.Exec("select parley.create_event_notification($1, 'Answering', $2, '//test/Listener', fan_in => $3)", name, event, fanIn)
}

// Disable lets poison message handling disable a queue, as five readers do that fail.
func (b *Broker) Disable() {
	b.Helper()
	b.Send(b.Dialog(), Request, "poison")
	for range 5 {
		tx := b.Begin()
		tx.Exec("select parley.receive('Answering')")
		tx.Rollback()
	}
	b.Refuses(9617, "select parley.receive('Answering')")
}
