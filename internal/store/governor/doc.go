// Package governor protects a system under pressure: it measures resources every two seconds, gives each a level with
// hysteresis, and says which actions are to be taken. Thresholds and actions are rows of the store; which resources there are
// beside the generic ones, and what an action means, the system says. docs/internals/store.md has the rules.
package governor
