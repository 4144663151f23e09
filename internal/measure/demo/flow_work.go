package demo

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

// workload has orders come in by all ways for the time of the run, while the warehouse is away for a part of it and a node is killed.
func (r *flowRun) workload(ctx context.Context) error {
	working, ctx := newCrew(ctx)
	defer working.fail(nil)
	stop := make(chan struct{})
	for session := range r.config.Sessions {
		working.start(func() error { return r.postOrders(ctx, session, stop) })
		if session%2 == 0 {
			working.start(func() error { return r.insertOrders(ctx, session, stop) })
		}
	}
	working.start(func() error { return r.writeFlatFiles(ctx, stop) })
	working.start(func() error { return r.writeXMLFiles(ctx, stop) })
	working.start(func() error { return r.writePartnerFiles(ctx, stop) })
	err := r.parts(ctx)
	close(stop)
	working.working.Wait()
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// parts are the activities during a run.
func (r *flowRun) parts(ctx context.Context) error {
	quarter := r.config.Duration / flowParts
	for part, act := range []func(context.Context) error{
		func(ctx context.Context) error { return backoff.Wait(ctx, quarter) },
		func(ctx context.Context) error {
			r.mark("warehouse away")
			r.notice("The warehouse is gone: connections are cut, and no new ones taken. Orders go on.")
			r.warehouse.leave()
			return backoff.Wait(ctx, quarter)
		},
		func(ctx context.Context) error {
			if _, err := r.warehouse.serve(ctx, r.address); err != nil {
				return err
			}
			r.mark("warehouse back")
			r.notice("The warehouse is back.")
			return backoff.Wait(ctx, quarter)
		},
		func(ctx context.Context) error { return r.killNode(ctx, quarter) },
	} {
		r.part.Store(int32(part))
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// killNode kills the node that takes orders by HTTP, and starts it again a moment later, as a service manager does.
func (r *flowRun) killNode(ctx context.Context, quarter time.Duration) error {
	r.mark("node killed")
	process := r.nodes[0].Process()
	r.nodes[0].Kill()
	r.killed++
	r.notice(fmt.Sprintf("A node (process %d) was killed. The other takes over what it had in its hands within %v; "+
		"clients of HTTP try again until it is back.", process, flowLease))
	if err := backoff.Wait(ctx, quarter/2); err != nil {
		return err
	}
	if err := r.startNode(ctx, 0); err != nil {
		return err
	}
	r.mark("started again")
	return backoff.Wait(ctx, quarter/2)
}

func (r *flowRun) mark(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, mailMark{seconds: time.Since(r.began).Seconds(), label: label})
}

// repeatedly does something in a session of its own until ctx ends, with a pause whenever there was nothing to do.
func (r *flowRun) repeatedly(
	ctx context.Context, pause time.Duration, work func(context.Context, *pgx.Conn) (done int64, err error),
) error {
	conn, err := r.db.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	for ctx.Err() == nil {
		done, err := work(ctx, conn)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if done == 0 {
			_ = backoff.Wait(ctx, pause)
		}
	}
	return nil
}

// receiveBilling is the program behind the service Billing.
func (r *flowRun) receiveBilling(ctx context.Context, conn *pgx.Conn) (received int64, err error) {
	if err := conn.QueryRow(ctx, "select shop.receive_billing()").Scan(&received); err != nil {
		return 0, fmt.Errorf("receive orders at the service: %w", err)
	}
	r.billed.Add(received)
	return received, nil
}

// A bad record has an amount such as 12,50.
var comma = regexp.MustCompile(`(?m)^(ORDER\|.*\|\d+),(\d\d)$`)

// mend is the operator, who mends bad records and resubmits them.
func (r *flowRun) mend(ctx context.Context, conn *pgx.Conn) (mended int64, err error) {
	type record struct {
		ID, Message int64
		Body        []byte
	}
	rows, err := conn.Query(ctx, `
		select s.suspension_id, s.message_id, parley_flow.read_message(s.message_id)
		from parley_flow.suspended as s
		where s.location = $1 and s.code = 'receive.record'`, wayFlat)
	if err != nil {
		return 0, fmt.Errorf("read the suspended records: %w", err)
	}
	suspended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[record])
	if err != nil {
		return 0, fmt.Errorf("read the suspended records: %w", err)
	}
	for _, s := range suspended {
		body := comma.ReplaceAll(s.Body, []byte("$1.$2"))
		if bytes.Equal(body, s.Body) {
			continue // Not ours to mend; it is left behind, and the verdict says so.
		}
		if _, err := conn.Exec(ctx, "select parley_flow.resubmit($1, body => $2)", s.ID, body); err != nil {
			return mended, fmt.Errorf("resubmit message %d: %w", s.Message, err)
		}
		mended++
	}
	r.mended.Add(mended)
	return mended, nil
}

// sample counts what has happened until now.
func (r *flowRun) sample(ctx context.Context) (OrdersSample, error) {
	now := OrdersSample{
		Seconds: time.Since(r.began).Seconds(), RolledBack: r.rolledBack.Load(), Mended: r.mended.Load(), RepeatedRequests: r.again.Load(),
		Late:  r.late.Load(),
		Taken: map[string]int64{}, Delivered: map[string]int64{portBilling: r.billed.Load(), portWarehouse: r.warehouse.taken()},
	}
	for way, count := range r.taken {
		now.Taken[way] = count.Load()
	}
	files, err := archived(r.path("archive"))
	if err != nil {
		return now, err
	}
	now.Delivered[portArchive] = int64(len(files))
	var approvals int64
	err = r.watcher.QueryRow(ctx, "select (select count(*) from shop.approvals), (select count(*) from shop.outcomes)").Scan(
		&approvals, &now.Ended)
	if err != nil {
		return now, fmt.Errorf("count the approvals and outcomes: %w", err)
	}
	now.Delivered[portApprovals] = approvals
	return now, nil
}

// watch samples and shows how the run stands, until it is stopped.
func (r *flowRun) watch(stop <-chan struct{}) error {
	return eachPoll(context.Background(), stop, func() error {
		now, err := r.sample(context.Background())
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.samples = append(r.samples, now)
		r.mu.Unlock()
		if r.config.Observer != nil {
			r.observing.Lock()
			defer r.observing.Unlock()
			r.config.Observer.Progress(OrdersProgress{
				Part: flowPartNames[r.part.Load()], Elapsed: time.Duration(now.Seconds * float64(time.Second)), Duration: r.config.Duration,
				OrdersSample: now,
			})
		}
		return nil
	})
}

// arrived counts what has come to an end. It does not grow for ever when something comes again and again.
func (r *flowRun) arrived(ctx context.Context) (count int64, err error) {
	files, err := archived(r.path("archive"))
	if err != nil {
		return 0, err
	}
	err = r.control.QueryRow(ctx, `
		select
			(select count(distinct message_id) from shop.approvals) + (select count(distinct number) from shop.outcomes)
				+ (select count(*) from shop.questions)`,
	).Scan(&count)
	if err != nil {
		return 0, fmt.Errorf("count what has arrived: %w", err)
	}
	return count + int64(len(files)) + r.billed.Load() + r.mended.Load() + r.warehouse.distinct(), nil
}

// settle waits until nothing is under way.
func (r *flowRun) settle(ctx context.Context) error {
	r.notice("No more orders. Waiting until all have arrived.")
	r.patience = flowPatience
	return r.await(ctx, func() (now standing, err error) {
		// The views that are counted cost more than the nodes should lose.
		if err := backoff.Wait(ctx, flowPoll); err != nil {
			return now, err
		}
		left, err := r.left(ctx)
		if err != nil {
			return now, err
		}
		arrived, err := r.arrived(ctx)
		return standing{left.total(), arrived}, err
	})
}
