package builds_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var (
	scriptsFlag = flag.Int("builds.scripts", 0, "how many scripts are played; 0 is as many as the test has by itself")
	seedFlag    = flag.Uint64("builds.seed", 0, "seed of the first script; 0 draws one")
)

// attempts is how often a script has to differ. RECEIVE passes by some messages that a transaction may keep after it went back to a
// savepoint, by 32 marks that numbers of transactions choose: other numbers, another choice.
const attempts = 3

// Two sessions see the same on two builds, whatever they do and in whichever order, and wherever their backends or the server die: results,
// errors, conversations and queues.
func TestBuildsShowTheSame(t *testing.T) {
	command := os.Getenv("PARLEY_TEST_BUILD_BEFORE")
	if command == "" {
		t.Skip("PARLEY_TEST_BUILD_BEFORE names no command of another build")
	}
	compare(t, 100, [2]*world{
		newCrashingWorld(t, "before", installBefore(t, command)), newCrashingWorld(t, "now", installNow(t)),
	})
}

// A backend that is killed in front of any write of a call, or between two calls, and a server that is stopped at once leave what a
// rollback leaves at that place: the sessions see the same as others that have rolled back.
func TestACrashLeavesWhatARollbackLeaves(t *testing.T) {
	scripts := 4
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		scripts = 500
	}
	compare(t, scripts, [2]*world{newWorld(t), newCrashingWorld(t, "crashed", installNow(t))})
}

// compare plays scripts in both worlds.
func compare(t *testing.T, scripts int, worlds [2]*world) {
	t.Helper()
	if *scriptsFlag > 0 {
		scripts = *scriptsFlag
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	var sum deeds
	differed := 0
	for n := range scripts {
		var difference string
		for attempt := range attempts {
			s := newScript(t, worlds, seed+uint64(n))
			if difference = s.play(); difference == "" {
				sum.add(s.deeds)
				break
			}
			differed++
			t.Logf("script %d differs, attempt %d: %s", seed+uint64(n), attempt+1, firstLine(difference))
			// A transaction that is open would be in the way of the next script.
			for _, w := range worlds {
				w.stop()
			}
		}
		if difference != "" {
			t.Fatalf("-builds.seed=%d differs each time: %s", seed+uint64(n), difference)
		}
	}
	t.Logf("seed %d: %d scripts, %+v; %d attempts differed and did not again", seed, scripts, sum, differed)
	if scripts < 20 {
		return
	}
	for _, count := range []int{sum.Received, sum.Refused, sum.Ended, sum.GivenBack, sum.Crashes, sum.Stumbles, sum.Restarts} {
		if count == 0 {
			t.Error("the scripts left something out")
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
