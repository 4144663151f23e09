package parley_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// The sender has nothing left to end, and the bytes arrive as they were.
func TestSendAndEndSendsBytesAndEnds(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	ctx := t.Context()
	fixture.Execute(t, pool, "select parley.create_queue('web'), parley.create_queue('shop')")
	fixture.Execute(t, pool, "select parley.create_service('Web', 'web'), parley.create_service('Shop', 'shop', array['DEFAULT'])")
	handle, err := parley.SendAndEnd(ctx, pool, "Web", "Shop", parley.DefaultMessageType, []byte{0, 255}, parley.WithoutEncryption())
	if err != nil {
		t.Fatal(err)
	}
	if err := parley.EndConversation(ctx, pool, handle); err == nil {
		t.Error("the conversation could be ended again")
	}
	got, err := parley.Receive(ctx, pool, "shop", parley.Top(5))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got[0].MessageBody) != "\x00\xff" || !got[1].IsEndDialog() {
		t.Errorf("received %+v", got)
	}
	_, err = parley.SendAndEnd(ctx, pool, "Nobody", "Shop", parley.DefaultMessageType, nil)
	if number, _ := parley.ErrorNumber(err); number != 8423 {
		t.Errorf("error %v, want 8423", err)
	}
}

func TestBeginAndSendLeavesAnOpenConversation(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	ctx := t.Context()
	fixture.Execute(t, pool, "select parley.create_queue('web'), parley.create_queue('shop')")
	fixture.Execute(t, pool, "select parley.create_service('Web', 'web'), parley.create_service('Shop', 'shop', array['DEFAULT'])")
	handle, err := parley.BeginAndSend(ctx, pool, "Web", "Shop", parley.DefaultMessageType, []byte{0, 255}, parley.WithLifetime(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := parley.Send(ctx, pool, handle, parley.DefaultMessageType, []byte("more")); err != nil {
		t.Fatal(err)
	}
	got, err := parley.Receive(ctx, pool, "shop", parley.Top(5))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got[0].MessageBody) != "\x00\xff" || string(got[1].MessageBody) != "more" {
		t.Errorf("received %+v", got)
	}
	_, err = parley.BeginAndSend(ctx, pool, "Nobody", "Shop", parley.DefaultMessageType, nil)
	if number, _ := parley.ErrorNumber(err); number != 8423 {
		t.Errorf("error %v, want 8423", err)
	}
}
