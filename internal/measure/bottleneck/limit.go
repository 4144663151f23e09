package bottleneck

import (
	"fmt"
	"slices"
	"strings"
)

// The shares from which on something is a limit.
const (
	// unbalanced is how much more may go in than comes out.
	unbalanced = 1.1
	// large is a share of the time of all sessions.
	large = 0.30
	// missed is the share of blocks that were not in the buffers.
	missed = 0.05
	// idle is the share of the time in which sessions wait for their client from which on the server is not what limits.
	idle = 0.60
	// full is the part of the processors that are busy.
	full = 0.90
	// busy is the part of the time from which on a back end has no more to give.
	busy = 0.50
)

// Conclude fills in Limit and Others: it walks balance, then what sessions wait for, then the machine, and takes the first that is large.
func (a *Analysis) Conclude() {
	found := slices.Concat(a.balance(), a.snapshot(), a.waiting(), a.machine())
	if len(found) == 0 {
		found = []Finding{{
			Kind: Nothing, Sentence: "Nothing stands out: no wait has " + percent(large) + " of the sessions' time.",
			Change: Change{Text: "more sessions", Setting: SettingSessions},
		}}
	}
	a.Limit, a.Others = found[0], found[1:]
	if len(a.Others) > 2 {
		a.Others = a.Others[:2]
	}
	if a.Others == nil {
		a.Others = []Finding{}
	}
}

// balance is level 1: what goes in has to come out.
func (a *Analysis) balance() (found []Finding) {
	b := a.Balance
	if !b.isUneven() {
		return nil
	}
	rates := fmt.Sprintf("%.0f messages a second go in and %.0f come out", b.In, b.Out)
	if b.IsBackEnd() {
		return []Finding{{
			Kind: BackEnd,
			Sentence: fmt.Sprintf("Back end: %s; it takes %.1f ms for a message; a faster back end or more connections to it help.", rates,
				b.BackEndMS),
			Change: Change{Text: "more connections to the back end", Setting: SettingWorkers},
		}}
	}
	return []Finding{{
		Kind:     Backlog,
		Sentence: fmt.Sprintf("Readers: %s, and %.0f wait; more readers or larger batches of them help.", rates, b.Backlog),
		Change:   Change{Text: "more readers", Setting: SettingReaders},
	}}
}

// isUneven reports whether more goes in than comes out. A run of which nothing came out is uneven, too.
func (b Balance) isUneven() bool { return b.In > unbalanced*b.Out }

// IsBackEnd reports whether the far side is what messages wait for.
func (b Balance) IsBackEnd() bool { return b.isUneven() && b.BackEndBusy >= busy }

// The dead rows, and their number beside each live one, from which on an old snapshot is what limits.
const (
	manyDead   = 10_000
	deadToLive = 1.0
	oldFor     = 0.5 // of the time that was measured
)

// snapshot names the oldest holder of dead rows, where there are many: all else that is seen then follows from that.
func (a *Analysis) snapshot() []Finding {
	if len(a.Horizon) == 0 {
		return nil
	}
	var most Table
	for _, t := range a.Tables {
		if t.Dead > most.Dead {
			most = t
		}
	}
	oldest := a.Horizon[0]
	if most.Dead < manyDead || most.Dead < deadToLive*most.Live || oldest.Seconds > 0 && oldest.Seconds < oldFor*a.Seconds {
		return nil
	}
	age := fmt.Sprintf("%.0f transactions old", oldest.Transactions)
	if oldest.Seconds > 0 {
		age = fmt.Sprintf("%.0f s old", oldest.Seconds)
	}
	return []Finding{{
		Kind: Snapshot,
		Sentence: fmt.Sprintf("Old snapshot: %s %s is %s, so that %.0f dead rows of %s stay beside %.0f live ones; its end helps.", oldest.Kind,
			oldest.Name, age, most.Dead, most.Name, most.Live),
		Change: Change{Text: "the same without the " + oldest.Kind},
	}}
}

// waiting is level 3: what the sessions wait for, the largest first.
func (a *Analysis) waiting() (found []Finding) {
	type candidate struct {
		share float64
		find  func(share float64) Finding
	}
	var candidates []candidate
	of := func(kind func(Wait) bool, find func(share float64) Finding) {
		candidates = append(candidates, candidate{a.share(kind), find})
	}
	of(isWAL, a.wal)
	of(isLock, a.lock)
	of(isReplica, func(share float64) Finding {
		return Finding{
			Replica, fmt.Sprintf("Replica: %s of the sessions' time waits for a synchronous standby; a nearer standby or larger batches "+
				"help.", percent(share)),
			Change{"larger batches", SettingBatch},
		}
	})
	of(isContention, a.contention)
	of(isBuffers, a.buffers)
	if ratio := a.missRatio(); ratio >= missed {
		candidates = append(candidates, candidate{large + ratio, func(float64) Finding { return a.buffers(a.share(isBuffers)) }})
	}
	slices.SortStableFunc(candidates, func(x, y candidate) int {
		switch {
		case x.share > y.share:
			return -1
		case x.share < y.share:
			return 1
		}
		return 0
	})
	seen := map[string]bool{}
	for _, c := range candidates {
		if c.share < large {
			continue
		}
		if f := c.find(c.share); !seen[f.Kind] {
			seen[f.Kind] = true
			found = append(found, f)
		}
	}
	return found
}

// machine is the processor, and the client where nothing in the server waits.
func (a *Analysis) machine() (found []Finding) {
	client, work := a.share(isClient), a.share(isProcessor)
	processor := Finding{
		Processor, fmt.Sprintf("Processor: %s of the sessions' time is work that waits for nothing%s; fewer statements a message, as "+
			"larger batches, "+
			"or more processors help.", percent(work), a.processors()),
		Change{"larger batches", SettingBatch},
	}
	if client >= idle {
		f := Finding{
			Client, fmt.Sprintf("Client: sessions wait %s of their time for the client%s; more sessions, fewer round trips or a faster "+
				"client help.",
				percent(client), a.processors()),
			Change{"more sessions", SettingSessions},
		}
		found = append(found, f)
	}
	if work >= large || len(found) == 0 && a.System.IsSeen && a.System.Busy >= full {
		found = append(found, processor)
	}
	return found
}

func (a *Analysis) wal(share float64) Finding {
	storage := ""
	if a.SyncMicroseconds > 0 {
		storage = fmt.Sprintf("; a sync takes %.0f microseconds", a.SyncMicroseconds)
	}
	full := ""
	if n := a.Counters["wal.wal_buffers_full"]; n > 0 {
		full = fmt.Sprintf(", WAL buffers were full %.0f times", n)
	}
	return Finding{
		WAL, fmt.Sprintf("WAL flush: %s of the sessions' time%s%s; faster storage or larger batches help.", percent(share), storage, full),
		Change{"larger batches", SettingBatch},
	}
}

func (a *Analysis) lock(share float64) Finding {
	object, most := "", 0.0
	for _, w := range a.Waits {
		if isLock(w) && w.Object != "" && w.Share > most {
			object, most = w.Object, w.Share
		}
	}
	if object == notifying {
		return Finding{
			Lock, fmt.Sprintf("Lock on %s: %s of the sessions' time; commits that notify wait for one another; fewer sessions or larger batches "+
				"help.", object, percent(share)),
			Change{"larger batches", SettingBatch},
		}
	}
	on := ""
	if object != "" {
		on = " on " + object
	}
	return Finding{
		Lock, fmt.Sprintf("Lock%s: %s of the sessions' time waits for another session; shorter transactions or work on more rows help.",
			on, percent(share)),
		Change{"work spread over more rows", SettingRows},
	}
}

func (a *Analysis) contention(share float64) Finding {
	return Finding{
		Contention, fmt.Sprintf("Contention: %s of the sessions' time waits for %s in shared memory; fewer sessions or larger batches help.",
			percent(share), a.largest(isContention)),
		Change{"larger batches", SettingBatch},
	}
}

func (a *Analysis) buffers(share float64) Finding {
	return Finding{
		Buffers, fmt.Sprintf("Buffers: %s of the blocks were not in shared_buffers, and %s of the sessions' time waits for files; "+
			"a larger shared_buffers helps.", percent(a.missRatio()), percent(share)),
		Change{Text: "a larger shared_buffers (a setting of the server)"},
	}
}

// missRatio is the part of the blocks that were asked for and not in the buffers.
func (a *Analysis) missRatio() float64 {
	read, hit := a.Counters["database.blks_read"], a.Counters["database.blks_hit"]
	if read+hit < leastBlocks {
		return 0
	}
	return read / (read + hit)
}

// leastBlocks are too few for a ratio.
const leastBlocks = 1000

func (a *Analysis) processors() string {
	s := a.System
	if !s.IsSeen {
		return ""
	}
	others := max(0, s.Busy-s.Client-s.Servers)
	text := fmt.Sprintf("; the processors are %s busy", percent(s.Busy))
	if others >= 0.1 {
		text += ", " + percent(others) + " with other programs"
	}
	return text
}

func (a *Analysis) share(is func(Wait) bool) (sum float64) {
	for _, w := range a.Waits {
		if is(w) {
			sum += w.Share
		}
	}
	return sum
}

func (a *Analysis) largest(is func(Wait) bool) string {
	name, most := "", 0.0
	for _, w := range a.Waits {
		if is(w) && w.Share > most {
			name, most = w.Event, w.Share
		}
	}
	return name
}

func isProcessor(w Wait) bool { return w.Event == working }
func isClient(w Wait) bool    { return strings.HasPrefix(w.Event, "Client:") }
func isLock(w Wait) bool      { return strings.HasPrefix(w.Event, "Lock:") && w.Event != "Lock:extend" }
func isReplica(w Wait) bool   { return w.Event == "IPC:SyncRep" }

func isWAL(w Wait) bool {
	kind, name, _ := strings.Cut(w.Event, ":")
	return kind != "Client" && strings.HasPrefix(strings.ToUpper(name), "WAL") || w.Event == "Timeout:CommitDelay"
}

func isBuffers(w Wait) bool {
	return !isWAL(w) && (strings.HasPrefix(w.Event, "IO:") || w.Event == "LWLock:BufferMapping" || w.Event == "LWLock:BufferIO" ||
		w.Event == "IPC:BufferIO")
}

func isContention(w Wait) bool {
	return strings.HasPrefix(w.Event, "LWLock:") && !isWAL(w) && !isBuffers(w) || strings.HasPrefix(w.Event, "BufferPin:") ||
		w.Event == "Lock:extend"
}

func percent(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) }
