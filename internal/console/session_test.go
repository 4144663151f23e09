package console

import (
	"net/http"
	"net/http/httptest"
	"strconv"
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
	s := newSessions(false)
	now := time.Now()
	s.clock = func() time.Time { return now }
	begin := func() *http.Request {
		one, err := s.begin("r", "t", false, nowhere(t))
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.AddCookie(&http.Cookie{Name: cookiePrefix, Value: one.secret})
		return request
	}
	person, live := begin(), begin()
	live.Header.Set("X-Parley-Live", "1")
	for range 3 {
		now = now.Add(idleMost - time.Minute)
		if s.find(person) == nil {
			t.Fatal("a session that is used ended")
		}
		s.find(live)
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
		if !a.begin("x", "clerk") {
			t.Fatal("it has to wait too early")
		}
	}
	if a.begin("x", "clerk") || a.begin("x", "other") || !a.begin("y", "clerk") {
		t.Error("the wrong address has to wait")
	}
	now = now.Add(failurePause + time.Second)
	if !a.begin("x", "clerk") {
		t.Error("it has to wait for ever")
	}
}

// A login with one password gives no more attempts at another.
func TestLoginThatSucceedsForgivesNoOther(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	for range failuresMost - 1 {
		a.begin("x", "boss")
		if a.begin("x", "clerk") {
			a.succeed("x", "clerk")
		}
	}
	a.begin("x", "boss")
	if a.begin("x", "boss") {
		t.Error("the attempts were forgiven")
	}
}

func TestRoleIsGuessedFromManyAddressesNoOftener(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	tried := 0
	for n := range 1000 {
		if a.begin("192.0.2."+strconv.Itoa(n), "boss") {
			tried++
		}
	}
	if tried != failuresOfRoleMost {
		t.Errorf("%d attempts were let through", tried)
	}
	for n := range failuresMost {
		a.begin("2001:db8::"+strconv.Itoa(n), "r"+strconv.Itoa(n))
	}
	if a.begin("2001:db8::ffff:1", "other") || !a.begin("2001:db8:0:1::1", "other") {
		t.Error("addresses of one network of IPv6 count apart")
	}
}

func TestSessionsOfARoleAreBoundedAndTheLeastUsedOneEnds(t *testing.T) {
	t.Parallel()
	s := newSessions(false)
	now := time.Now()
	s.clock = func() time.Time { now = now.Add(time.Second); return now }
	begin := func(role string) *session {
		one, err := s.begin(role, "t", false, nowhere(t))
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	first, other := begin("greedy"), begin("other")
	for range sessionsMost {
		begin("greedy")
	}
	if len(s.all) != sessionsOfRoleMost+1 || s.all[first.secret] != nil || s.all[other.secret] == nil {
		t.Errorf("%d sessions are left", len(s.all))
	}
}

func TestCookieIsNamedForThePortAndBoundToTheHostByTLS(t *testing.T) {
	t.Parallel()
	for host, wanted := range map[string]string{
		"127.0.0.1:7440": "parley_console_7440", "[::1]:80": "parley_console_80", "db1": "parley_console", "db1:x;y": "parley_console",
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Host = host
		if got := cookieName(request, false); got != wanted {
			t.Errorf("at %s it is named %s", host, got)
		}
		if got := cookieName(request, true); got != "__Host-"+wanted {
			t.Errorf("at %s it is named %s by TLS", host, got)
		}
	}
}

// A question is answered once, by who was asked, about what was asked, and in time.
func TestQuestionIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	one, other := &session{}, &session{}
	token := one.ask("/delayed withdraw")
	if other.answer(token, "/delayed withdraw") || one.answer("", "/delayed withdraw") {
		t.Error("another answer served")
	}
	if !one.answer(token, "/delayed withdraw") || one.answer(token, "/delayed withdraw") {
		t.Error("it was not answered once")
	}
	if one.answer(one.ask("/delayed now"), "/delayed withdraw") {
		t.Error("the answer to another question served")
	}
	late := one.ask("/delayed now")
	one.questions[late] = openQuestion{about: "/delayed now", asked: time.Now().Add(-answerMost - time.Second)}
	if one.answer(late, "/delayed now") {
		t.Error("an answer that came too late served")
	}
	for range 2 * questionsMost {
		one.ask("x")
	}
	if len(one.questions) > questionsMost {
		t.Errorf("%d questions wait", len(one.questions))
	}
}
