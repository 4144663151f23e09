package adapter

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Decode reads settings into a struct that has the defaults. A setting that the struct does not know is an error that names it.
func Decode(settings json.RawMessage, into any) error {
	if len(settings) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(settings))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read the settings of the adapter: %w", err)
	}
	return nil
}
