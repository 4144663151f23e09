package activation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// Readers leave when they fail, and the conversation that made them fail is set aside with their error.
func TestAMessageThatFailsItsReadersIsSetAsideWithTheirError(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(`
		declare
			m record;
		begin
			loop
				select * into m from parley.receive('target', top => 1);
				exit when not found;
				insert into app.done (number) select r / r * r from (select convert_from(m.message_body, 'UTF8')::int as r) as n;
				commit;
			end loop;
		end`)
	b.activate(3)
	b.start(activation.Config{})
	b.send(0, 0)
	b.send(1, 20)
	b.awaitDone(20)
	b.await(`select count(*) = 1 and bool_and(rollbacks = 5 and sqlstate = '22012' and error like '%division by zero%')
		from parley.poison_conversations where queue_name = 'target'`)
	// A message that arrives for it now starts no reader.
	b.awaitReaders(0)
	b.exec("select parley.send(far.conversation_handle, 'DEFAULT', '21'::text) from parley.poison_conversations as p " +
		"join parley.conversation_endpoints as e using (conversation_handle) " +
		"join parley.conversation_endpoints as far on far.conversation_id = e.conversation_id and far.conversation_handle <> e.conversation_handle")
	b.send(22, 22)
	b.await("select exists (select from app.done where number = 22)")
	b.await(content)
	b.restore()
	b.exec("select parley.retry_poison(conversation_handle) from parley.poison_conversations")
	b.await("select exists (select from app.done where number = 0)")
	b.await("select not exists (select from parley.poison_conversations)")
}
