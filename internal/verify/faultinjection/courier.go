package faultinjection

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Fault is something that a [Courier] does to a delivery.
type Fault string

// The faults.
const (
	// Lose delivers nothing to the far side. Mute delivers, and loses the answer. Both return an error.
	Lose Fault = "lose"
	Mute Fault = "mute"
	// Late returns an error at once, and delivers when others have overtaken it.
	Late Fault = "late"
	// Repeat delivers two or three times, one after the other, and returns one of the answers. Race does so at the same time.
	Repeat Fault = "repeat"
	Race   Fault = "race"
	// Shuffle turns over the order of the runs, within conversations too.
	Shuffle Fault = "shuffle"
	// Truncate delivers only the beginning of the batch, and returns an error.
	Truncate Fault = "truncate"
	// Echo delivers something old again, as it was, before it delivers. Stale does so with an epoch or a term that is over, and Forge with
	// another token. Their answers go to OnFaultAnswer.
	Echo  Fault = "echo"
	Stale Fault = "stale"
	Forge Fault = "forge"
)

// Faults lists all of them.
func Faults() []Fault {
	return []Fault{Lose, Mute, Late, Repeat, Race, Shuffle, Truncate, Echo, Stale, Forge}
}

// errFault is the sender's error for a delivery whose outcome is unknown.
var errFault = errors.New("the courier knows nothing of it")

// rememberedMost bounds what a courier can echo.
const rememberedMost = 64

// Courier is a transport.Deliverer that treats badly what it is given. Close it.
type Courier struct {
	// Next does the deliveries.
	Next transport.Deliverer
	// Chance is how often something is done to a delivery, from 0 to 1, and Faults is what; all of them when empty.
	Chance float64
	Faults []Fault
	// OnFaultAnswer receives what the far side answered to what it must not accept; it may be nil.
	OnFaultAnswer func(fault Fault, batch transport.Batch, results []transportstore.Result, err error)

	mu         sync.Mutex
	random     *rand.Rand
	counts     map[Fault]int
	remembered []transport.Batch
	late       []func()
	running    sync.WaitGroup
	isClosed   bool
}

// NewCourier makes a courier whose deeds follow from a seed, as far as the order of calls does.
func NewCourier(next transport.Deliverer, chance float64, seed uint64, faults ...Fault) *Courier {
	if len(faults) == 0 {
		faults = Faults()
	}
	return &Courier{
		Next: next, Chance: chance, Faults: faults, random: rand.New(rand.NewPCG(seed, 0)), counts: map[Fault]int{},
	}
}

// Counts reports how often each fault was done.
func (c *Courier) Counts() map[Fault]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Close delivers what is late, unless ctx ends before, and waits for it. Batches that are delivered after it are treated well.
func (c *Courier) Close(ctx context.Context) {
	c.mu.Lock()
	c.isClosed = true
	late := c.late
	c.late = nil
	c.mu.Unlock()
	for _, deliver := range late {
		if ctx.Err() == nil {
			deliver()
		}
	}
	c.running.Wait()
}

// fate decides what happens to a delivery: "" for nothing.
func (c *Courier) fate(among []Fault) Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed || c.random.Float64() >= c.Chance {
		return ""
	}
	fault := c.Faults[c.random.IntN(len(c.Faults))]
	if !slices.Contains(among, fault) {
		return ""
	}
	c.counts[fault]++
	return fault
}

func (c *Courier) number(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// postpone keeps a delivery until two more have passed, or Close.
func (c *Courier) postpone(deliver func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, deliver)
}

// release lets deliveries go that were overtaken.
func (c *Courier) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.late) > 2 {
		deliver := c.late[0]
		c.late = c.late[1:]
		c.running.Go(deliver)
	}
}

// old picks a batch from the past.
func (c *Courier) old() (transport.Batch, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.remembered) == 0 {
		return transport.Batch{}, false
	}
	return c.remembered[c.random.IntN(len(c.remembered))], true
}

func (c *Courier) remember(batch transport.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.remembered) < rememberedMost {
		c.remembered = append(c.remembered, copied(batch))
	} else {
		c.remembered[c.random.IntN(rememberedMost)] = copied(batch)
	}
}

// copied lets a batch be kept after the call that brought it.
func copied(batch transport.Batch) transport.Batch {
	batch.Runs = slices.Clone(batch.Runs)
	for i := range batch.Runs {
		batch.Runs[i].Bodies = slices.Clone(batch.Runs[i].Bodies)
		for j, body := range batch.Runs[i].Bodies {
			batch.Runs[i].Bodies[j] = slices.Clone(body)
		}
		batch.Runs[i].Security = slices.Clone(batch.Runs[i].Security)
	}
	return batch
}
