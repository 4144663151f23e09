package verbs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/schemafile"
)

// carryImported puts the schemas among imported files into the message types that were made of them, so that they are written beside these.
// A schema that needs files which are not there is left out: apply says so.
func carryImported(result *biztalk.Result, names []string) error {
	var all map[string]map[string]map[string]json.RawMessage
	if err := json.Unmarshal(result.Definitions, &all); err != nil {
		return fmt.Errorf("read the imported definitions: %w", err)
	}
	for _, settings := range all["message type"] {
		var schema schemafile.Schema
		if json.Unmarshal(settings["schema"], &schema) != nil || schema.File == "" {
			continue
		}
		for _, name := range names {
			if !strings.EqualFold(filepath.Base(name), schema.File) {
				continue
			}
			carried, err := schemafile.Read(os.DirFS(filepath.Dir(name)), filepath.Base(name))
			if err != nil {
				continue
			}
			if settings["schema"], err = json.Marshal(carried); err != nil {
				return fmt.Errorf("carry schema %s: %w", name, err)
			}
		}
	}
	written, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the imported definitions: %w", err)
	}
	result.Definitions = written
	return nil
}
