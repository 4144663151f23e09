package parley_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// requireNumber checks that an error is one of the broker's.
func requireNumber(t *testing.T, err error, want int) {
	t.Helper()
	number, ok := parley.ErrorNumber(err)
	if !ok || number != want {
		t.Errorf("got error %v, want number %d", err, want)
	}
}

func beginDialog(t *testing.T, db parley.DB, options ...parley.DialogOption) parley.UUID {
	t.Helper()
	handle, err := parley.BeginDialog(t.Context(), db, "initiator", "target", options...)
	fixture.RequireNoError(t, err)
	return handle
}

func send(t *testing.T, db parley.DB, handle parley.UUID, texts ...string) {
	t.Helper()
	for _, text := range texts {
		fixture.RequireNoError(t, parley.Send(t.Context(), db, handle, parley.DefaultMessageType, []byte(text)))
	}
}

func TestADialogInEveryQueryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			pool := parleytest.Database(t)
			fixture.CreateServices(t, pool)
			config := pool.Config().ConnConfig
			config.DefaultQueryExecMode = mode
			conn, err := pgx.ConnectConfig(t.Context(), config)
			fixture.RequireNoError(t, err)
			defer func() { _ = conn.Close(t.Context()) }()
			holdDialog(t, conn)
		})
	}
}

func TestADialogThroughAPool(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	holdDialog(t, pool)
}

// holdDialog goes through the life of a conversation with every statement.
func holdDialog(t *testing.T, db parley.DB) {
	t.Helper()
	ctx := t.Context()
	receive := func(queue string, options ...parley.ReceiveOption) []parley.Message {
		t.Helper()
		return fixture.Must[[]parley.Message](t)(parley.Receive(ctx, db, queue, options...))
	}
	handle := beginDialog(t, db, parley.OnContract("DEFAULT"), parley.ToBrokerInstance(parley.CurrentDatabase),
		parley.WithLifetime(time.Hour), parley.WithoutEncryption())
	other := beginDialog(t, db, parley.RelatedTo(handle))
	send(t, db, handle, "one", "two")
	fixture.RequireNoError(t, parley.SendBatch(ctx, db, handle, parley.DefaultMessageType, [][]byte{[]byte("three"), nil}))
	fixture.RequireNoError(t, parley.SendToAll(ctx, db, []parley.UUID{handle, other}, parley.DefaultMessageType, []byte("all")))

	messages := receive("target", parley.Top(2), parley.Wait(0))
	if got := fixture.Bodies(messages); got != "one two" {
		t.Fatalf("received %q", got)
	}
	first := messages[0]
	if first.ServiceName != "target" || first.ServiceContractName != "DEFAULT" || first.MessageTypeName != parley.DefaultMessageType ||
		first.Validation != "N" || first.MessageSequenceNumber != 0 || first.Priority != 5 || first.ConversationHandle == handle ||
		first.ConversationHandle.IsZero() || first.ConversationGroupID.IsZero() || first.MessageEnqueueTime.IsZero() {
		t.Errorf("the first message is %+v", first)
	}
	for number, option := range map[int]parley.ReceiveOption{8418: parley.FromConversation(parley.UUID{}), 8420: parley.FromGroup(parley.UUID{})} {
		messages, err := parley.Receive(ctx, db, "target", option)
		if got, _ := parley.ErrorNumber(err); got != number {
			t.Errorf("from the zero UUID received %v and %v, want error %d", messages, err, number)
		}
	}
	rest := receive("target", parley.FromConversation(first.ConversationHandle))
	if got := fixture.Bodies(rest); got != "three  all" || rest[1].MessageBody != nil {
		t.Errorf("then received %q", got)
	}
	group := fixture.Must[parley.UUID](t)(parley.GetConversationGroup(ctx, db, "target", parley.Wait(time.Second)))
	if groups := fixture.Must[[]parley.UUID](t)(parley.GetConversationGroups(ctx, db, "target", 5)); len(groups) != 1 || groups[0] != group {
		t.Errorf("got groups %s, want %s", groups, group)
	}
	if got := fixture.Bodies(receive("target", parley.FromGroup(group))); got != "all" {
		t.Errorf("from the other group received %q", got)
	}
	if none := fixture.Must[parley.UUID](t)(parley.GetConversationGroup(ctx, db, "target")); !none.IsZero() {
		t.Errorf("group %s has messages", none)
	}

	reply := first.ConversationHandle
	fixture.RequireNoError(t, parley.Send(ctx, db, reply, parley.DefaultMessageType, nil))
	fixture.RequireNoError(t, parley.BeginConversationTimer(ctx, db, handle, 0))
	fixture.Must[int](t)(parley.FireTimers(ctx, db))
	if messages := receive("initiator"); len(messages) != 2 || !messages[0].IsDialogTimer() || messages[1].MessageBody != nil {
		t.Errorf("the initiator received %+v", messages)
	}
	if status := fixture.Must[string](t)(parley.GetTransmissionStatus(ctx, db, handle)); status != "" {
		t.Errorf("the transmission status is %q", status)
	}
	fixture.RequireNoError(t, parley.MoveConversation(ctx, db, reply, group))

	fixture.RequireNoError(t, parley.EndConversation(ctx, db, reply))
	if messages := receive("initiator"); len(messages) != 1 || !messages[0].IsEndDialog() {
		t.Errorf("the initiator received %+v", messages)
	}
	fixture.RequireNoError(t, parley.EndConversations(ctx, db, []parley.UUID{handle, handle}))
	requireNumber(t, parley.EndConversations(ctx, db, []parley.UUID{other, handle}), parley.ConversationNotFound)
	fixture.RequireNoError(t, parley.EndConversationWithError(ctx, db, other, 42, "no thanks"))
	messages = receive("target")
	if len(messages) != 1 || !messages[0].IsError() {
		t.Fatalf("the target received %+v", messages)
	}
	cause := fixture.Must[*parley.ConversationError](t)(parley.ParseError(messages[0].MessageBody))
	if cause.Code != 42 || cause.Description != "no thanks" {
		t.Errorf("the error is %v", cause)
	}
	fixture.RequireNoError(t, parley.CleanupConversation(ctx, db, messages[0].ConversationHandle))
}

func TestStatementsJoinTheTransaction(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		send(t, tx, beginDialog(t, tx), "never")
		return undo
	})
	fixture.RequireIs(t, err, undo)
	send(t, pool, beginDialog(t, pool), "kept")
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		fixture.Must[[]parley.Message](t)(parley.Receive(t.Context(), tx, "target"))
		return undo
	})
	fixture.RequireIs(t, err, undo)
	if got := fixture.Bodies(fixture.Must[[]parley.Message](t)(parley.Receive(t.Context(), pool, "target"))); got != "kept" {
		t.Errorf("received %q", got)
	}
}

func TestInGroupPutsDialogsTogether(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	group := fixture.Must[parley.UUID](t)(parley.ParseUUID("11111111-2222-3333-4444-555555555555"))
	beginDialog(t, pool, parley.InGroup(group))
	beginDialog(t, pool, parley.InGroup(group))
	n := fixture.Value[int](t, pool, "select count(*) from parley.conversation_endpoints where conversation_group_id = $1", group)
	if n != 2 {
		t.Errorf("%d conversations are in the group", n)
	}
}

func TestErrorsOfTheBrokerCarryTheirNumber(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	ctx := t.Context()
	unknown := fixture.Must[parley.UUID](t)(parley.ParseUUID("11111111-2222-3333-4444-555555555555"))
	handle := beginDialog(t, pool)
	begin := func(from, to string, options ...parley.DialogOption) error {
		_, err := parley.BeginDialog(ctx, pool, from, to, options...)
		return err
	}
	receive := func(queue string) error { _, err := parley.Receive(ctx, pool, queue); return err }
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"dialog from an unknown service":  {begin("nobody", "target"), 8423},
		"dialog on an unknown contract":   {begin("initiator", "target", parley.OnContract("none")), 8425},
		"dialog for no time":              {begin("initiator", "target", parley.WithLifetime(0)), 8411},
		"send of an unknown message type": {parley.Send(ctx, pool, handle, "none", nil), 8428},
		"send on an unknown handle":       {parley.Send(ctx, pool, unknown, parley.DefaultMessageType, nil), parley.ConversationNotFound},
		"send on no handle":               {parley.Send(ctx, pool, parley.UUID{}, parley.DefaultMessageType, nil), 8418},
		"send to one twice":               {parley.SendToAll(ctx, pool, []parley.UUID{handle, handle}, parley.DefaultMessageType, nil), 8451},
		"receive from an unknown queue":   {receive("none"), parley.QueueNotFound},
		"move to an unknown group":        {parley.MoveConversation(ctx, pool, handle, unknown), parley.ConversationGroupNotFound},
		"end of an unknown handle":        {parley.EndConversation(ctx, pool, unknown), parley.ConversationNotFound},
	} {
		requireNumber(t, test.err, test.want)
		brokerError, ok := errors.AsType[*parley.Error](test.err)
		if !ok || brokerError.Message == "" || brokerError.Hint == "" || brokerError.Detail == "" {
			t.Errorf("%s: got %#v", name, brokerError)
		}
		if _, ok := errors.AsType[*pgconn.PgError](test.err); !ok {
			t.Errorf("%s: %v does not wrap what PostgreSQL sent", name, test.err)
		}
	}
}

// A statement in a database without the schema reports it with Service Broker's number.
func TestStatementsWithoutABrokerReportIt(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	requireNumber(t, parley.Send(t.Context(), pool, parley.UUID{1}, parley.DefaultMessageType, nil), parley.NoBroker)
	_, err := parley.Receive(t.Context(), pool, "target")
	requireNumber(t, err, parley.NoBroker)
	if _, ok := errors.AsType[*pgconn.PgError](err); !ok {
		t.Errorf("%v does not wrap what PostgreSQL sent", err)
	}
}

func TestErrorNumberIsOfTheBrokerOnly(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	_, err := pool.Exec(t.Context(), "select 1 / 0")
	for _, err := range []error{nil, errors.New("SB000"), err} {
		if number, ok := parley.ErrorNumber(err); ok {
			t.Errorf("%v has number %d", err, number)
		}
	}
}

func TestEverySQLSTATEOfTheBrokerGivesItsNumber(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	rows, err := pool.Query(t.Context(), "select parley.sqlstate_of(n) from generate_series(1, 46655) as n")
	fixture.RequireNoError(t, err)
	states := fixture.Must[[]string](t)(pgx.CollectRows(rows, pgx.RowTo[string]))
	for i, state := range states {
		if number, ok := parley.ErrorNumber(&pgconn.PgError{Code: state}); !ok || number != i+1 {
			t.Fatalf("SQLSTATE %s gives %d, want %d", state, number, i+1)
		}
	}
	if !slices.Contains(states, "SBZZZ") {
		t.Error("not all states were tried")
	}
}
