package broker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Senders of one conversation go on while the switch is thrown again and again; each sender's messages arrive once and in order,
// whichever way they took.
func TestSwitchThrownUnderSendersKeepsMessagesInOrder(t *testing.T) {
	t.Parallel()
	const senders, each = 4, 60
	b := sqltest.NewWorld(t)
	handle, target := b.Conversation()
	var sending sync.WaitGroup
	finished := make(chan struct{})
	for sender := range senders {
		sending.Go(func() {
			for number := range each {
				// The last type is not the usual one, and takes the long way.
				messageType := []string{sqltest.Request, sqltest.Request, sqltest.Note}[number%3]
				_, err := b.Pool.Exec(t.Context(), "select parley.send($1::uuid, $2, $3::text)", handle, messageType, fmt.Sprintf("%d %d", sender, number))
				if err != nil {
					t.Errorf("send: %v", sqltest.Describe(err))
					return
				}
			}
		})
	}
	go func() {
		sending.Wait()
		close(finished)
	}()
	conn, err := pgx.ConnectConfig(t.Context(), b.Pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	switcher := sqltest.Session{T: t, DB: conn}
	for thrown := false; !thrown; {
		switcher.Exec("select parley.disable_broker()")
		switcher.Exec("select parley.enable_broker()")
		select {
		case <-finished:
			thrown = true
		default:
		}
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.transmission_queue")

	next := make([]int, senders)
	bodies := []string{}
	for {
		got := b.Messages("select * from parley.receive('Answering', 1000, conversation_handle => $1)", target)
		if len(got) == 0 {
			break
		}
		bodies = slices.Concat(bodies, sqltest.BodiesOf(got))
	}
	if len(bodies) != senders*each {
		t.Errorf("%d messages arrived, want %d", len(bodies), senders*each)
	}
	for _, body := range bodies {
		var sender, number int
		if _, err := fmt.Sscanf(body, "%d %d", &sender, &number); err != nil {
			t.Fatal(err)
		}
		if number != next[sender] {
			t.Fatalf("sender %d: message %d arrived when %d was due", sender, number, next[sender])
		}
		next[sender]++
	}
}
