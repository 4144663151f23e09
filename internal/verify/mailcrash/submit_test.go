//go:build unix

package mailcrash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

// workload submits letters from several sessions until it is stopped, and remembers what it learned of each.
type workload struct {
	hub *hub
	// expiry is how long a letter to the dead host is tried.
	expiry  time.Duration
	stopped chan struct{}
	running sync.WaitGroup

	mu          sync.Mutex
	submissions []mailcheck.Submission
	// bySQL are those whose commit the table public.sold decides on, by their place in submissions.
	bySQL map[string]int
}

// recipients are where letters go. Some of them have no mailbox.
var recipients = []string{
	"a@steady.example", "b@steady.example", "c@flaky.example", "d@flaky.example", "e@flaky.example", "f@bare.example", "ann@shop.example",
	"eve@shop.example", "bob@shop.example", "orders@shop.example", "desk@shop.example", "nobody@shop.example",
}

// startWorkload lets some sessions submit by SMTP, and as many in transactions.
func startWorkload(h *hub, seed uint64, sessions int, expiry time.Duration) *workload {
	w := &workload{hub: h, expiry: expiry, stopped: make(chan struct{}), bySQL: make(map[string]int)}
	for i := range sessions {
		random := rand.New(rand.NewPCG(seed, uint64(100+i)))
		w.running.Go(func() { w.submitBySMTP(fmt.Sprint("m", i), random) })
		random = rand.New(rand.NewPCG(seed, uint64(200+i)))
		w.running.Go(func() { w.submitBySQL(fmt.Sprint("q", i), random) })
	}
	return w
}

// stop ends the sessions.
func (w *workload) stop() {
	close(w.stopped)
	w.running.Wait()
}

// rest waits between two letters, and says whether another is to be sent.
func (w *workload) rest(random *rand.Rand) bool {
	select {
	case <-w.stopped:
		return false
	case <-time.After(time.Duration(random.IntN(40)) * time.Millisecond):
		return true
	}
}

func (w *workload) add(s mailcheck.Submission) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.submissions = append(w.submissions, s)
}

// draw makes a letter with one to three recipients. Most are small, and one in a hundred is larger than what is kept in memory.
func draw(random *rand.Rand, key, sender string) (mailcheck.Submission, string) {
	size := 100 + random.IntN(4000)
	switch n := random.IntN(100); {
	case n == 0:
		size = 1_100_000 + random.IntN(1_500_000)
	case n < 8:
		size = 8_000 + random.IntN(60_000)
	}
	s := mailcheck.Submission{Key: key, Sender: sender}
	for _, i := range random.Perm(len(recipients))[:1+random.IntN(3)] {
		s.Recipients = append(s.Recipients, recipients[i])
	}
	return s, mailcheck.Body(random, size)
}

func (w *workload) submitBySMTP(name string, random *rand.Rand) {
	var session *mailcheck.Client
	for n := 1; w.rest(random); n++ {
		target := w.hub.daemons[random.IntN(len(w.hub.daemons))].address
		if session == nil {
			session = mailcheck.Dial(context.Background(), target)
		}
		if session == nil {
			continue
		}
		s, body := draw(random, fmt.Sprint(name, "-", n), fmt.Sprintf("%s@out.example", name))
		s.Via, s.Hash = "SMTP", mailcheck.Hash(body)
		how := []mailcheck.Manner{0, 0, 0, 0, 0, 0, mailcheck.ByChunks, mailcheck.ByChunks, mailcheck.CutBefore, mailcheck.CutAfter}[random.IntN(10)]
		var taken []string
		var isOver bool
		s.Outcome, taken, isOver = session.Send(s, mailcheck.Letter(s.Key, s.Sender, s.Recipients, body), how)
		if s.Outcome != mailcheck.NotAccepted {
			s.Recipients = taken
		}
		w.add(s)
		if isOver || random.IntN(5) == 0 {
			session.Close()
			session = nil
		}
	}
	if session != nil {
		session.Close()
	}
}

func (w *workload) submitBySQL(name string, random *rand.Rand) {
	var conn *pgx.Conn
	ctx := context.Background()
	for n := 1; w.rest(random); n++ {
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = w.hub.tryConnect("shop"); err != nil {
				conn = nil
				continue
			}
		}
		s, body := draw(random, fmt.Sprint(name, "-", n), "shop@shop.example")
		s.Via, s.Outcome = "SQL", mailcheck.NotAccepted
		err := w.submit(ctx, conn, random, &s, body)
		w.mu.Lock()
		w.bySQL[s.Key] = len(w.submissions)
		w.submissions = append(w.submissions, s)
		w.mu.Unlock()
		if err != nil && random.IntN(2) == 0 {
			_ = conn.Close(ctx)
		}
	}
	if conn != nil {
		_ = conn.Close(ctx)
	}
}

// submit sends a letter in a transaction with a row of public.sold, which stays exactly when the letter was accepted.
func (w *workload) submit(ctx context.Context, conn *pgx.Conn, random *rand.Rand, s *mailcheck.Submission, body string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, `insert into public.sold (key) values ($1)`, s.Key); err != nil {
		return err
	}
	if random.IntN(10) == 0 {
		// Letters sent since the savepoint are gone with it, and the letter itself is not.
		if _, err := tx.Exec(ctx, `savepoint before`); err != nil {
			return err
		}
		lost := mailcheck.Letter("undone-"+s.Key, s.Sender, s.Recipients, body)
		if _, err := tx.Exec(ctx, `select parley_mail.send($1, $2, raw => $3)`, s.Sender, s.Recipients, []byte(lost)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `rollback to before`); err != nil {
			return err
		}
	}
	switch random.IntN(8) {
	case 0: // a host that nobody is at, and little time: it is given up
		s.Recipients, s.Hash = append(s.Recipients, "g@dead.example"), mailcheck.Hash(body)
		_, err = tx.Exec(ctx, `select parley_mail.send($1, $2, raw => $3, expires => clock_timestamp() + $4::interval)`,
			s.Sender, s.Recipients, []byte(mailcheck.Letter(s.Key, s.Sender, s.Recipients, body)), w.expiry)
	case 1, 2, 3: // rendered by the database
		s.Hash = mailcheck.HashText(body)
		_, err = tx.Exec(ctx, `select parley_mail.send($1, $2, subject => $3, text => $4, headers => jsonb_build_object('X-Letter', $3::text))`,
			s.Sender, s.Recipients, s.Key, body)
	default:
		s.Hash = mailcheck.Hash(body)
		_, err = tx.Exec(ctx, `select parley_mail.send($1, $2, raw => $3, priority => $4)`, s.Sender, s.Recipients,
			[]byte(mailcheck.Letter(s.Key, s.Sender, s.Recipients, body)), []string{"HIGH", "NORMAL", "LOW"}[random.IntN(3)])
	}
	if err != nil || random.IntN(5) == 0 {
		return err
	}
	return tx.Commit(ctx)
}

// settle gives the submissions, with the database's answer about transactions whose commit got none.
func (w *workload) settle(t testing.TB) []mailcheck.Submission {
	t.Helper()
	conn := w.hub.connect(t)
	defer conn.Close(context.Background())
	for _, key := range column[string](t, conn, `select key from public.sold`) {
		w.submissions[w.bySQL[key]].Outcome = mailcheck.Accepted
	}
	return w.submissions
}
