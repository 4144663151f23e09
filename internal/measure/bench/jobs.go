package bench

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/statistics"
)

const (
	// systemTake is a simple queue whose workers are sessions that wait in TAKE, as a program in any language has them.
	systemTake = "parley_take"

	jobsQueue = "jobs"
	// jobsRate are the jobs that are offered a second, burstTimes how many times that a burst is.
	jobsRate   = 200
	burstTimes = 4
	// jobsDepth is how many jobs wait while workers are kept busy, jobsFill how many are inserted in a transaction.
	jobsDepth = 1000
	jobsFill  = 100
	// jobTime is how long the work on a job takes, without the processor.
	jobTime = time.Millisecond
)

// jobsVariant is one load on waiting workers.
type jobsVariant struct {
	Variant
	workers, batch int
	// offered are the jobs a second that are inserted, in times of the rate; 0: as many as keep the workers busy.
	offered int
	// answered reports that sessions insert one job after the other, each in a transaction.
	answered bool
	// behind reports that a backlog of busy keys stands before the jobs.
	behind bool
}

func (c Config) jobsVariants() []jobsVariant {
	few, some, many := or(c.Sessions, 8), or(c.Sessions, 16), or(c.Sessions, 64)
	return []jobsVariant{
		{
			Variant{"paced", "8 workers wait, --rate jobs a second (200), one a transaction, each a millisecond of work"},
			few, 1, 1, false, false,
		},
		{Variant{"burst", "the same at four times the rate"}, few, 1, burstTimes, false, false},
		{
			Variant{"one", "8 sessions insert one job a transaction, and 8 workers work one, without a pause"},
			few, 1, 0, true, false,
		},
		{
			Variant{"one_behind", "the same behind --messages jobs (a million) of two keys on whose first jobs others work"},
			few, 1, 0, true, true,
		},
		{Variant{"peak", "16 workers, one job a transaction, while 1,000 wait"}, some, 1, 0, false, false},
		{Variant{"peak_many", "the same with 64 workers"}, many, 1, 0, false, false},
		{Variant{"peak_batches", "64 workers, 10 jobs a transaction, while 1,000 wait"}, many, or(c.Batch, 10), 0, false, false},
	}
}

// jobsScenario measures simple queues as a job queue is used, with workers that wait for jobs.
func jobsScenario() Scenario {
	s := Scenario{
		Name: "jobs",
		Short: "a simple queue as a job queue, beside the peers: jobs a second, how soon a worker has one, and what the server's " +
			"processor spends on it",
		Takes: TakesRate, HasPeers: true,
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			b.Dialog.Rate = or(b.Dialog.Rate, jobsRate)
			b.settled["rate"] = b.Dialog.Rate
			q := &queues{bench: b, failed: map[string]string{}}
			var trials []trial
			for _, v := range b.jobsVariants() {
				if !b.wants(v.Name) {
					continue
				}
				ours := []Peer{simplePeer(jobsQueue, v.workers, v.batch), takePeer(v.batch)}
				if v.behind {
					ours = ours[1:] // a client of a copy has to be its first session
				}
				for _, p := range ours {
					trials = append(trials, b.workersTrial(p, v))
				}
				if v.behind {
					continue
				}
				for _, p := range b.Peers {
					trials = append(trials, q.forgiving(b.workersTrial(p, v)))
				}
			}
			results, err := b.measure(ctx, trials)
			return q.withoutFailed(results), err
		},
	}
	for _, v := range (Config{}).jobsVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// workersTrial measures one system under one load.
func (b *bench) workersTrial(p Peer, v jobsVariant) trial {
	var rounds []LatencyRound
	var costs []float64
	return trial{
		result: Result{System: p.Name, Variant: v.Name, Sessions: v.workers, Size: b.Size, Batch: v.batch},
		run: func(ctx context.Context) (float64, error) {
			name := "jobs of " + p.Name
			if v.behind {
				name += " behind others"
			}
			s, err := b.stage(ctx, name, func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				if err := p.Prepare(ctx, conn); err != nil || !v.behind {
					return err
				}
				return b.putBacklog(ctx, conn)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				measured, err := b.workJobsOf(ctx, d, p, v)
				if len(measured.begun) > 0 {
					rounds = append(rounds, summaryOf(measured.begun))
				}
				if measured.cost != nil {
					costs = append(costs, *measured.cost)
				}
				return measured.rate, err
			})
		},
		conclude: func(r *Result) {
			if len(rounds) > 0 {
				latency := summarize(r.System, rounds).Latency
				r.Latency = &latency
			}
			if len(costs) > 0 {
				cost := statistics.Median(costs)
				r.ProcessorMSPerJob = &cost
			}
		},
	}
}
