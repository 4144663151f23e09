package process_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// The elements of a loop are parts of a large message: each is in the state once, whether it waits for its turn or is in work, and no more
// when it has ended. So what an instance needs does not grow with how many are in work, and becomes less. It does not run beside other
// tests, whose memory would be counted.
//
//nolint:paralleltest // it counts what the whole process allocates
func TestElementsOfALoopAreKeptOnce(t *testing.T) {
	const count, each = 40, 100_000
	lines := make([]string, count)
	for n := range lines {
		lines[n] = fmt.Sprintf("<Line sku='%d'>%s</Line>", n, strings.Repeat("x", each))
	}
	m, i := begun(t, `
- for_each:
    item: one
    in: order.parts('/Order/Line')
    parallel: 10
    do:
      - receive: {message: answer, follow: [number]}
`, order("1", lines...))
	for ended := range count {
		// Without the element that is kept twice: what is left, and a tenth for the rest of the state.
		if most := (count - ended) * each * 11 / 10; len(i.step.State) > most+10_000 {
			t.Fatalf("with %d elements ended the state has %d bytes, over %d", ended, len(i.step.State), most)
		}
		var before, after runtime.MemStats
		if ended == 0 {
			runtime.ReadMemStats(&before)
		}
		m.publish(answer("1"))
		m.settleAll()
		if ended == 0 {
			runtime.ReadMemStats(&after)
			// A step reads and writes the state some times, also where ten elements are in work. It is run twice here.
			if took := after.TotalAlloc - before.TotalAlloc; took > 40*count*each {
				t.Errorf("a step took %d bytes for a state of %d", took, count*each)
			}
		}
		if i.isOver {
			break
		}
	}
	if !i.isOver {
		t.Error("the loop has not ended")
	}
}
