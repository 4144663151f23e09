package bench

import "github.com/parley-broker/parley/internal/measure/statistics"

// SeedColumn is a test of the seed: two processors with two cores of 2,200 MHz each, 4 GB, three disks (spec mail 19.1).
type SeedColumn struct {
	Test                    string  `json:"test"`
	CacheMB                 int     `json:"cache_mb"`
	Limit                   string  `json:"limit"`
	Size                    int     `json:"size"`
	MessagesPerSecond       float64 `json:"messages_per_second"`
	QueueMax                float64 `json:"queue_max"`
	QueueMBMax              float64 `json:"queue_mb_max"`
	CPUPercent              float64 `json:"cpu_percent"`
	MegacyclesPerMessage    float64 `json:"mcycles_per_message"`
	CyclesPerByte           float64 `json:"cycles_per_byte"`
	LogKBPerMessage         float64 `json:"log_kb_per_message,omitempty"`
	LogWritesPerMessage     float64 `json:"log_writes_per_message,omitempty"`
	QueueFileReadsPerSecond float64 `json:"queue_file_reads_per_second"`
	PressurePercent         float64 `json:"pressure_percent"`
}

// seedMegahertz is the frequency of all cores of the seed's machine together.
const seedMegahertz = 8800

func mailSeed() []SeedColumn {
	return []SeedColumn{
		{"T1", 128, "CPU", mail25KB, 159.32, 329, 8.65, 69.86, 38.68, 1470.72, 61.99, 0.58, 0, 0},
		{"T2", 128, "I/O", mail1MB, 14.05, 63, 64.51, 56.03, 351.07, 342.84, 2335, 13.17, 0, 0},
		{"T3", 128, "pressure", mail5MB, 0.40, 29, 148.48, 15.37, 3131.76, 611.67, 0, 0, 567, 31},
		{"T4", 512, "I/O", mail5MB, 2.03, 27, 138.24, 48.00, 2068.69, 404.04, 11295, 64.53, 0, 0},
		{"T5", 512, "I/O", mail10MB, 1.34, 2, 20.48, 40.03, 2591.67, 253.09, 23508, 138.17, 0, 0},
	}
}

// megacyclesPerMessage is the cost of a message, of all cores (spec mail 19.2).
func megacyclesPerMessage(megahertz, cpuPercent, messagesPerSecond float64) float64 {
	return megahertz * cpuPercent / 100 / messagesPerSecond
}

// cyclesPerByte is the same for a byte of it.
func cyclesPerByte(megacycles float64, size int) float64 { return megacycles * 1e6 / float64(size) }

// queueMegabytes is derived, not measured: the longest queue times the size of a message.
func queueMegabytes(queueMax float64, size int) float64 { return queueMax * float64(size) / 1e6 }

// medians gives, for each figure, the median of the runs that have it.
func medians(runs []map[string]float64) map[string]float64 {
	values := map[string][]float64{}
	for _, run := range runs {
		for name, value := range run {
			values[name] = append(values[name], value)
		}
	}
	figures := map[string]float64{}
	for name, all := range values {
		figures[name] = statistics.Median(all)
	}
	return figures
}

// MailFigures are the names of the figures of mail, in the order in which they are shown, with what they are.
func MailFigures() [][2]string {
	return [][2]string{
		{"received_percent", "% of the offered received"},
		{"completed_percent", "% of the offered completed"},
		{"queue_max", "messages waiting, at most"},
		{"queue_mb_max", "the same in MB"},
		{"cpu_percent", "CPU %"},
		{"mcycles_per_message", "Mcycles/message"},
		{"cycles_per_byte", "cycles/byte"},
		{"wal_kb_per_message", "WAL KB/message"},
		{"wal_writes_per_message", "WAL writes/message"},
		{"commits_per_message", "commits/message"},
		{"data_reads", "blocks read by PostgreSQL"},
		{"body_mb_read", "MB of bodies read back"},
		{"acceptance_p50_ms", "acceptance p50 ms"},
		{"acceptance_p95_ms", "acceptance p95 ms"},
		{"acceptance_p99_ms", "acceptance p99 ms"},
		{"end_to_end_p50_ms", "end to end p50 ms"},
		{"end_to_end_p95_ms", "end to end p95 ms"},
		{"end_to_end_p99_ms", "end to end p99 ms"},
		{"probes", "probes"},
		{"pressure_percent", "% of time under pressure"},
		{"memory_mb_max", "memory of the daemon, MB at most"},
		{"memory_growth", "memory at the end / in the middle"},
	}
}
