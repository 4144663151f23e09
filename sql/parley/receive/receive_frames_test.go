package receive_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Batches stand in frames, single messages in rows of their own; a reader notices neither (spec 3.4, 4.3), whatever its TOP cuts through.
func TestFramesAndSingleMessagesAreReceivedInOrder(t *testing.T) {
	t.Parallel()
	for _, top := range []int{1, 7, 40, 100, 137, 1000, 5000} {
		t.Run("top "+strconv.Itoa(top), func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle := b.Dialog()
			sent := 0
			for i := range 90 {
				if i%10 == 9 {
					sent++
					b.Send(handle, sqltest.Request, strconv.Itoa(sent))
					continue
				}
				size := 1 + i*i%23
				b.Exec(`select parley.send_batch($1::uuid, '//test/Request', array(select n::text from generate_series($2::int, $3::int) as n))`,
					handle, sent+1, sent+size)
				sent += size
			}
			received := 0
			for {
				got := b.Messages(fmt.Sprintf("select * from parley.receive('Answering', %d)", top))
				if len(got) != min(top, sent-received) {
					t.Fatalf("received %d messages after %d of %d", len(got), received, sent)
				}
				for _, m := range got {
					if string(m.MessageBody) != strconv.Itoa(received+1) || m.MessageSequenceNumber != int64(received) || m.MessageTypeName != sqltest.Request {
						t.Fatalf("message %d is %q of type %s, number %d", received, m.MessageBody, m.MessageTypeName, m.MessageSequenceNumber)
					}
					received++
				}
				if len(got) == 0 {
					return
				}
			}
		})
	}
}
