package fault

import "testing"

// documented has severities from the lists of errors in SQL Server's documentation (errors-events, database-engine-events-and-errors).
var documented = map[int][]int{
	10: {15477},
	11: {15223, 15225, 15248, 15249, 15253, 15333, 15335},
	14: {229, 5011},
	15: {
		102, 103, 105, 107, 109, 110, 111, 113, 119, 120, 121, 132, 133, 134, 135, 136, 137, 141, 148, 154, 155, 156, 174, 178, 189, 191, 195,
		258, 336, 346, 352, 2717, 8160,
	},
	16: {
		201, 203, 205, 206, 207, 208, 209, 213, 214, 217, 218, 219, 220, 222, 226, 232, 234, 235, 236, 241, 242, 243, 244, 245, 248, 256, 257,
		259, 264, 266, 271, 272, 273, 281, 291, 293, 294, 295, 305, 313, 350, 402, 447, 448, 470, 506, 2111, 2715, 3902, 3930, 4104, 4121, 7116,
		7135, 8114, 8115, 8137, 8146, 8169, 9402, 15240, 15246, 15247, 15336, 16916,
	},
}

// printed has those that a server prints otherwise than the lists say, as public outputs show: its binder raises 104 to 116, 331 and 334
// at 16, the parser 319 at 15, and CREATE DATABASE 262 at 14.
var printed = map[int]int{104: 16, 108: 16, 116: 16, 262: 14, 319: 15, 331: 16, 334: 16}

func TestSeveritiesAreDocumented(t *testing.T) {
	t.Parallel()
	for severity, numbers := range documented {
		for _, number := range numbers {
			if _, found, known := Text(number); !known || found != severity {
				t.Errorf("%d has severity %d (it is there: %t), not %d", number, found, known, severity)
			}
		}
	}
	for number, severity := range printed {
		if _, found, known := Text(number); !known || found != severity {
			t.Errorf("%d has severity %d (it is there: %t), not %d", number, found, known, severity)
		}
	}
}
