package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/verify/mailcheck"
	"github.com/parley-broker/parley/schema"
)

// furnishMail installs the schema and creates the shop.
func furnishMail(ctx context.Context, conn *pgx.Conn) error {
	if err := schema.Install(ctx, conn); err != nil {
		return fmt.Errorf("install the schema: %w", err)
	}
	if _, err := conn.Exec(ctx, mailObjects, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("create the objects of the demo: %w", err)
	}
	return nil
}

// errRolledBack ends the transaction of an order that the customer has taken back.
var errRolledBack = errors.New("the customer has changed his mind")

// workload has customers order and answer for the time of the run, while the relay is away for a part of it and a daemon is killed.
func (r *mailRun) workload(ctx context.Context) error {
	working, ctx := newCrew(ctx)
	defer working.fail(nil)
	stop := make(chan struct{})
	for session := range r.config.Sessions {
		working.start(func() error { return r.placeOrders(ctx, session, stop) })
		working.start(func() error { return r.answer(ctx, session, stop) })
	}
	err := r.parts(ctx)
	close(stop)
	working.working.Wait()
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// parts are the activities during a run.
func (r *mailRun) parts(ctx context.Context) error {
	quarter := r.config.Duration / mailParts
	for part, act := range []func(context.Context) error{
		func(context.Context) error { return nil },
		func(context.Context) error {
			r.mark("relay away")
			r.notice("The relay is gone: connections are cut, and no new ones taken. Orders go on.")
			return r.relay.Close()
		},
		func(ctx context.Context) error {
			r.mark("relay back")
			r.notice("The relay is back.")
			_, err := r.openRelay(ctx, r.relayAt)
			return err
		},
		func(context.Context) error {
			r.mark("daemon killed")
			r.faults.Killed = append(r.faults.Killed, time.Now())
			r.daemons[0].Kill()
			r.notice(fmt.Sprintf("A daemon (process %d) was killed. "+
				"The other takes over what it had in its hands, when its leases are over: within %v.",
				r.daemons[0].Process(), mailLease))
			return nil
		},
	} {
		r.part.Store(int32(part))
		if err := act(ctx); err != nil {
			return err
		}
		if err := backoff.Wait(ctx, quarter); err != nil {
			return err
		}
	}
	return nil
}

func (r *mailRun) mark(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, mailMark{seconds: time.Since(r.began).Seconds(), label: label})
}

// goesOn waits a moment between two letters, and says whether there is another.
func goesOn(ctx context.Context, random *rand.Rand, stop <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	case <-time.After(time.Duration(1+random.IntN(20)) * time.Millisecond):
		return true
	}
}

func (r *mailRun) submitted(s mailcheck.Submission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.submissions = append(r.submissions, s)
}

// placeOrders places orders, and rolls some back when their confirmation has been sent already.
func (r *mailRun) placeOrders(ctx context.Context, session int, stop <-chan struct{}) error {
	conn, err := r.db.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	random := rand.New(rand.NewPCG(1, uint64(session)))
	for n := 1; goesOn(ctx, random, stop); n++ {
		customer, body := fmt.Sprintf("customer%d@c%d.example", n%50, n%7), mailcheck.Body(random, 300+random.IntN(6000))
		s := mailcheck.Submission{
			Key: fmt.Sprintf("order-%d-%d", session, n), Sender: "shop@shop.example", Recipients: []string{customer}, Hash: mailcheck.Hash(body),
			Outcome: mailcheck.Accepted, Via: "an order",
		}
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			letter := mailcheck.Letter(s.Key, s.Sender, s.Recipients, body)
			if _, err := tx.Exec(ctx, "select place_order($1, $2, $3)", s.Key, customer, []byte(letter)); err != nil {
				return err
			}
			if random.IntN(8) == 0 {
				return errRolledBack
			}
			return nil
		})
		switch {
		case errors.Is(err, errRolledBack):
			s.Outcome = mailcheck.NotAccepted
			r.rolledBack.Add(1)
		case err != nil:
			return fmt.Errorf("place an order: %w", err)
		default:
			r.orders.Add(1)
		}
		r.submitted(s)
	}
	return nil
}

// answer sends the answers of customers to any of the daemons.
func (r *mailRun) answer(ctx context.Context, session int, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(2, uint64(session)))
	var client *mailcheck.Client
	for n := 1; goesOn(ctx, random, stop); n++ {
		if client == nil {
			client = mailcheck.Dial(ctx, r.addresses[random.IntN(len(r.addresses))])
		}
		if client == nil {
			continue // That one was killed.
		}
		body := mailcheck.Body(random, 200+random.IntN(3000))
		s := mailcheck.Submission{
			Key: fmt.Sprintf("answer-%d-%d", session, n), Sender: fmt.Sprintf("customer%d@c%d.example", n%50, n%7),
			Recipients: []string{"shop@shop.example"}, Hash: mailcheck.Hash(body), Via: "SMTP",
		}
		var isOver bool
		s.Outcome, _, isOver = client.Send(s, mailcheck.Letter(s.Key, s.Sender, s.Recipients, body), mailcheck.ByData)
		if s.Outcome == mailcheck.Accepted {
			r.answers.Add(1)
		}
		r.submitted(s)
		if isOver || n%20 == 0 {
			client.Close()
			client = nil
		}
	}
	if client != nil {
		client.Close()
	}
	return nil
}

// receiveAnswers takes answers out of the queue of the service until ctx ends.
func (r *mailRun) receiveAnswers(ctx context.Context) error {
	conn, err := r.db.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	for ctx.Err() == nil {
		var received int64
		if err := conn.QueryRow(ctx, "select receive_answers()").Scan(&received); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("receive answers: %w", err)
		}
		r.received.Add(received)
		if received == 0 {
			_ = backoff.Wait(ctx, drainPoll)
		}
	}
	return nil
}

// sample counts what has happened until now.
func (r *mailRun) sample() MailSample {
	return MailSample{
		Seconds: time.Since(r.began).Seconds(), Orders: r.orders.Load(), RolledBack: r.rolledBack.Load(), Confirmed: int64(r.relay.Taken()),
		Answers: r.answers.Load(), Received: r.received.Load(),
	}
}

// watchMail samples and shows how the run stands, until it is stopped.
func (r *mailRun) watchMail(stop <-chan struct{}) error {
	return eachPoll(context.Background(), stop, func() error {
		now := r.sample()
		r.mu.Lock()
		r.samples = append(r.samples, now)
		r.mu.Unlock()
		if r.config.Observer != nil {
			r.observing.Lock()
			defer r.observing.Unlock()
			r.config.Observer.Progress(MailProgress{
				Part: mailPartNames[r.part.Load()], Elapsed: time.Duration(now.Seconds * float64(time.Second)), Duration: r.config.Duration,
				MailSample: now,
			})
		}
		return nil
	})
}

// settle waits until nothing is under way.
func (r *mailRun) settle(ctx context.Context) error {
	r.notice("No more orders. Waiting until all letters have arrived.")
	r.patience = mailPatience
	return r.await(ctx, func() (standing, error) {
		left, err := r.left(ctx)
		// A letter that comes again and again is no move.
		return standing{left.total(), min(int64(r.relay.Taken()), r.orders.Load()) + r.received.Load()}, err
	})
}
