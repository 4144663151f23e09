package reliability_test

import "testing"

// A session that moves a conversation, or is the first to join its group, may end it in the same transaction, while the other side ends it
// too: END takes both sides in one order, and finds no half of them held.
func TestWhoJoinsAGroupDoesNotDeadlockWithTheEndOfTheOtherSide(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]func(s *session, ended, other string){
		"begin a dialog in its group": func(s *session, ended, _ string) {
			s.exec("select parley.begin_dialog('target', 'initiator', related_conversation => $1::uuid)", ended)
		},
		"move it": func(s *session, ended, other string) { s.exec(move, ended, s.group(other)) },
		"move another into its group": func(s *session, ended, other string) {
			s.exec(move, other, s.group(ended))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			initiator, ended := b.admin.conversation("1")
			_, other := b.admin.conversation("2")
			joiner, ender := b.session(t), b.session(t)
			joiner.begin()
			join(joiner, ended, other)
			ending := startTry(b, ender, func() error { return ender.tryEnd(initiator) })
			ending.awaitBlocked()
			if err := joiner.tryEnd(ended); err != nil {
				t.Errorf("END after joining: %v", err)
			}
			joiner.commit()
			ending.must()
		})
	}
}
