package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/verb"
)

// mapTest tries a map on a file.
type mapTest struct {
	env      environment
	program  string
	expect   string
	timeoutS int
	memoryMB int
}

func newTestMapCommand(env environment) *cobra.Command {
	t := &mapTest{env: env}
	cmd := &cobra.Command{
		Use:   "test-map --map M.xsl INPUT... [--expect FILE]",
		Short: "Try a map on a file, and compare what it makes with what it should",
		Long: `Run a map on a file, without a database: a stylesheet (.xsl, .xslt), a compiled map of BizTalk (.btm.cs) or a program of
jq (.jq). The result goes to standard output. With --expect it is compared with a file instead: as XML, so that prefixes, the order of
attributes and white space between elements do not count, or as JSON; each difference is printed with its path. Several inputs are given
to the map as orchestrations do. INPUT is - for standard input.

Exit code 0: the map ran, and the result is as expected; 1: it is not, or the map failed; 2: the command line is not understood. With
--json differences are lines of JSON, and an error is one, with the line of the map and the node of the input.`,
		Example: `  parley flow test-map --map maps/order.xsl order.xml
  parley flow test-map --map maps/order.xsl order.xml --expect expected.xml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.run(func() (int, error) { return t.run(cmd.Context(), args) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&t.program, "map", "", "the map: .xsl, .xslt, .btm.cs or .jq")
	flags.StringVar(&t.expect, "expect", "", "compare the result with this file")
	flags.IntVar(&t.timeoutS, "timeout-s", 0, "seconds of the processor that the map may take (default 10)")
	flags.IntVar(&t.memoryMB, "memory-mb", 0, "megabytes of memory that the map may take (default 512)")
	return cmd
}

// definition gives the map as definitions have it.
func (t *mapTest) definition() (json.RawMessage, error) {
	folder, err := os.OpenRoot(filepath.Dir(t.program))
	if err != nil {
		return nil, &fault.Fault{Message: err.Error(), Err: err, Remedy: "name a map that can be read"}
	}
	defer folder.Close()
	program, err := mapping.Read(folder.FS(), filepath.Base(t.program))
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{t.program: mapping.Definition{
		Language: mapping.LanguageOf(t.program), Program: *program, TimeoutS: t.timeoutS, MemoryMB: t.memoryMB,
	}})
}

func (t *mapTest) run(ctx context.Context, names []string) (exit int, err error) {
	if t.program == "" {
		return 0, verb.Usagef("give the map with --map")
	}
	written, err := t.definition()
	if err != nil {
		return 0, err
	}
	pool := mapping.NewPool(mapping.PoolConfig{Workers: 1})
	defer pool.Close()
	maps, err := mapping.New(written, pool)
	if err != nil {
		return 0, err
	}
	inputs := make([]mapping.Input, len(names))
	for i, name := range names {
		inputs[i] = mapping.Input{Size: -1, Open: func(context.Context) (io.ReadCloser, error) { return t.env.open(name) }}
	}
	out, err := maps.Run(ctx, t.program, inputs)
	if err != nil {
		if f, is := fault.Of(err); is { // the map is named by its file
			return 0, f
		}
		return 0, err
	}
	defer out.Body.Close()
	if t.expect == "" {
		if _, err := io.Copy(t.env.Stdout, out.Body.Reader()); err != nil {
			return 0, err
		}
		_, err := io.WriteString(t.env.Stdout, "\n")
		return 0, err
	}
	return t.compare(out)
}

// compare holds the result against the file that is expected.
func (t *mapTest) compare(out mapping.Output) (exit int, err error) {
	file, err := t.env.open(t.expect)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	opened, err := text.Open(file, "", true)
	if err != nil {
		return 0, fault.InFile(err, t.expect)
	}
	expected, err := io.ReadAll(opened)
	if err != nil {
		return 0, fault.InFile(err, t.expect)
	}
	result, err := out.Body.Bytes()
	if err != nil {
		return 0, err
	}
	differences, err := mapping.Compare(bytes.TrimSpace(result), bytes.TrimSpace(expected), out.ContentType)
	if err != nil {
		return 0, err
	}
	encoder := json.NewEncoder(t.env.Stdout)
	encoder.SetEscapeHTML(false)
	for _, d := range differences {
		if t.env.JSON {
			err = encoder.Encode(d)
		} else {
			_, err = fmt.Fprintln(t.env.Stdout, d)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(differences) > 0 {
		return exitFailed, nil
	}
	return 0, nil
}
