package send_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

// ordered defines a port with an order key.
func ordered(f sqltest.Flow, settings string) {
	f.Helper()
	f.SendPort("Line", "line", settings)
}

func publishKey(f sqltest.Flow, key string) int64 {
	f.Helper()
	return sqltest.Value[int64](f.Session, "select parley_flow.publish('x', jsonb_build_object('urn:p#Key', $1::text), 'line')", key)
}

// A failing head holds up its key only: other keys go on, and what comes later stands behind it.
func TestFailingHeadHoldsUpItsKeyOnly(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"retry policy": {"late": {"count": 2, "interval": "1 hour", "jitter": 0}}}')`)
	ordered(f, `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": "late"}`)
	a1, a2 := publishKey(f, "a"), publishKey(f, "a")
	b1 := publishKey(f, "b")
	var heads []sqltest.ClaimedFlow
	for _, m := range f.Tx.ClaimFlow("Send") {
		if m.Message == a1 {
			heads = append(heads, m)
		}
	}
	if got := f.Tx.RetryFlow("Send", heads[0]); got != "HELD HELD" {
		t.Fatal(got)
	}
	sqltest.Equal(f.Session, 1, "select held_keys::integer from parley_flow.send_ports where name = 'Line'")
	a3 := publishKey(f, "a")
	b2 := publishKey(f, "b")
	// The claimed messages of b are still in hand.
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_store.in_hand((select system from parley_flow._p_host where name = 'Send'), array[$1::bigint])", b1)
	f.Exec("update parley_store._p_lease set until = clock_timestamp() - interval '1 s'; select parley_flow.maintain(); delete from parley_flow._p_suspect")
	var got []int64
	for range 3 {
		for _, m := range f.Tx.ClaimFlow("Send") {
			got = append(got, m.Message)
			f.Tx.CompleteFlow("Send", m)
		}
	}
	if !slices.Equal(got, []int64{b1, b2}) {
		t.Fatalf("sent %v, want %v: those of b alone", got, []int64{b1, b2})
	}
	f.Exec("update parley_store._p_lane_state set next_attempt_at = null where next_attempt_at is not null; select parley_store.repair_lanes(overdue => '0')")
	got = nil
	for range 4 {
		for _, m := range f.Tx.ClaimFlow("Send") {
			if m.Message == a1 && m.Attempts != 1 {
				t.Errorf("the head has %d attempts, want 1", m.Attempts)
			}
			got = append(got, m.Message)
			f.Tx.CompleteFlow("Send", m)
		}
	}
	if !slices.Equal(got, []int64{a1, a2, a3}) {
		t.Errorf("sent %v, want %v", got, []int64{a1, a2, a3})
	}
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_held_key")
}

// The head for which a port stopped is terminated alone, with a key or without; what is behind it goes when the port is started.
func TestTerminatingTheHeadForWhichAPortStopped(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"keyed": `"order_key": "urn:p#Key", `, "whole": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sqltest.NewFlow(t)
			ordered(f, `{"ordered": true, `+key+`"retry_policy": "never", "on_failure": "stop"}`)
			first, second := publishKey(f, "a"), publishKey(f, "a")
			for _, m := range f.Tx.ClaimFlow("Send") {
				if m.Message == first {
					f.Tx.RetryFlow("Send", m)
				}
			}
			sqltest.Equal(f.Session, 1, "select parley_flow.terminate_suspended('{\"send_port\": \"Line\"}')")
			f.Exec("select parley_flow.start('Line')")
			got := f.Tx.ClaimFlow("Send")
			if len(got) != 1 || got[0].Message != second {
				t.Errorf("claimed %+v, want %d", got, second)
			}
		})
	}
}

// When the retries of a head are over, its policy says what becomes of its order.
func TestPoliciesOfAHeadThatFailed(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"wait": "HELD", "park": "SUSPENDED", "stop": "STOPPED"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			f := sqltest.NewFlow(t)
			ordered(f, `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": "never", "on_failure": "`+policy+`"}`)
			first, second, other := publishKey(f, "a"), publishKey(f, "a"), publishKey(f, "b")
			claimed := map[int64]sqltest.ClaimedFlow{}
			for _, m := range f.Tx.ClaimFlow("Send") {
				claimed[m.Message] = m
			}
			got := strings.Fields(f.Tx.RetryFlow("Send", claimed[first]))
			if got[0] != want {
				t.Fatalf("got %v, want %s", got, want)
			}
			f.Tx.CompleteFlow("Send", claimed[other])
			switch policy {
			case "park":
				f.Tx.CompleteFlow("Send", claimed[second])
				sqltest.Equal(f.Session, first, "select message_id from parley_flow.suspended")
				sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_held_key")
				return
			case "stop":
				sqltest.Equal(f.Session, "Stopped", "select state from parley_flow.send_ports where name = 'Line'")
				publishKey(f, "c")
				if got := f.Tx.ClaimFlow("Send"); len(got) != 0 {
					t.Errorf("claimed %+v of a port that is stopped", got)
				}
				// The head is suspended, so that an operator can mend or terminate it; the other keys go on with the port.
				sqltest.Equal(f.Session, true, "select holds_up_order from parley_flow.suspended where message_id = $1", first)
				f.Exec("select parley_flow.start('Line')")
				for _, m := range f.Tx.ClaimFlow("Send") {
					if m.Key != "c" {
						t.Errorf("claimed %+v of a key that waits", m)
					}
					f.Tx.CompleteFlow("Send", m)
				}
				f.Exec("select parley_flow.stop('Line')")
				sqltest.Equal(f.Session, 1, "select parley_flow.resume_suspended('{\"order_key\": \"a\"}')")
				if got := f.Tx.ClaimFlow("Send"); len(got) != 0 {
					t.Errorf("claimed %+v of a port that is stopped", got)
				}
				f.Exec("select parley_flow.start('Line')")
			case "wait":
				sqltest.Equal(f.Session, true, "select holds_up_order from parley_flow.suspended where message_id = $1", first)
				publishKey(f, "c")
				for _, m := range f.Tx.ClaimFlow("Send") {
					if m.Key != "c" {
						t.Errorf("claimed %+v of a key that waits", m)
					}
					f.Tx.CompleteFlow("Send", m)
				}
				// Stopping and starting the port does not let the key go.
				f.Exec("select parley_flow.stop('Line'), parley_flow.start('Line')")
				if got := f.Tx.ClaimFlow("Send"); len(got) != 0 {
					t.Errorf("claimed %+v of a key that waits", got)
				}
				sqltest.Equal(f.Session, 1, "select parley_flow.resume_suspended('{\"order_key\": \"a\"}')")
			}
			var sent []int64
			for range 3 {
				for _, m := range f.Tx.ClaimFlow("Send") {
					if m.Key == "a" {
						sent = append(sent, m.Message)
					}
					f.Tx.CompleteFlow("Send", m)
				}
			}
			if !slices.Equal(sent, []int64{first, second}) {
				t.Errorf("sent %v, want %v", sent, []int64{first, second})
			}
		})
	}
}

// Terminating a head lets what is behind it go, and touches none of it; what is resubmitted stands in its place.
func TestOperatorsMoveAHeadAlone(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"terminate", "resubmit"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			f := sqltest.NewFlow(t)
			ordered(f, `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": "never"}`)
			want := []int64{publishKey(f, "a"), publishKey(f, "a"), publishKey(f, "a")}
			head := f.Tx.ClaimFlow("Send")[0]
			f.Tx.RetryFlow("Send", head)
			if action == "terminate" {
				sqltest.Equal(f.Session, 1, "select parley_flow.terminate_suspended('{}')")
				want = want[1:]
			} else {
				want[0] = sqltest.Value[int64](f.Session, "select parley_flow.resubmit(suspension_id, 'new') from parley_flow.suspended")
			}
			var sent []int64
			for range 4 {
				for _, m := range f.Tx.ClaimFlow("Send") {
					sent = append(sent, m.Message)
					f.Tx.CompleteFlow("Send", m)
				}
			}
			if !slices.Equal(sent, want) {
				t.Errorf("sent %v, want %v", sent, want)
			}
			f.Exec("update parley_flow._p_original set kept_until = clock_timestamp() - interval '1 s'")
			f.Exec("select parley_flow.maintain()")
			sqltest.Equal(f.Session, 0, "select (select count(*) from parley_flow._p_held_key)::integer + (select count(*) from parley_flow._p_message)::integer + (select count(*) from parley_flow._p_suspended)::integer")
		})
	}
}

// An ordered port without a key sends one after the other, and its head is tried again before all others.
func TestOrderWithoutAKey(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ordered(f, `{"ordered": true, "retry_policy": "twice"}`)
	first, second := publishKey(f, "a"), publishKey(f, "b")
	claimed := f.Tx.ClaimFlow("Send")
	if len(claimed) != 2 || len(f.Tx.ClaimFlow("Send")) != 0 {
		t.Fatalf("claimed %+v", claimed)
	}
	if got := f.Tx.RetryFlow("Send", claimed[0]); got != "HELD HELD" {
		t.Fatal(got)
	}
	if got := f.Tx.ClaimFlow("Send"); len(got) != 0 {
		t.Fatalf("claimed %+v before the head is due", got)
	}
	f.Exec("update parley_store._p_lane_state set next_attempt_at = null where next_attempt_at is not null; select parley_store.repair_lanes(overdue => '0')")
	claimed = f.Tx.ClaimFlow("Send")
	if len(claimed) != 2 || claimed[0].Message != first || claimed[1].Message != second || claimed[0].Attempts != 1 {
		t.Fatalf("claimed %+v", claimed)
	}
	f.Tx.CompleteFlow("Send", claimed...)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_held_key")
}

// Each key is sent in the order of its publications, whatever is published, claimed, sent, failed, given back, resumed and terminated.
func TestOrderOfKeysModel(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ordered(f, `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": "twice", "on_failure": "wait"}`)
	rapid.Check(t, func(r *rapid.T) {
		expected, inHand := map[string][]int64{}, []sqltest.ClaimedFlow{}
		sendNext := func(m sqltest.ClaimedFlow) {
			if len(expected[m.Key]) == 0 || expected[m.Key][0] != m.Message {
				r.Fatalf("message %d of key %s was to be sent, want first of %v", m.Message, m.Key, expected[m.Key])
			}
		}
		claim := func() {
			f.Exec("update parley_store._p_lane_state set next_attempt_at = null where next_attempt_at is not null; select parley_store.repair_lanes(overdue => '0')")
			inHand = append(inHand, f.Tx.ClaimFlowEach("Send", rapid.IntRange(1, 4).Draw(r, "each"))...)
		}
		drop := func(gone func(sqltest.ClaimedFlow) bool) { inHand = slices.DeleteFunc(inHand, gone) }
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			switch rapid.IntRange(0, 5).Draw(r, "step") {
			case 0, 1:
				key := fmt.Sprint(rapid.IntRange(1, 3).Draw(r, "key"))
				expected[key] = append(expected[key], publishKey(f, key))
			case 2:
				claim()
			case 3, 4:
				if len(inHand) == 0 {
					continue
				}
				m := inHand[0]
				sendNext(m)
				if rapid.Bool().Draw(r, "succeeds") {
					f.Tx.CompleteFlow("Send", m)
					expected[m.Key] = expected[m.Key][1:]
					drop(func(o sqltest.ClaimedFlow) bool { return o == m })
					continue
				}
				f.Tx.RetryFlow("Send", m)
				// A whole lease can be of one key.
				drop(func(o sqltest.ClaimedFlow) bool { return o.Lease == m.Lease && o.Key == m.Key })
			case 5:
				for _, head := range sqltest.Values[int64](f.Session, "select message_id from parley_flow.suspended") {
					if rapid.Bool().Draw(r, "terminate") {
						f.Exec("select parley_flow.terminate_suspended(jsonb_build_object('messages', jsonb_build_array($1::bigint)))", head)
						for key, ids := range expected {
							expected[key] = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id == head })
						}
					}
				}
				f.Exec("select parley_flow.resume_suspended('{}')")
			}
		}
		for range 200 {
			f.Exec("select parley_flow.resume_suspended('{}')")
			claim()
			for _, m := range inHand {
				sendNext(m)
				f.Tx.CompleteFlow("Send", m)
				expected[m.Key] = expected[m.Key][1:]
			}
			inHand = inHand[:0]
			if sqltest.Value[int](f.Session, "select count(*)::integer from parley_flow._p_message") == 0 {
				break
			}
		}
		for key, left := range expected {
			if len(left) > 0 {
				r.Fatalf("of key %s %v were never sent", key, left)
			}
		}
	})
}

// A key of which an operator has resumed or terminated the head waits for nobody any more: it goes on, also when its port is stopped and
// started before a host comes for it.
func TestAKeyWhoseHeadIsDecidedAboutWaitsForNobody(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for n, operation := range []string{"resume_suspended", "terminate_suspended"} {
		name := fmt.Sprintf("Line %d", n)
		f.SendPort(name, name, `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": "never"}`)
		publish := func() int64 {
			return sqltest.Value[int64](f.Session, "select parley_flow.publish('x', '{\"urn:p#Key\": \"a\"}', $1)", name)
		}
		want := []int64{publish(), publish()}
		claimed := f.Tx.ClaimFlow("Send")
		if got := f.Tx.RetryFlow("Send", claimed[0]); got != "HELD HELD" {
			t.Fatal(got)
		}
		const waits = "select count(*)::integer from parley_flow._p_held_key where is_waiting"
		sqltest.Equal(f.Session, 1, waits)
		sqltest.Equal(f.Session, 1, "select parley_flow."+operation+"(jsonb_build_object('send_port', $1::text))", name)
		sqltest.Equal(f.Session, 0, waits)
		if operation == "terminate_suspended" {
			want = want[1:]
		}
		f.Exec("select parley_flow.stop($1)", name)
		f.Exec("select parley_flow.start($1)", name)
		var got []int64
		for range 3 {
			for _, m := range f.Tx.ClaimFlow("Send") {
				got = append(got, m.Message)
				f.Tx.CompleteFlow("Send", m)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %s, stop and start, %v were sent, not %v", operation, got, want)
		}
	}
}

// Failures of a head are over when it is sent: the message behind it has all its retries, as if no other had failed before it.
func TestTheNextHeadOfAKeyHasAllItsRetries(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"retry policy": {"late": {"count": 2, "interval": "1 hour", "jitter": 0}}}')`)
	ordered(f, `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": "late"}`)
	first, second := publishKey(f, "a"), publishKey(f, "a")
	// fails has the head fail, and lets the time of its next attempt come.
	fails := func(head sqltest.ClaimedFlow) {
		if got := f.Tx.RetryFlow("Send", head); !strings.HasPrefix(got, "HELD") {
			t.Fatal(got)
		}
		f.Exec("update parley_store._p_lane_state set next_attempt_at = null where next_attempt_at is not null; select parley_store.repair_lanes(overdue => '0')")
	}
	fails(f.Tx.ClaimFlow("Send")[0])
	fails(f.Tx.ClaimFlow("Send")[0])
	claimed := f.Tx.ClaimFlow("Send")
	if len(claimed) != 2 || claimed[0].Message != first || claimed[0].Attempts != 2 {
		t.Fatalf("claimed %+v", claimed)
	}
	f.Tx.CompleteFlow("Send", claimed[0])
	next := claimed[1]
	for range 2 {
		fails(next)
		next = f.Tx.ClaimFlow("Send")[0]
	}
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_suspended")
	fails(next)
	sqltest.Equal(f.Session, second, "select message_id from parley_flow._p_suspended where attempts = 3")
}
