package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// levels keep account of how long each resource was at each level since the daemon began.
type levels struct {
	mu        sync.Mutex
	resources map[string]*levelAccount
	highest   governorstore.Level
	active    []string
}

type levelAccount struct {
	state       governorstore.State
	transitions int
	since, last time.Time // when it came to its level, and when it was observed last
	seconds     [governorstore.Floor + 1]float64
	longest     [governorstore.Floor + 1]float64
}

// observe takes what a poll found.
func (l *levels) observe(p governorstore.Pressure, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resources == nil {
		l.resources = make(map[string]*levelAccount)
	}
	l.highest, l.active = p.Level, p.Active
	for _, state := range p.States {
		account := l.resources[state.Resource]
		if account == nil {
			account = &levelAccount{since: now, last: now}
			account.state.Level = governorstore.Normal
			l.resources[state.Resource] = account
		}
		before := account.state.Level
		account.seconds[before] += now.Sub(account.last).Seconds()
		account.longest[before] = max(account.longest[before], now.Sub(account.since).Seconds())
		if state.Level != before {
			account.transitions++
			account.since = now
		}
		account.state, account.last = state, now
	}
}

// read gives the accounts in the order of their names, with the highest level and the actions.
func (l *levels) read() (accounts []levelAccount, highest governorstore.Level, active []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.resources)) {
		accounts = append(accounts, *l.resources[name])
	}
	return accounts, l.highest, slices.Clone(l.active)
}
