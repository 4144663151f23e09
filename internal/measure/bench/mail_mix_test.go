package bench // The mix is not exported.

import "testing"

func TestAMixHasAllItsMessagesInTheSizesThatItNames(t *testing.T) {
	t.Parallel()
	for messages, want := range map[int]map[int]int{
		20:   {mail25KB: 15, mail57KB: 3, mail80KB: 2},
		1000: {mail25KB: 700, mail57KB: 150, mail80KB: 100, mail1MB: 40, mail5MB: 10},
		1:    {mail25KB: 1},
	} {
		load := mailLoad{size: meanSize(mailMix), mix: mailMix, sessions: 20}
		sum := 0
		for _, i := range load.injections("", messages) {
			sum += i.Messages
			if i.Messages != want[i.Size] || i.Sessions < 1 {
				t.Errorf("of %d messages %d have %d bytes, over %d connections; want %d", messages, i.Messages, i.Size, i.Sessions, want[i.Size])
			}
		}
		if sum != messages {
			t.Errorf("%d messages are sent, want %d", sum, messages)
		}
	}
	plain := mailLoad{size: mail1MB, sessions: 20}.injections("", 50)
	if len(plain) != 1 || plain[0].Messages != 50 || plain[0].Size != mail1MB || plain[0].Sessions != 20 {
		t.Errorf("without a mix it is %+v", plain)
	}
}
