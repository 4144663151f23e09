package link

import (
	"reflect"
	"testing"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestABatchArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Config{"plain": {Plaintext: true}, "compressed": {Plaintext: true, Compress: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := newReceiver()
			_, address := serve(t, far, config)
			l := connect(t, "tcp://"+address, config)
			sent := batch(run(1, 0, "a", ""), run(2, 17, string(make([]byte, 5000))))
			sent.Runs[0].Bodies = append(sent.Runs[0].Bodies, nil)
			sent.Runs[1].Security = []byte{1, 2, 3}
			deliver(t, l, sent)
			if got := far.batches[0]; !reflect.DeepEqual(got, sent) {
				t.Errorf("came  %+v\nsent %+v", got, sent)
			}
		})
	}
}

func TestAFragmentArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	_, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	sent := transportstore.Fragment{
		Speaker: speaker(), ConversationID: parley.UUID{0xC0}, FromInitiator: true, Sequence: 4, Offset: 1 << 20, Size: 3 << 20,
		Data: make([]byte, 1<<20), ToService: "stock", ToBroker: parley.UUID{0xB0},
	}
	stored, err := l.DeliverFragment(t.Context(), sent, batch().Passage)
	if err != nil {
		t.Fatal(err)
	}
	if stored != 2<<20 {
		t.Errorf("%d bytes are stored, want %d", stored, 2<<20)
	}
	if got := far.fragments[0]; !reflect.DeepEqual(got, sent) {
		t.Error("the fragment came otherwise than it was sent")
	}
	if far.passages[0] != batch().Passage {
		t.Errorf("passage %+v", far.passages[0])
	}
}
