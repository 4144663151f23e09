package verbs

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// addMatrixFlags adds what only the paper's matrix takes.
func addMatrixFlags(cmd *cobra.Command, config *bench.Config) {
	cmd.Long += `

Without a DSN it makes a private PostgreSQL server of its own, as the scenario dialog does. There are 264 cells for a version of the
server; the paper has 528, for two versions: --all --versions 15,18 measures as many. Each cell that is done has a line in the state,
and is not measured again: a run that was interrupted or killed goes on where it stopped.`
	flags, options := cmd.Flags(), &config.Matrix
	flags.IntSliceVar(&options.Initiators, "initiators", nil, "initiator databases (of 1 to 3)")
	flags.IntSliceVar(&options.Threads, "threads", nil, "sessions of each initiator (of 1 to 50)")
	flags.IntSliceVar(&options.Sizes, "sizes", nil, "bytes of a body (of 100, 1024, 4096, 8192)")
	flags.IntSliceVar(&options.Dialogs, "dialogs", nil, "dialogs that are begun for each that is used (1 or 150)")
	flags.BoolVar(&options.All, "all", false, "all 264 cells")
	flags.StringSliceVar(&options.Versions, "versions", nil, "major versions of PostgreSQL, each on a private server (default one)")
	state := ""
	if history := defaultHistory(); history != "" {
		state = filepath.Join(filepath.Dir(history), "matrix.jsonl")
	}
	flags.StringVar(&options.State, "state", state, "file with a line for each cell that is done; empty for none")
	flag := flags.Lookup("repeat")
	flag.DefValue = "1"
	config.Repeat = 1
}

var errNamedVersions = errors.New("--versions measures each on a private server, and a database is named: unset it, or leave " +
	"--versions out")

// partsOfVersions makes a part of the measurement of each version that is asked for.
func partsOfVersions(config *bench.Config) (parts []func()) {
	for _, version := range config.Matrix.Versions {
		parts = append(parts, func() { config.Dialog.PostgresVersion = version })
	}
	return parts
}

func joinVersions(all []outcome) outcome {
	reports := make([]bench.Report, 0, len(all))
	for _, one := range all {
		reports = append(reports, *one.(*bench.Report)) //nolint:forcetypeassert // as measured
	}
	joined := bench.JoinVersions(reports)
	return &joined
}
