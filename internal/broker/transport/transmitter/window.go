package transmitter

import (
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// window holds the runs of a destination in transit and in memory: for each conversation, in the order of their numbers, the runs that the
// far side has not acknowledged. A conversation travels in one batch at a time: what came later would overtake what came before, and be
// answered with Expected. Meanwhile its runs gather here, and fill the next batch the better.
type window struct {
	conversations map[key]*conversation
	// ready have something to send, and nothing on its way; the one that has waited longest stands first. Those that go on with a
	// large message stand in large.
	ready, large []*conversation
	// later are those that could not be taken just then, because somebody was at them.
	later []*conversation
	rows  int
	bytes int64
	// targets are the brokers behind the address that something here is for.
	targets map[target]*traffic
	// left are the conversations that are left alone until everything is read again.
	left map[key]bool
	// hasProbed reports that conversations were compared with their far sides: what they have in transit has to be read again.
	hasProbed bool
}

// key names a conversation. Errors that the broker made, and probes, stand outside of its order.
type key struct {
	endpointID          int64
	unsequenced, probes bool
}

type conversation struct {
	key     key
	runs    []transportstore.Run
	traffic *traffic
	// travels is how many of the runs are on their way.
	travels int
	isReady bool
	// retries counts answers one after the other that took us no further.
	retries int
	at      time.Time // not before, unless zero
}

// piece is a run as it travels: one or more runs of a conversation, merged.
type piece struct {
	conversation *conversation
	run          transportstore.Run
}

// retriesMax is how often a conversation may be answered Expected without getting further before it is left alone for a while.
const retriesMax = 3

func newWindow() *window {
	return &window{conversations: map[key]*conversation{}, left: map[key]bool{}, targets: map[target]*traffic{}}
}

// add takes in runs that are in transit.
func (w *window) add(runs []transportstore.Run) {
	for _, run := range runs {
		k := key{endpointID: run.EndpointID, unsequenced: run.FirstSequence == transportstore.Unsequenced, probes: run.Probe != nil}
		if w.left[k] {
			continue
		}
		c := w.conversations[k]
		if c == nil {
			c = &conversation{key: k, traffic: w.trafficTo(run)}
			w.conversations[k] = c
		}
		c.runs = append(c.runs, run)
		w.rows++
		w.bytes += weight(run)
		c.traffic.rows++
		c.traffic.bytes += weight(run)
		w.offer(c)
	}
}

// offer lets a conversation travel that has something to send.
func (w *window) offer(c *conversation) {
	switch {
	case c.travels > 0 || len(c.runs) == 0 || c.isReady || !c.at.IsZero():
		return
	case isLarge(c.runs[0]):
		w.large = append(w.large, c)
	default:
		w.ready = append(w.ready, c)
	}
	c.isReady = true
}

// compose takes out of the window what travels next, to one target: conversations in the order in which they have become ready, as
// far as the limits allow.
func (w *window) compose(rowsMax int, bytesMax int64, now time.Time) (pieces []piece) {
	rows, size := 0, int64(0)
	var to *traffic
	left := w.ready[:0]
	for i, c := range w.ready {
		if rows >= rowsMax || size >= bytesMax {
			left = append(left, w.ready[i:]...)
			break
		}
		if len(c.runs) == 0 { // forgotten meanwhile
			c.isReady = false
			continue
		}
		if to == nil && c.traffic.batches < batchesMax && !c.traffic.isLate(now) {
			to = c.traffic
		}
		if c.traffic != to {
			left = append(left, c)
			continue
		}
		c.isReady = false
		for c.travels < len(c.runs) && !isLarge(c.runs[c.travels]) && rows < rowsMax && size < bytesMax {
			run, count := merge(c.runs[c.travels:])
			pieces = append(pieces, piece{conversation: c, run: run})
			c.travels += count
			rows++
			size += weight(run)
		}
	}
	clear(w.ready[len(left):])
	w.ready = left
	if to != nil {
		to.depart(false, now)
	}
	return pieces
}

// composeLarge takes out a large message.
func (w *window) composeLarge(now time.Time) (large piece, found bool) {
	most := w.largeMost()
	i := slices.IndexFunc(w.large, func(c *conversation) bool { return c.traffic.large < most })
	if i < 0 {
		return piece{}, false
	}
	c := w.large[i]
	w.large = slices.Delete(w.large, i, i+1)
	c.isReady, c.travels = false, 1
	c.traffic.depart(true, now)
	return piece{conversation: c, run: c.runs[0]}, true
}

// answer takes in the results for a batch, and gives those that the database has to know of. A run that is not acknowledged travels again,
// or is forgotten here where the database decides when it may.
func (w *window) answer(
	pieces []piece, results []transportstore.Result, now time.Time,
) (acknowledgements []transportstore.Acknowledgement, isSuperseded bool) {
	for i := 0; i < len(pieces); {
		c := pieces[i].conversation
		c.travels = 0
		// Of those that were accepted the last one says all, from the first one on; of the others the first one does.
		var accepted, refused *transportstore.Acknowledgement
		for ; i < len(pieces) && pieces[i].conversation == c; i++ {
			result := &transportstore.Acknowledgement{
				EndpointID: c.key.endpointID, FirstSequence: pieces[i].run.FirstSequence, IsAlone: true, IsProbe: c.key.probes, Result: results[i],
			}
			switch {
			case results[i].Outcome == transportstore.Superseded:
				isSuperseded = true
			case refused != nil:
			case results[i].Outcome == transportstore.Accepted:
				if accepted != nil {
					result.FirstSequence = accepted.FirstSequence // it stands for those before it too
				}
				accepted = result
			default:
				refused = result
			}
		}
		for _, result := range []*transportstore.Acknowledgement{accepted, refused} {
			if result != nil && w.settle(c, result.Result) {
				acknowledgements = append(acknowledgements, *result)
			}
		}
		if c.retries > 0 && len(c.runs) > 0 {
			w.later = append(w.later, c)
			c.at = now.Add(backoff.Conversation.Pause(c.retries))
			continue
		}
		w.offer(c)
	}
	return acknowledgements, isSuperseded
}

// recall offers the conversations again that are due, and returns when the next one is: zero when there is none.
func (w *window) recall(now time.Time) (next time.Time) {
	waiting := w.later
	w.later = w.later[:0]
	for _, c := range waiting {
		switch {
		case len(c.runs) == 0:
		case c.at.After(now):
			w.later = append(w.later, c)
			if next.IsZero() || c.at.Before(next) {
				next = c.at
			}
		default:
			c.at = time.Time{}
			w.offer(c)
		}
	}
	return next
}

// settle moves a conversation on by a result, and reports whether the database has to know of it.
func (w *window) settle(c *conversation, result transportstore.Result) (isNews bool) {
	isBusy := result.Outcome == transportstore.Held && result.ErrorNumber == 0
	switch {
	case len(c.runs) == 0:
		return true
	case isBusy:
		c.retries++
		return false
	case c.key.probes:
		w.forget(c)
		switch result.Outcome {
		case transportstore.Accepted, transportstore.Refused, transportstore.Gone:
			w.hasProbed = true
		default:
			w.left[c.key] = true
		}
		return true
	case result.Outcome != transportstore.Accepted && result.Outcome != transportstore.Expected:
		w.forget(c)
		return true
	case c.key.unsequenced:
		// Nothing has a number here: what was accepted is the first one.
		w.drop(c, 1)
		return true
	}
	done := 0
	for done < len(c.runs) && next(c.runs[done]) <= result.Next {
		done++
	}
	isBehind := result.Outcome == transportstore.Expected && result.Next < c.runs[0].FirstSequence
	w.drop(c, done)
	switch {
	case isBehind:
		// It expects what we no longer have. The database knows whether that ever was.
		w.forget(c)
		w.left[c.key] = true
		return true
	case done > 0:
		c.retries = 0
		return true
	}
	c.retries++
	if c.retries >= retriesMax {
		w.forget(c)
		w.left[c.key] = true
	}
	return result.Outcome == transportstore.Accepted
}

// release takes back that pieces travel: what became of them is not known.
func (w *window) release(pieces []piece) {
	for _, p := range pieces {
		p.conversation.travels = 0
		w.offer(p.conversation)
	}
}

// drop removes the first runs of a conversation.
func (w *window) drop(c *conversation, count int) {
	for _, run := range c.runs[:count] {
		w.rows--
		w.bytes -= weight(run)
		c.traffic.rows--
		c.traffic.bytes -= weight(run)
	}
	w.forgetIdle(c.traffic)
	clear(c.runs[:count])
	c.runs = c.runs[count:]
	if len(c.runs) == 0 {
		delete(w.conversations, c.key)
	}
}

// forget removes a conversation; what it has in transit stays in the database.
func (w *window) forget(c *conversation) {
	w.drop(c, len(c.runs))
}
