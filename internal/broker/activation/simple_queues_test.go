package activation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// As many readers as a simple queue has messages that nobody has taken, up to the limit; what is not due yet starts one when it is.
func TestASimpleQueueStartsReaders(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(`
		declare
			m parley.taken_message;
		begin
			loop
				select * into m from parley.take('jobs');
				exit when not found;
				while not (select is_open from app.gate) loop
					perform pg_sleep(0.01);
				end loop;
				insert into app.done (number) values (convert_from(m.body, 'UTF8')::int);
				commit;
			end loop;
		end`)
	b.exec("update app.gate set is_open = false")
	b.exec(`select parley.create_queue(
		'jobs', kind => 'SIMPLE', activation_procedure => 'app.reader', max_queue_readers => 3, execute_as => 'SELF')`)
	b.start(activation.Config{})
	b.exec("select parley.put('jobs', n::text) from generate_series(1, 2) as n")
	b.await("select running_readers = 2 from parley.dm_broker_queue_monitors where queue_name = 'jobs'")
	b.exec("select parley.put('jobs', n::text) from generate_series(3, 8) as n")
	b.await("select running_readers = 3 from parley.dm_broker_queue_monitors where queue_name = 'jobs'")
	b.exec("update app.gate set is_open = true")
	b.awaitDone(8)
	b.exec("select parley.put('jobs', '9', deliver_at => clock_timestamp() + interval '500 milliseconds')")
	b.awaitDone(9)
}
