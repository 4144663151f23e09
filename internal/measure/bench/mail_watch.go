package bench

import (
	"bufio"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/measure/statistics"
)

// mailSample is how often the queue and the memory of a relay are read.
const mailSample = 200 * time.Millisecond

// mailWatch observes a relay while it works.
type mailWatch struct {
	stop     context.CancelFunc
	ended    chan struct{}
	queueMax int
	memory   []float64 // MB
	before   processorTimes
}

func watchMail(ctx context.Context, relay mailRelay) *mailWatch {
	w := &mailWatch{ended: make(chan struct{}), before: readProcessorTimes()}
	ctx, w.stop = context.WithCancel(ctx)
	go func() {
		defer close(w.ended)
		for waitUntil(ctx, time.Now().Add(mailSample)) {
			// Not cut off: that would cost the connection.
			w.queueMax = max(w.queueMax, relay.waiting(context.WithoutCancel(ctx)))
			if bytes := relay.memory(); bytes > 0 {
				w.memory = append(w.memory, float64(bytes)/1e6)
			}
		}
	}()
	return w
}

// end stops observing and adds the figures.
func (w *mailWatch) end(figures map[string]float64, load mailLoad) {
	after := readProcessorTimes()
	w.stop()
	<-w.ended
	figures["queue_max"] = float64(w.queueMax)
	figures["queue_mb_max"] = queueMegabytes(float64(w.queueMax), load.size)
	if total := after.total - w.before.total; total > 0 {
		figures["cpu_percent"] = 100 * (after.busy - w.before.busy) / total
	}
	addMemory(figures, w.memory)
}

// addMemory adds how much memory the daemon had, and whether it grew: the last quarter against the second.
func addMemory(figures map[string]float64, samples []float64) {
	if len(samples) == 0 {
		return
	}
	for _, sample := range samples {
		figures["memory_mb_max"] = max(figures["memory_mb_max"], sample)
	}
	if quarter := len(samples) / 4; quarter > 0 {
		figures["memory_growth"] = statistics.Median(samples[3*quarter:]) / statistics.Median(samples[quarter:2*quarter])
	}
}

func addCycles(figures map[string]float64, rate float64, size int) {
	percent, isKnown := figures["cpu_percent"]
	megahertz := megahertzOfMachine()
	if !isKnown || megahertz == 0 {
		return
	}
	figures["mcycles_per_message"] = megacyclesPerMessage(megahertz, percent, rate)
	figures["cycles_per_byte"] = cyclesPerByte(figures["mcycles_per_message"], size)
}

// processorTimes are those of the whole machine, as Linux counts them.
type processorTimes struct{ busy, total float64 }

func readProcessorTimes() (t processorTimes) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 { // the times of guests are in those before
			continue
		}
		t.total += value
		if i != 4 && i != 5 { // neither idle nor waiting for a disk
			t.busy += value
		}
	}
	return t
}

// megahertzOfMachine is the frequency of all cores together; 0 where that is not known.
func megahertzOfMachine() float64 {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(name) == "cpu MHz" {
			megahertz, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return megahertz * float64(runtime.NumCPU())
		}
	}
	return 0
}
