package parley_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

func TestGetConversationTakesItsOptions(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	ctx := t.Context()
	handleOf := func(options ...parley.PoolOption) parley.UUID {
		t.Helper()
		handle := fixture.Must[parley.UUID](t)(parley.GetConversation(ctx, pool, "initiator", "target", options...))
		fixture.RequireNoError(t, parley.Send(ctx, pool, handle, parley.DefaultMessageType, []byte("x")))
		return handle
	}
	first := handleOf(parley.ForKey("k"))
	if handleOf(parley.ForKey("k")) != first || handleOf(parley.ForKey("other")) == first {
		t.Error("a key does not name its conversation")
	}
	if handleOf(parley.ForKey("k"), parley.PoolDialog(parley.WithoutEncryption())) == first {
		t.Error("encryption does not distinguish conversations")
	}
	fixture.Must[[]parley.Message](t)(parley.Receive(ctx, pool, "target"))
	if handleOf(parley.ForKey("k"), parley.ReplacedAfter(0, 1)) == first {
		t.Error("it was not replaced after a message")
	}
	if begun := fixture.Must[int](t)(parley.WarmConversations(ctx, pool, "initiator", "target", parley.OverConversations(2))); begun != 2 {
		t.Errorf("began %d, want 2", begun)
	}
	pooled := fixture.Must[[]operate.PooledConversation](t)(operate.ReadPooledConversations(ctx, pool, 0))
	if len(pooled) != 6 || pooled[0].ConversationHandle != first || *pooled[0].Key != "k" || pooled[0].FromService != "initiator" || pooled[5].Key != nil {
		t.Errorf("read %+v", pooled)
	}
	if _, err := parley.GetConversation(ctx, pool, "initiator", "target", parley.PoolDialog(parley.WithLifetime(time.Hour))); err == nil {
		t.Error("a lifetime was not refused")
	}
	if _, err := parley.WarmConversations(ctx, pool, "initiator", "target", parley.ForKey("k")); err == nil {
		t.Error("a key was not refused")
	}
}
