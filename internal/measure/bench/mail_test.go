package bench // The formulas are not exported.

import (
	"math"
	"testing"
)

// The formulas of spec mail 19.2 give the derived figures of its table out of the measured ones.
func TestTheFormulasGiveTheTableOfTheSeed(t *testing.T) {
	t.Parallel()
	for _, c := range mailSeed() {
		megacycles := megacyclesPerMessage(seedMegahertz, c.CPUPercent, c.MessagesPerSecond)
		for name, pair := range map[string][2]float64{
			"mcycles_per_message": {megacycles, c.MegacyclesPerMessage},
			"cycles_per_byte":     {cyclesPerByte(c.MegacyclesPerMessage, c.Size), c.CyclesPerByte},
			"queue_mb_max":        {queueMegabytes(c.QueueMax, c.Size), c.QueueMBMax},
		} {
			// T3 was 475 messages in 1,200 s, which the table rounds to 0.40.
			if math.Abs(pair[0]-pair[1]) > 0.08*pair[1] {
				t.Errorf("%s: %s is %.2f, the seed has %.2f", c.Test, name, pair[0], pair[1])
			}
		}
	}
}

func TestTheMedianOfAFigureIsOfTheRunsThatHaveIt(t *testing.T) {
	t.Parallel()
	figures := medians([]map[string]float64{{"a": 1, "b": 7}, {"a": 3}, {"a": 2}})
	if figures["a"] != 2 || figures["b"] != 7 {
		t.Errorf("the medians are %v", figures)
	}
}
