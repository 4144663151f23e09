package sustain_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/sustain"
)

// server is a model: it works off what waits, in steps of a hundredth of a second, and no time passes in a test.
type server struct {
	capacity float64                  // messages a second
	noise    float64                  // part of the capacity by which a step may lie above or below
	slowed   func(at float64) float64 // the part of the capacity that is there at a second
	knee     float64                  // messages that wait, from which on half of the capacity is left
	refuses  float64                  // messages that wait, from which on none is taken in; 0 for never

	random  *rand.Rand
	now     float64
	waiting float64
	offers  int
}

const tick = 0.01

// work passes one step, in which so many messages come, and gives how many are taken in.
func (s *server) work(come float64) (taken float64) {
	if s.refuses == 0 || s.waiting < s.refuses {
		taken = come
	}
	capacity := s.capacity * (1 + s.noise*(2*s.random.Float64()-1))
	if s.slowed != nil {
		capacity *= s.slowed(s.now)
	}
	if s.knee > 0 && s.waiting > s.knee {
		capacity /= 2
	}
	s.waiting += taken
	done := min(s.waiting, capacity*tick)
	s.waiting -= done
	s.now += tick
	return taken
}

func (s *server) offer(_ context.Context, _ string, rate float64, span time.Duration, drains bool) (sustain.Load, error) {
	s.offers++
	load := sustain.Load{Asked: rate, Span: span, Rest: 20}
	steps := int(span.Seconds() / tick)
	for i := range steps {
		load.Offered += s.work(rate*tick) / span.Seconds()
		if i%(steps/60) == 0 {
			load.Depths = append(load.Depths, s.waiting)
		}
	}
	begun := s.now
	for drains && s.waiting > 0 {
		s.work(0)
		if s.now-begun > 1e5 {
			return load, fmt.Errorf("%.0f messages wait for ever", s.waiting)
		}
	}
	load.Recovery = time.Duration((s.now - begun) * float64(time.Second))
	return load, nil
}

const (
	step = 12 * time.Second
	hold = 2 * time.Minute
)

// A search from a guess that is half, and one that is three times of what a server does, end close below it.
func TestSearchEndsCloseBelowWhatAServerSustains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server server
		least  float64 // of the capacity
	}{
		"steady":                       {server{capacity: 1000}, 0.93},
		"slow":                         {server{capacity: 7}, 0.85},
		"noisy":                        {server{capacity: 2000, noise: 0.5}, 0.90},
		"with a knee":                  {server{capacity: 1500, knee: 300}, 0.88},
		"that refuses when it is full": {server{capacity: 1000, refuses: 500}, 0.90},
		"that pauses for a checkpoint": {server{capacity: 1000, slowed: func(at float64) float64 {
			if int(at)%20 == 0 {
				return 0
			}
			return 1
		}}, 0.70},
	} {
		for _, guess := range []float64{0.5, 1, 3} {
			for seed := range uint64(5) {
				s := c.server
				s.random = rand.New(rand.NewPCG(seed, 1))
				r, err := sustain.Search(t.Context(), s.offer, guess*s.capacity, step, hold)
				if err != nil {
					t.Fatal(err)
				}
				if r.Rate < c.least*s.capacity || r.Rate > 1.03*s.capacity || !r.Held.IsFlat() || r.Held.Asked != r.Rate {
					t.Errorf("%s, guessed %.1f, seed %d: found %.0f of %.0f after %d steps", name, guess, seed, r.Rate, s.capacity, len(r.Steps))
				}
				if s.offers > 45 {
					t.Errorf("%s, guessed %.1f, seed %d: it took %d offers", name, guess, seed, s.offers)
				}
			}
		}
	}
}

// A server that gets slower after a minute passes a short step, and not the hold.
func TestRateThatIsNotHeldIsNotSustained(t *testing.T) {
	t.Parallel()
	s := &server{capacity: 1000, random: rand.New(rand.NewPCG(1, 1))}
	begun := 0.0
	offer := func(ctx context.Context, name string, rate float64, span time.Duration, drains bool) (sustain.Load, error) {
		begun = s.now
		return s.offer(ctx, name, rate, span, drains)
	}
	s.slowed = func(at float64) float64 {
		if at-begun > 60 {
			return 0.8
		}
		return 1
	}
	r, err := sustain.Search(t.Context(), offer, 1000, step, hold)
	if err != nil || r.Rate < 700 || r.Rate > 830 {
		t.Errorf("found %.0f with %v, of 800 that last", r.Rate, err)
	}
}

func TestServerThatSustainsNothingHasNoRate(t *testing.T) {
	t.Parallel()
	s := &server{capacity: 100, random: rand.New(rand.NewPCG(1, 1))}
	r, err := sustain.Search(t.Context(), s.offer, 100_000, step, hold)
	if err != nil || r.Rate != 0 || len(r.Steps) == 0 {
		t.Errorf("found %.0f with %v after %d steps", r.Rate, err, len(r.Steps))
	}
}

func TestOverdriveLeavesABacklogThatTakesItsTime(t *testing.T) {
	t.Parallel()
	s := &server{capacity: 1000, random: rand.New(rand.NewPCG(1, 1))}
	load, err := sustain.Overdrive(t.Context(), s.offer, 1000, time.Minute)
	if err != nil || load.IsFlat() || load.Backlog() < 23_000 || load.Backlog() > 25_000 || load.Recovery < 23*time.Second ||
		load.Recovery > 25*time.Second {
		t.Errorf("400 a second too many for a minute left %.0f for %s, with %v", load.Backlog(), load.Recovery, err)
	}
}

// The backlog of a burst of 12 s (400 a second too many) is gone after 9.6 s of half the rate; with a knee it never is.
func TestFloodgateRecoversBetweenBurstsUnlessThereIsAKnee(t *testing.T) {
	t.Parallel()
	s := &server{capacity: 1000, random: rand.New(rand.NewPCG(1, 1))}
	flood, err := sustain.Floodgate(t.Context(), s.offer, 1000, step)
	if err != nil || !flood.HasRecovered || flood.Recovery < 9*time.Second || flood.Recovery > 10*time.Second ||
		flood.Backlog < 4700 || flood.Backlog > 4900 || flood.Offered < 940 || flood.Offered > 960 {
		t.Errorf("without a knee it is %+v, with %v", flood, err)
	}
	s = &server{capacity: 1000, knee: 300, random: rand.New(rand.NewPCG(1, 1))}
	flood, err = sustain.Floodgate(t.Context(), s.offer, 1000, step)
	if err != nil || flood.HasRecovered || flood.Recovery < step {
		t.Errorf("with a knee it is %+v, with %v", flood, err)
	}
}
