package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A pool connects when it is used, so that one of nowhere serves here.
func nowhere(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func TestSessionEndsWhenItIsIdleOrOldAndAPageThatRefreshesItselfKeepsNoneAlive(t *testing.T) {
	t.Parallel()
	s := newSessions()
	now := time.Now()
	s.clock = func() time.Time { return now }
	begin := func() *http.Request {
		one, err := s.begin("r", "t", false, nowhere(t))
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.AddCookie(&http.Cookie{Name: cookieName, Value: one.secret})
		return request
	}
	person, live := begin(), begin()
	live.Header.Set("X-Parley-Live", "1")
	for range 3 {
		now = now.Add(idleMost - time.Minute)
		if s.find(person) == nil {
			t.Fatal("a session that is used ended")
		}
	}
	if s.find(live) != nil {
		t.Error("a page that refreshes itself kept its session alive")
	}
	for now = now.Add(time.Minute); s.find(person) != nil; now = now.Add(time.Minute) {
		if len(s.all) > 2 {
			t.Fatal("sessions come by themselves")
		}
		if now.After(time.Now().Add(2 * ageMost)) {
			t.Fatal("a session lives longer than its age")
		}
	}
	begin()
	now = now.Add(idleMost + time.Second)
	s.endOld()
	if len(s.all) != 0 {
		t.Errorf("%d sessions are left", len(s.all))
	}
}

func TestNobodyIsSentToAnotherSiteAfterTheLogin(t *testing.T) {
	t.Parallel()
	for given, wanted := range map[string]string{
		"/queues/a?x=1": "/queues/a?x=1", "": "", "https://example.com/": "", "//example.com/": "", `/\example.com`: "",
		"javascript:alert(1)": "", "/login?next=/": "", "queues": "", "/a\r\nb": "",
	} {
		if got := ownPath(given); got != wanted {
			t.Errorf("%q leads to %q, not to %q", given, got, wanted)
		}
	}
}

func TestAddressThatFailsTooOftenHasToWait(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	now := time.Now()
	a.clock = func() time.Time { return now }
	for range failuresMost {
		if !a.mayTry("x") {
			t.Fatal("it has to wait too early")
		}
		a.fail("x")
	}
	if a.mayTry("x") || !a.mayTry("y") {
		t.Error("the wrong address has to wait")
	}
	now = now.Add(failurePause + time.Second)
	if !a.mayTry("x") {
		t.Error("it has to wait for ever")
	}
}
