package verbs

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// addMatrixFlags adds what only the paper's matrix takes.
func addMatrixFlags(cmd *cobra.Command, config *bench.Config) {
	cmd.Long += `

Without a DSN it makes a private PostgreSQL server of its own, as the scenario dialog does. There are 264 cells for a version of the
server; the paper has 528, for two versions: --postgres-version measures the others into the same state, and the page shows both. Each
cell that is done has a line in the state, and is not measured again.`
	flags, options := cmd.Flags(), &config.Matrix
	flags.IntSliceVar(&options.Initiators, "initiators", nil, "initiator databases (of 1 to 3)")
	flags.IntSliceVar(&options.Threads, "threads", nil, "sessions of each initiator (of 1 to 50)")
	flags.IntSliceVar(&options.Sizes, "sizes", nil, "bytes of a body (of 100, 1024, 4096, 8192)")
	flags.IntSliceVar(&options.Dialogs, "dialogs", nil, "dialogs that are begun for each that is used (1 or 150)")
	flags.BoolVar(&options.All, "all", false, "all 264 cells")
	state := ""
	if history := defaultHistory(); history != "" {
		state = filepath.Join(filepath.Dir(history), "matrix.jsonl")
	}
	flags.StringVar(&options.State, "state", state, "file with a line for each cell that is done; empty for none")
	flag := flags.Lookup("repeat")
	flag.DefValue = "1"
	config.Repeat = 1
}
