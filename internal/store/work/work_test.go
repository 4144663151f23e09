package work_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	workstore "github.com/parley-broker/parley/internal/store/work"
	"github.com/parley-broker/parley/parleytest"
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), "select parley_store.add_system('mail')"); err != nil {
		t.Fatal(err)
	}
	return pool
}

func put(t *testing.T, pool *pgxpool.Pool, lane string, subjects ...int64) {
	t.Helper()
	var items []workstore.Item
	for _, subject := range subjects {
		items = append(items, workstore.Item{Lane: lane, Subject: subject, Data: []byte{byte(subject)}})
	}
	ids, err := workstore.Put(t.Context(), pool, "mail", items, workstore.PutOptions{ExpiresAt: time.Now().Add(time.Hour)})
	if err != nil || len(ids) != len(subjects) {
		t.Fatalf("put gives %v, %v", ids, err)
	}
}

// claim claims until there is something: a claim may give nothing while the token of a lane is on its way.
func claim(t *testing.T, pool *pgxpool.Pool, want ...int64) []workstore.Claimed {
	t.Helper()
	var claimed []workstore.Claimed
	parleytest.Until(t, "something is claimed", func() bool {
		var err error
		claimed, err = workstore.Claim(t.Context(), pool, "mail", workstore.ClaimOptions{Lanes: 10, Holder: "test", Timeout: parleytest.Patience})
		if err != nil {
			t.Fatal(err)
		}
		return len(claimed) > 0
	})
	var got []int64
	for _, c := range claimed {
		got = append(got, c.Subject)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("claimed %v, want %v", got, want)
	}
	return claimed
}

func TestWorkIsDoneUnderALease(t *testing.T) {
	t.Parallel()
	pool := database(t)
	put(t, pool, "a", 1, 2, 3, 4)
	claimed := claim(t, pool, 1, 2, 3, 4)
	lease := claimed[0].LeaseID
	if string(claimed[1].Data) != "\x02" || claimed[0].Lane != "a" || claimed[0].ExpiresAt == nil || claimed[0].LastError != nil {
		t.Errorf("claimed %+v", claimed[0])
	}
	if until, err := workstore.Renew(t.Context(), pool, lease, time.Hour); err != nil || time.Until(until) < 50*time.Minute {
		t.Errorf("renewed to %v, %v", until, err)
	}
	if n, err := workstore.Complete(t.Context(), pool, lease, []int64{claimed[0].ItemID}); n != 1 || err != nil {
		t.Errorf("completed %d, %v", n, err)
	}
	if expired, err := workstore.Retry(t.Context(), pool, lease, []int64{claimed[1].ItemID}, "busy", ""); len(expired) > 0 || err != nil {
		t.Errorf("expired %v, %v", expired, err)
	}
	n, err := workstore.SetAside(t.Context(), pool, lease, []int64{claimed[2].ItemID}, "poison", "crash")
	if n != 1 || err != nil {
		t.Errorf("set aside %d, %v", n, err)
	}
	if n, err := workstore.Delay(t.Context(), pool, lease, nil, time.Now().Add(10*time.Millisecond), "later", false); n != 1 || err != nil {
		t.Errorf("delayed %d, %v", n, err)
	}
	if _, err := workstore.Complete(t.Context(), pool, lease, nil); !errors.Is(err, workstore.ErrLeaseOver) {
		t.Errorf("a lease without items gives %v", err)
	}
	if again := claim(t, pool, 4); again[0].Attempts != 0 || *again[0].LastError != "later" {
		t.Errorf("the delayed one is %+v", again[0])
	}
	for operation, want := range map[workstore.Operation]int{workstore.RetryNow: 1, workstore.Resume: 1} {
		for _, isDry := range []bool{true, false} {
			n, err := workstore.Apply(t.Context(), pool, "mail", operation, workstore.Filter{Lane: "*", Older: time.Nanosecond}, "", "ann", 0, isDry)
			if n != want || err != nil {
				t.Errorf("%s of %d items, want %d, %v", operation, n, want, err)
			}
		}
	}
	if n, err := workstore.Apply(t.Context(), pool, "mail", workstore.Suspend, workstore.Filter{Items: []int64{}}, "x", "ann", 0, false); n != 0 || err != nil {
		t.Errorf("an empty list matches %d, %v", n, err)
	}
	if _, err := workstore.Apply(t.Context(), pool, "mail", "burn", workstore.Filter{}, "", "", 0, true); err == nil {
		t.Error("an operation that there is not")
	}
}

func TestALaneFailsAndComesBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	most := 1
	if err := workstore.SetLane(t.Context(), pool, "mail", "a", workstore.LaneSettings{LeaseMax: &most}); err != nil {
		t.Fatal(err)
	}
	put(t, pool, "a", 1, 2)
	claimed, err := workstore.ClaimLane(t.Context(), pool, "mail", "a", workstore.ClaimOptions{Items: 1})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	if more, err := workstore.ClaimLane(t.Context(), pool, "mail", "a", workstore.ClaimOptions{}); len(more) != 0 || err != nil {
		t.Errorf("beyond lease_max: %v, %v", more, err)
	}
	next, err := workstore.FailLane(t.Context(), pool, "mail", "a", "refused", time.Now())
	if err != nil || time.Until(next) < 30*time.Second {
		t.Errorf("the next attempt is at %v, %v", next, err)
	}
	if _, err := workstore.Release(t.Context(), pool, claimed[0].LeaseID, nil); err != nil {
		t.Error(err)
	}
	if more, err := workstore.ClaimLane(t.Context(), pool, "mail", "a", workstore.ClaimOptions{}); len(more) != 0 || err != nil {
		t.Errorf("in retry: %v, %v", more, err)
	}
	if err := workstore.SucceedLane(t.Context(), pool, "mail", "a"); err != nil {
		t.Error(err)
	}
	claim(t, pool, 1, 2)
	if expired, err := workstore.ClaimExpired(t.Context(), pool, "mail", workstore.ClaimOptions{}); len(expired) != 0 || err != nil {
		t.Errorf("expired %v, %v", expired, err)
	}
}
