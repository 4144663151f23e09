package mtasts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/mtasts"
)

// answering is a transport that gives one answer.
type answering struct {
	kind, text string
	bounded    *bool
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, is := r.Context().Deadline()
	*a.bounded = is && time.Until(deadline) <= 30*time.Second && time.Until(deadline) > 10*time.Second
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(strings.NewReader(a.text)), Request: r,
	}, nil
}

// forgetting keeps nothing, and says so.
type forgetting struct{ asked int }

func (f *forgetting) Kept(context.Context, string) (*mtasts.Policy, error) {
	f.asked++
	return nil, errors.New("no connection")
}

func (f *forgetting) Keep(context.Context, string, mtasts.Policy) error {
	return errors.New("no connection")
}

func TestPolicyIsBoundedAndOfItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, text string
		isRead           bool
	}{
		{"as it is to be", "text/plain; charset=utf-8", policy, true},
		{"another type", "text/html", policy, false},
		{"no type", "", policy, false},
		{"64 KB", "text/plain", strings.Repeat("x: y\n", (64<<10-len(policy))/5) + policy, true},
		{"more than 64 KB", "text/plain", strings.Repeat("x: y\n", 64<<10/5+1) + policy, false},
	} {
		d, isBounded := newDomain(t), false
		d.client = &http.Client{Transport: answering{c.kind, c.text, &isBounded}}
		if got := d.policies().Of(t.Context(), "example.com"); (got != nil) != c.isRead || !isBounded {
			t.Errorf("%s: the policy is %+v; reading it is bounded: %v", c.name, got, isBounded)
		}
	}
}

// A policy holds a year at most, and no shorter than it says.
func TestPolicyHoldsAsLongAsItSays(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]time.Duration{"60": time.Minute, "31557600": 31557600 * time.Second, "4000000000": 31557600 * time.Second} {
		got, err := mtasts.Parse(strings.NewReader(strings.Replace(policy, "86400", written, 1)))
		if err != nil || time.Until(got.Until) > want || time.Until(got.Until) < want-time.Minute/2 {
			t.Errorf("max_age %s: %+v, %v", written, got, err)
		}
	}
	if _, err := mtasts.Parse(strings.NewReader(strings.Replace(policy, "86400", "4294967296", 1))); err == nil {
		t.Error("an age beyond 32 bits was believed")
	}
}

// zone has no policies, and counts what it is asked.
type zone struct{ asked map[string]int }

func newZone() *zone { return &zone{asked: make(map[string]int)} }

func (z *zone) policies() *mtasts.Policies {
	return &mtasts.Policies{Text: func(_ context.Context, name string) ([]string, error) {
		z.asked[name]++
		return nil, nil
	}, Keeper: new(forgetting), Logger: slog.New(slog.DiscardHandler)}
}

// A daemon asks once in five minutes, whatever came of it; a policy that cannot be kept holds all the same.
func TestZoneIsAskedOnceInFiveMinutes(t *testing.T) {
	t.Parallel()
	d, keeper := newDomain(t), new(forgetting)
	policies := d.policies()
	policies.Keeper = keeper
	for range 3 {
		if got := policies.Of(t.Context(), "example.com"); got == nil {
			t.Fatal("a policy that is not kept does not hold")
		}
	}
	if keeper.asked != 1 || d.reads.Load() != 1 {
		t.Errorf("asked %d times, read %d times", keeper.asked, d.reads.Load())
	}
	synctest.Test(t, func(t *testing.T) {
		z := newZone()
		policies, began := z.policies(), time.Now()
		for _, c := range []struct {
			at    time.Duration
			asked int
		}{{0, 1}, {5*time.Minute - 1, 1}, {5 * time.Minute, 2}, {10*time.Minute - 1, 2}, {10 * time.Minute, 3}} {
			select {
			case <-time.After(c.at - time.Since(began)):
			case <-t.Context().Done():
			}
			policies.Of(t.Context(), "example.com")
			if asked := z.asked["_mta-sts.example.com"]; asked != c.asked {
				t.Errorf("after %v the zone was asked %d times, want %d", c.at, asked, c.asked)
			}
		}
	})
}

// The domains that are remembered are bounded: any recipient that somebody writes to names another.
func TestFiftyThousandDomainsAreRemembered(t *testing.T) {
	t.Parallel()
	z := newZone()
	policies := z.policies()
	ask := func(number int) (again bool) {
		name := fmt.Sprintf("d%d.example", number)
		before := z.asked["_mta-sts."+name]
		policies.Of(t.Context(), name)
		return z.asked["_mta-sts."+name] > before
	}
	for number := range 50_000 {
		ask(number)
	}
	if ask(0) {
		t.Error("one of 50,000 domains is forgotten")
	}
	if ask(50_000); !ask(0) {
		t.Error("more than 50,000 domains are remembered")
	}
}
