package rights_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// An activation procedure is known by its name, and runs as the role that the queue says. A function that takes the name gets no role by
// it.

// activatedBy gives a queue whose procedure, app.run of a role, runs as its owner; a thief may create in the schema of the procedure. begin
// asks whether a reader may be started that calls app.run.
func activatedBy(t *testing.T) (b *sqltest.Broker, author, thief string, begin func() error) {
	t.Helper()
	b = sqltest.NewBroker(t)
	owner := b.Role("owner")
	author, thief = b.Role("author"), b.Role("thief")
	b.Exec("create schema app")
	b.Exec("grant usage, create on schema app to " + sqltest.Quote(thief) + ", " + sqltest.Quote(author) + ", " + sqltest.Quote(owner))
	b.Afterwards("drop schema app cascade")
	b.As(author).Exec("create procedure app.run() language sql as ''")
	b.Exec("select parley.create_queue('Own', \"authorization\" => $1)", owner)
	b.As(owner).Exec(
		"select parley.alter_queue('Own', activation_procedure => 'app.run', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
	term := sqltest.Value[int64](b.Session, "select parley._p_lead('a daemon', 0, 60000)")
	id := sqltest.Value[int](b.Session, "select queue_id from parley._p_queue where name = 'Own'")
	begin = func() error {
		_, err := b.DB.Exec(t.Context(), "select parley._p_begin_reader($1, $2, $3, 'app.run()', false)", term, id, owner)
		return err
	}
	if err := begin(); err != nil {
		t.Fatalf("the procedure is not run as it was set: %v", err)
	}
	return b, author, thief, begin
}

func TestWhoTakesTheNameOfAnActivationProcedureGetsNoRole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// As the administrator, the author of the procedure and the thief.
		admin, author, thief string
		refused              bool
	}{
		{name: "nothing is changed"},
		{name: "dropped", author: "drop procedure app.run()", refused: true},
		{name: "dropped and made anew by another", author: "drop procedure app.run()", thief: "create procedure app.run() language sql as ''", refused: true},
		{name: "dropped and made anew by its author", author: "drop procedure app.run(); create procedure app.run() language sql as ''"},
		{name: "renamed", author: "alter procedure app.run() rename to old", thief: "create procedure app.run() language sql as ''", refused: true},
		{name: "another gave his the name", author: "drop procedure app.run()", thief: "create procedure app.walk() language sql as ''; alter procedure app.walk() rename to run", refused: true},
		{name: "given to another on purpose", admin: "alter procedure app.run() owner to {thief}", refused: true},
		{name: "given to a superuser", admin: "alter procedure app.run() owner to current_user"},
		{name: "given to the role that it runs as", admin: "alter procedure app.run() owner to {owner}"},
		{name: "its schema is another one", admin: "alter schema app rename to old; create schema app; grant all on schema app to {thief}", thief: "create procedure app.run() language sql as ''", refused: true},
		{name: "one with arguments beside it", thief: "create procedure app.run(a int default 1) language sql as ''"},
		{name: "one with arguments instead of it", author: "drop procedure app.run()", thief: "create procedure app.run(a int default 1) language sql as ''", refused: true},
		{name: "a function instead of it", author: "drop procedure app.run()", thief: "create function app.run() returns int language sql as 'select 1'", refused: true},
		{name: "its code changed by its author", author: "create or replace procedure app.run() language plpgsql as 'begin end'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, author, thief, begin := activatedBy(t)
			names := strings.NewReplacer("{thief}", sqltest.Quote(thief), "{owner}", sqltest.Quote(sqltest.Value[string](b.Session, "select pg_get_userbyid(owner) from parley._p_queue where name = 'Own'")))
			for _, step := range []struct {
				as         sqltest.Session
				statements string
			}{{b.Session, c.admin}, {b.As(author), c.author}, {b.As(thief), c.thief}} {
				for statement := range strings.SplitSeq(names.Replace(step.statements), "; ") {
					if statement != "" {
						step.as.Exec(statement)
					}
				}
			}
			b.Afterwards("drop schema if exists old cascade")
			err := begin()
			if !c.refused {
				if err != nil {
					t.Errorf("the reader is refused: %v", err)
				}
				sqltest.Equal(b.Session, true, "select refusal is null and procedure_call = 'app.run()' from parley._p_activated_queues()")
				return
			}
			requireCode(t, err, "42501")
			sqltest.Equal(b.Session, true, "select refusal is not null or procedure_call is null from parley._p_activated_queues()")
		})
	}
}

// The operator's remedy: after reading the procedure he sets it again.
func TestAProcedureOfANewOwnerRunsOnceItIsSetAgain(t *testing.T) {
	t.Parallel()
	b, _, thief, begin := activatedBy(t)
	b.Exec("alter procedure app.run() owner to " + sqltest.Quote(thief))
	requireCode(t, begin(), "42501")
	f := b.RequireFinding(sqltest.Configuration, "activation-not-permitted")
	if !strings.Contains(f.Cause, thief) || !strings.Contains(f.Cause, "app.run") || !strings.Contains(f.Cure, "has read the procedure") {
		t.Errorf("the finding does not say whose the procedure is, or what to do: %s / %s", f.Cause, f.Cure)
	}
	// To switch it off and on is no look at the procedure.
	owner := sqltest.Value[string](b.Session, "select pg_get_userbyid(owner) from parley._p_queue where name = 'Own'")
	refusal := b.As(owner).Refuses(15517, "select parley.alter_queue('Own', activation => true)")
	if !strings.Contains(refusal.Detail, thief) || !strings.Contains(refusal.Hint, "alter_queue(") {
		t.Errorf("the error does not say whose the procedure is, or what to do: %s / %s", refusal.Detail, refusal.Hint)
	}
	requireCode(t, begin(), "42501")
	b.As(owner).Exec("select parley.alter_queue('Own', activation_procedure => 'app.run')")
	if err := begin(); err != nil {
		t.Errorf("the reader is refused: %v", err)
	}
	b.RequireNoFinding(sqltest.Configuration, "activation-not-permitted")
}

// A procedure that was set before there was one is nobody's.
func TestAProcedureThatWasMadeAfterItWasSetIsNotRun(t *testing.T) {
	t.Parallel()
	b, _, thief, begin := activatedBy(t)
	owner := sqltest.Value[string](b.Session, "select pg_get_userbyid(owner) from parley._p_queue where name = 'Own'")
	b.As(owner).Exec("select parley.alter_queue('Own', activation => false, activation_procedure => 'app.later')")
	b.As(thief).Exec("create procedure app.later() language sql as ''")
	b.As(owner).Refuses(15517, "select parley.alter_queue('Own', activation => true)")
	b.Exec("update parley._p_queue set is_activation_enabled = true where name = 'Own'")
	requireCode(t, begin(), "42501")
}

// A daemon that has not read yet that the queue has another procedure does not call the one before, whose name anybody may have by then.
func TestTheProcedureBeforeIsNotCalled(t *testing.T) {
	t.Parallel()
	b, _, thief, _ := activatedBy(t)
	owner := sqltest.Value[string](b.Session, "select pg_get_userbyid(owner) from parley._p_queue where name = 'Own'")
	b.As(owner).Exec("create procedure app.next() language sql as ''")
	b.As(owner).Exec("select parley.alter_queue('Own', activation_procedure => 'app.next')")
	b.Exec("drop procedure app.run()")
	b.As(thief).Exec("create procedure app.run() language sql as ''")
	const begin = `
		select parley._p_begin_reader(parley._p_current_term(), q.queue_id, $1, $2, false)
		from parley._p_queue as q where q.name = 'Own'`
	sqltest.Equal(b.Session, false, begin, owner, "app.run()")
	sqltest.Equal(b.Session, true, begin, owner, "app.next()")
}

// One queue whose schema is closed to the owner of the broker keeps no other from being listed.
func TestASchemaThatIsClosedToTheBrokerStopsNoOtherQueue(t *testing.T) {
	t.Parallel()
	b, _, _, _ := activatedBy(t)
	outsider := b.Role("outsider")
	b.Exec("grant usage on schema parley to " + sqltest.Quote(outsider))
	b.Exec("grant execute on function parley._p_activation_procedure(text) to " + sqltest.Quote(outsider))
	b.Afterwards("drop owned by " + sqltest.Quote(outsider))
	sqltest.Equal(b.As(outsider), true, "select parley._p_activation_procedure('app.run') is not null")
	sqltest.Equal(b.As(outsider), false, "select has_schema_privilege('app', 'usage')")
}
