package parleytest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failure is a test that records how it failed instead of failing.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Helper() {}

func (f *failure) Fatalf(format string, arguments ...any) {
	f.text = fmt.Sprintf(format, arguments...)
	runtime.Goexit()
}

// failing runs a wait that is in vain and returns its message.
func failing(t *testing.T, wait func(testing.TB)) string {
	t.Helper()
	f := &failure{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait(f)
	}()
	Receive(t, done, "the end of the wait")
	return f.text
}

func TestWaitInVainFailsWithWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	for what, wait := range map[string]func(testing.TB){
		"a reader": func(t testing.TB) {
			t.Helper()
			receive(t, make(chan int), "a reader", time.Millisecond)
		},
		"the lock is on": func(t testing.TB) {
			t.Helper()
			until(t, "the lock is on", func() bool { return false }, time.Millisecond)
		},
	} {
		if got := failing(t, wait); !strings.Contains(got, what) || !strings.Contains(got, "in vain") {
			t.Errorf("the wait for %q says %q", what, got)
		}
	}
}

func TestWaitEndsWithWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	values := make(chan int, 1)
	values <- 7
	if got := Receive(t, values, "a number"); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
	close(values)
	if got := Receive(t, values, "the end"); got != 0 {
		t.Errorf("a closed channel gives %d, want 0", got)
	}
	asked := 0
	Until(t, "it was asked three times", func() bool { asked++; return asked == 3 })
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

// A wait of a minute asks hundreds of times, and not ten thousand times; a short one ends soon after what it waits for.
func TestWaitAsksLessOftenTheLongerItLasts(t *testing.T) {
	t.Parallel()
	for comes, most := range map[time.Duration]int{20 * time.Millisecond: 5, time.Second: 60, time.Minute: 700} {
		synctest.Test(t, func(t *testing.T) {
			began, asked := time.Now(), 0
			Until(t, "the time has come", func() bool { asked++; return time.Since(began) >= comes })
			if late := time.Since(began) - comes; asked > most || late > max(pollShortest, comes/10) {
				t.Errorf("what comes after %v is asked for %d times, and is there %v later", comes, asked, late)
			}
		})
	}
}

// An answer that takes long is asked for a third of the time.
func TestWaitAsksNoMoreThanAThirdOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		Until(t, "the time has come", func() bool {
			asked++
			<-time.After(20 * time.Millisecond)
			return time.Since(began) >= time.Second
		})
		if asked > 1000/60+2 {
			t.Errorf("asked %d times in a second, for 20 ms each", asked)
		}
	})
}

// A lock that nobody lets go of must end the statement, not the package.
func TestStatementsOfTestsAreCancelledAfterTheirPatience(t *testing.T) {
	t.Parallel()
	var got string
	if err := EmptyDatabase(t).QueryRow(t.Context(), "show statement_timeout").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if timeout, err := time.ParseDuration(strings.Replace(got, "min", "m", 1)); err != nil || timeout != Patience {
		t.Errorf("statement_timeout is %s, want %v", got, Patience)
	}
}
