package subscriptions_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Operators may give a port any states. A message that is published while the port is enlisted is sent once, in order, while it is started.
// A message that is published while it is bound is suspended, and resumed when it is enlisted.
func TestStatesOfPortsModel(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for name, settings := range map[string]string{"Plain": "{}", "Keyed": `{"ordered": true, "order_key": "urn:p#Key"}`} {
		f.SendPort(name, name, settings)
		rapid.Check(t, func(r *rapid.T) {
			state := "Started"
			f.Exec("select parley_flow.start($1)", name)
			var waiting, unrouted []int64
			next := map[string]string{"start": "Started", "stop": "Stopped", "unenlist": "Bound", "enlist": "Stopped"}
			for range rapid.IntRange(1, 15).Draw(r, "steps") {
				switch step := rapid.SampledFrom([]string{"start", "stop", "unenlist", "enlist", "publish", "publish", "claim", "resume"}).Draw(r, "step"); step {
				case "publish":
					id := f.PublishFlow(name, `{"urn:p#Key": "a"}`)
					if state == "Bound" {
						unrouted = append(unrouted, id)
					} else {
						waiting = append(waiting, id)
					}
				case "resume":
					f.Exec("select parley_flow.resume_suspended('{}')")
					if state != "Bound" {
						waiting, unrouted = append(waiting, unrouted...), nil
					}
				case "claim":
					var sent []int64
					for _, m := range f.Tx.ClaimFlow("Send") {
						sent = append(sent, m.Message)
						f.Tx.CompleteFlow("Send", m)
					}
					if state != "Started" && len(sent) > 0 {
						r.Fatalf("a port that is %s sent %v", state, sent)
					} else if state == "Started" && !slices.Equal(sent, waiting) {
						r.Fatalf("sent %v, want %v", sent, waiting)
					} else if state == "Started" {
						waiting = nil
					}
				default:
					changes := next[step] != state && (step != "enlist" || state == "Bound")
					if got := sqltest.Value[bool](f.Session, "select parley_flow."+step+"($1)", name); got != changes {
						r.Fatalf("%s of a port that is %s reports %v", step, state, got)
					}
					if changes {
						state = next[step]
					}
				}
				sqltest.Equal(f.Session, len(unrouted), "select count(*)::integer from parley_flow.suspended")
			}
			f.Exec("select parley_flow.start($1), parley_flow.resume_suspended('{}')", name)
			for range 3 {
				for _, m := range f.Tx.ClaimFlow("Send") {
					f.Tx.CompleteFlow("Send", m)
				}
			}
			sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message")
		})
	}
}
