// Package endpoint is what the adapters of this module share: how a definition that is wrong is refused, how connections are secured, how
// bodies and headers are read, and how inputs are taken that the source keeps until they are acknowledged.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parley-broker/parley/flow/adapter"
)

// Refuse makes an error of problems, where a receiver or sender is made; nil of none.
func Refuse(problems []adapter.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy))
	}
	return errors.Join(errs...)
}

// Wrong is a problem of one setting, or of the address.
func Wrong(message, remedy string, path ...string) []adapter.Problem {
	return []adapter.Problem{{Path: path, Message: message, Remedy: remedy}}
}

// CheckProperties gives what is wrong with a setting of headers and properties.
func CheckProperties(setting string, of map[string]string) []adapter.Problem {
	var problems []adapter.Problem
	for _, header := range slices.Sorted(maps.Keys(of)) {
		namespace, name, found := strings.Cut(of[header], "#")
		if header == "" || !found || namespace == "" || name == "" {
			problems = append(problems, Wrong(fmt.Sprintf("%q is no property", of[header]),
				`Write namespace#Name behind the header, such as "http://shop.example/p#Customer".`, "settings", setting, header)...)
		}
	}
	return problems
}

// Promote gives the promoted properties of headers.
func Promote(of map[string]string, value func(header string) (string, bool)) map[string]any {
	var promoted map[string]any
	for header, property := range of {
		if text, found := value(header); found {
			if promoted == nil {
				promoted = map[string]any{}
			}
			promoted[property] = text
		}
	}
	return promoted
}

// Headers gives the headers of a message, of those properties that it has.
func Headers(of map[string]string, m *adapter.Message) map[string]string {
	headers := map[string]string{}
	for header, property := range of {
		if value := m.Property(property); value != "" {
			headers[header] = value
		}
	}
	return headers
}

// Read reads the body of a message of at most so many bytes; a longer one is refused for good.
func Read(ctx context.Context, m *adapter.Message, most int64) ([]byte, error) {
	opened, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(opened, most+1))
	if closeErr := opened.Close(); err == nil {
		err = closeErr
	}
	if err == nil && int64(len(body)) > most {
		err = Refused(fmt.Errorf("the message has more than %d bytes; raise max_size of the port and of the destination", most))
	}
	if err == nil {
		err = ctx.Err()
	}
	return body, err
}

// Refused is the failure of a message that no retry helps.
func Refused(err error) error {
	return &adapter.Failure{Code: "send.refused", Permanent: true, Err: err}
}

// Away is the failure of a destination as a whole.
func Away(err error) error {
	return &adapter.Failure{Code: "send.unreachable", Unreachable: true, Err: err}
}

// Failed is the failure of a transfer, which is tried again.
func Failed(err error) error { return &adapter.Failure{Code: "send.transport", Err: err} }

// All gives each of so many messages the same failure.
func All(count int, err error) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, count)
	for n := range deliveries {
		deliveries[n].Err = err
	}
	return deliveries
}
