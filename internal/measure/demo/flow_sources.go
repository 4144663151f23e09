package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

// place records an order in the ledger.
func (r *flowRun) place(o order) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders = append(r.orders, o)
}

// postOrders posts orders by HTTP, each until it is answered. So the orders of a customer are published one behind the other.
func (r *flowRun) postOrders(ctx context.Context, session int, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(3, uint64(session)))
	var sequences [3]int
	for n := 1; goesOn(ctx, random, stop); n++ {
		customer := random.IntN(len(sequences))
		sequences[customer]++
		o := order{
			orderText: newOrderText(random, fmt.Sprintf("http-%d-%d", session, n), fmt.Sprintf("customer %d.%d", session, customer)),
			way:       wayHTTP, sequence: sequences[customer],
		}
		r.place(o)
		if err := r.post(ctx, o); err != nil {
			return err
		}
		r.taken[wayHTTP].Add(1)
	}
	return nil
}

// post posts an order until it is answered, with one key.
func (r *flowRun) post(ctx context.Context, o order) error {
	for {
		status, said, err := r.postOnce(ctx, o)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil, status == http.StatusServiceUnavailable:
			if err := backoff.Wait(ctx, flowRepeats); err != nil {
				return err
			}
		case status == http.StatusOK:
			r.again.Add(1)
			return nil
		case status == http.StatusAccepted:
			return nil
		default:
			return fmt.Errorf("order %s was answered by %d: %s", o.Number, status, said)
		}
	}
}

func (r *flowRun) postOnce(ctx context.Context, o order) (status int, said string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.listen+"/orders", strings.NewReader(o.xml()))
	if err != nil {
		return 0, "", fmt.Errorf("post an order: %w", err)
	}
	request.Header.Set("Content-Type", "application/xml")
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Idempotency-Key", o.Number)
	answer, err := r.client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("post an order: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
	return answer.StatusCode, string(text), err
}

const (
	// Each flat file has so many orders, and every so many of them a bad one.
	flatOrders, flatBad = 10, 4
	// fileInterval is the time between two flat files.
	fileInterval = 150 * time.Millisecond
)

// badAmount is how a program of another country writes an amount: no decimal of XML.
func badAmount(amount string) string { return strings.Replace(amount, ".", ",", 1) }

// writeFlatFiles writes files of many orders. Some have a bad record, of a customer of its own, as it goes on later than its neighbours.
func (r *flowRun) writeFlatFiles(ctx context.Context, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(4, 0))
	for n := 1; goesOn(ctx, random, stop); n++ {
		var file strings.Builder
		var sequences [2]int
		for at := range flatOrders {
			customer := random.IntN(len(sequences))
			sequences[customer]++
			o := order{
				orderText: newOrderText(random, fmt.Sprintf("flat-%d-%d", n, at), fmt.Sprintf("reseller %d.%d", n, customer)),
				way:       wayFlat, sequence: sequences[customer],
			}
			written := o.orderText
			if n%flatBad == 1 && at == flatOrders/2 {
				o.Customer, o.sequence = "clumsy "+o.Customer, 0
				written = o.orderText
				written.Amount = badAmount(written.Amount)
			}
			r.place(o)
			file.WriteString(written.flat())
		}
		if err := r.writeFile(fmt.Sprintf("orders-%06d.txt", n), file.String()); err != nil {
			return err
		}
		r.taken[wayFlat].Add(flatOrders)
		_ = backoff.Wait(ctx, fileInterval)
	}
	return nil
}

// writeXMLFiles writes files of one order. Two nodes take files, and no order is promised among them.
func (r *flowRun) writeXMLFiles(ctx context.Context, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(5, 0))
	for n := 1; goesOn(ctx, random, stop); n++ {
		o := order{orderText: newOrderText(random, fmt.Sprintf("xml-%d", n), fmt.Sprintf("partner %d", n%5)), way: wayXML}
		r.place(o)
		if err := r.writeFile(fmt.Sprintf("order-%06d.xml", n), o.xml()); err != nil {
			return err
		}
		r.taken[wayXML].Add(1)
		_ = backoff.Wait(ctx, fileInterval/4)
	}
	return nil
}

// writeFile writes a file that no node takes before it is complete.
func (r *flowRun) writeFile(name, text string) error {
	err := os.WriteFile(r.path("in", "."+name), []byte(text), 0o600)
	if err == nil {
		err = os.Rename(r.path("in", "."+name), r.path("in", name))
	}
	if err != nil {
		return fmt.Errorf("write a file of orders: %w", err)
	}
	return nil
}

// insertOrders puts orders into the table, some in each transaction, and rolls some back.
func (r *flowRun) insertOrders(ctx context.Context, session int, stop <-chan struct{}) error {
	conn, err := r.db.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	random := rand.New(rand.NewPCG(6, uint64(session)))
	for n := 1; goesOn(ctx, random, stop); n++ {
		var orders []order
		for at := range 1 + random.IntN(3) {
			orders = append(orders, order{
				orderText: newOrderText(random, fmt.Sprintf("row-%d-%d-%d", session, n, at), fmt.Sprintf("subscriber %d", n%7)), way: wayTable,
			})
		}
		isTakenBack := random.IntN(8) == 0
		for _, o := range orders {
			o.isRolledBack = isTakenBack
			r.place(o)
		}
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, o := range orders {
				if _, err := tx.Exec(ctx, "select shop.place_order($1)", o.xml()); err != nil {
					return err
				}
			}
			if isTakenBack {
				return errRolledBack
			}
			return nil
		})
		switch {
		case errors.Is(err, errRolledBack):
			r.rolledBack.Add(int64(len(orders)))
		case err != nil:
			return fmt.Errorf("put orders into the table: %w", err)
		default:
			r.taken[wayTable].Add(int64(len(orders)))
		}
	}
	return nil
}
