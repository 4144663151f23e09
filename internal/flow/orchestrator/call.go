package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/flow/process"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// do runs the instances of all deliveries.
func (c *call) do(ctx context.Context) error {
	for _, item := range c.items {
		if item.Message != 0 {
			m, err := ofClaim(item).message()
			if err != nil {
				return err
			}
			c.messages[item.Message] = m
		}
	}
	groups := grouped(c.items)
	keys := []string{}
	for _, group := range groups {
		if key := group[0].OrderKey; key != nil && *key != "" {
			keys = append(keys, *key)
		}
	}
	byKey, err := c.open(ctx, keys)
	if err != nil {
		return err
	}
	for _, group := range groups {
		key := ""
		if group[0].OrderKey != nil {
			key = *group[0].OrderKey
		}
		switch {
		case key == "":
			i := c.fresh(group[0], "")
			c.instances, c.done = append(c.instances, i), append(c.done, group[0])
			c.advanceOrFail(ctx, i)
		case strings.HasPrefix(key, "i"):
			c.toInstance(ctx, key, group, byKey[key])
		default:
			c.toConvoy(ctx, key, group, byKey[key])
		}
	}
	for _, i := range c.instances {
		if i.failure != nil && c.failure == nil {
			return i.failure
		}
	}
	return nil
}

// open locks and reads the instances of keys.
func (c *call) open(ctx context.Context, keys []string) (map[string][]*instance, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	begun, err := flowstore.BeginStep(ctx, c.tx, c.runner.config.Host, c.of.Name, keys)
	if err != nil {
		return nil, err
	}
	byKey, byNumber := map[string][]*instance{}, map[int64]*instance{}
	for n := range begun {
		b := &begun[n]
		i := byNumber[b.Instance] // of a convoy and by itself
		if i == nil {
			if i, err = c.read(ctx, b); err != nil {
				return nil, err
			}
			byNumber[b.Instance] = i
			c.instances = append(c.instances, i)
		}
		byKey[b.Key] = append(byKey[b.Key], i)
	}
	return byKey, nil
}

// advanceOrFail runs an instance, or records that it fails.
func (c *call) advanceOrFail(ctx context.Context, i *instance) {
	if c.failure != nil {
		i.failure = c.failure
		return
	}
	i.renew()
	c.advance(ctx, i)
}

// fresh makes the instance that a message begins.
func (c *call) fresh(item *flowstore.Claimed, convoyKey string) *instance {
	m := c.messages[item.Message]
	return &instance{
		version: c.of.Version, status: "NEW", convoyKey: convoyKey, parent: item.Message, passed: map[string]int{},
		rest: []*pending{{kind: process.Activated, message: m, cameBy: keyOf(item), isNew: true}},
	}
}

func keyOf(item *flowstore.Claimed) string {
	if item.OrderKey == nil {
		return ""
	}
	return *item.OrderKey
}

// toInstance gives an instance what came for it.
func (c *call) toInstance(ctx context.Context, key string, group []*flowstore.Claimed, found []*instance) {
	c.done = append(c.done, group...)
	number, _ := strconv.ParseInt(key[1:], 10, 64)
	if len(found) == 0 {
		for _, item := range group {
			if item.Message != 0 {
				c.unread = append(c.unread, gone{number, item.Message, key})
			}
		}
		return
	}
	i := found[0]
	for _, item := range group {
		if item.Message != 0 {
			i.rest = append(i.rest, &pending{kind: process.Received, message: c.messages[item.Message], cameBy: key, isNew: true})
		}
	}
	c.advanceOrFail(ctx, i)
}

// toConvoy gives each message of a convoy to the oldest instance that may take it, or has it begin one.
func (c *call) toConvoy(ctx context.Context, key string, group []*flowstore.Claimed, found []*instance) {
	types := c.runner.config.Types()
	for n, item := range group {
		if c.mostRuns > 0 && c.runs >= c.mostRuns && n > 0 {
			return // the rest is given back
		}
		m := c.messages[item.Message]
		var taker *instance
		for _, i := range found {
			if i.fits(m, types) {
				taker = i
				break
			}
		}
		if taker == nil {
			taker = c.fresh(item, key[1:])
			found, c.instances = append(found, taker), append(c.instances, taker)
		} else {
			taker.rest = append(taker.rest, &pending{kind: process.Received, message: m, cameBy: key, isNew: true})
		}
		c.done = append(c.done, item)
		c.advanceOrFail(ctx, taker)
		if taker.failure != nil && c.failure == nil {
			return
		}
	}
}

// asFault gives the fault of a step that failed.
func asFault(err error) *process.Fault {
	if f, is := errors.AsType[*process.Fault](err); is {
		fault := *f
		if fault.Code == "" {
			fault.Code = "process.fault"
		}
		return &fault
	}
	return &process.Fault{
		Code: "process.step", Message: fmt.Sprint(err), Remedy: "Mend the cause, and resume the instance.",
	}
}
