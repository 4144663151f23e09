package transport_test

import (
	"context"
	"testing"
	"time"
)

// A listener of a queue is woken by what arrives from another database, also in a conversation that is under way.
func TestArrivalFromAnotherDatabaseWakesWhoSleepsOnTheQueue(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	conn, err := answerer.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var queue string
	if _, err := conn.Exec(t.Context(), "listen parley"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "select parley.listen_for_messages('Answering', 3600)").Scan(&queue); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"the first opens the dialog", "the second takes the short way"} {
		asker.Send(handle, request, body)
		asker.exchange(answerer)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for {
			received, err := conn.Conn().WaitForNotification(ctx)
			if err != nil {
				t.Fatalf("%s, and nobody is woken: %v", body, err)
			}
			if received.Channel == "parley" && received.Payload == queue {
				break
			}
		}
		cancel()
	}
}
