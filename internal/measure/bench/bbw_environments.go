package bench

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed bbw.json
var environmentsFile []byte

// Environment has the expectations of BizTalk's wizard of a set of servers.
type Environment struct {
	Name  string `json:"name"`
	Short string `json:"short"`
	// Messaging and Orchestration are messages a second, by the edition of the wizard: "later" or "earlier".
	Messaging     map[string]float64 `json:"messaging"`
	Orchestration map[string]float64 `json:"orchestration"`
	// Limits of processors in percent: of the receiving, the sending and the database's server.
	ProcessorMessaging     [3]float64 `json:"processor_messaging"`
	ProcessorOrchestration [3]float64 `json:"processor_orchestration"`
}

// Environments are those of BizTalk's wizard, and those of a text like bbw.json, if there is one.
func Environments(further []byte) (all []Environment, err error) {
	for _, text := range [][]byte{environmentsFile, further} {
		var some []Environment
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &some); err != nil {
			return nil, fmt.Errorf("read environments: %w", err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// Targets are the rates that the original expects of a scenario, by edition.
func (e Environment) Targets(scenario BBWScenario) map[string]float64 {
	targets, _ := e.limits(scenario)
	return targets
}

// limits are the rates by edition, and the limits of the three processors.
func (e Environment) limits(scenario BBWScenario) (targets map[string]float64, processors [3]float64) {
	if scenario == BBWOrchestration {
		return e.Orchestration, e.ProcessorOrchestration
	}
	return e.Messaging, e.ProcessorMessaging
}

// environment gives the one that was chosen; one of the user's replaces one of the original's with its name.
func (c BBWConfig) environment() (Environment, error) {
	all, err := Environments(c.Further)
	if err != nil {
		return Environment{}, err
	}
	var names []string
	for _, e := range slices.Backward(all) {
		if e.Name == c.Environment {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Environment{}, fmt.Errorf("environment %q is unknown: there are %s", c.Environment, strings.Join(names, ", "))
}

// Threshold is the rate that the original asks for in one environment.
type Threshold struct {
	Environment string  `json:"environment"`
	Edition     string  `json:"edition"`
	Rate        float64 `json:"rate"` // messages a second
	IsAbove     bool    `json:"is_above"`
}

// thresholds compares rates with those that the original asks for in all environments: both have to be above.
func (c BBWConfig) thresholds(received, processed float64) ([]Threshold, error) {
	all, err := Environments(c.Further)
	if err != nil {
		return nil, err
	}
	list := []Threshold{}
	for _, edition := range []string{"earlier", "later"} {
		for _, e := range all {
			if rate := e.Targets(c.Scenario)[edition]; rate > 0 {
				list = append(list, Threshold{e.Name, edition, rate, received > rate && processed > rate})
			}
		}
	}
	return list, nil
}
