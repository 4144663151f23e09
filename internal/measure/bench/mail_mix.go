package bench

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/parley-broker/parley/internal/measure/postfix"
)

// mailPart is which part of the messages of a load has a size.
type mailPart struct{ size, percent int }

// mailMix has all sizes of the seed but the largest. Of its bytes two fifths are of the messages of 5 MB.
var mailMix = []mailPart{{mail25KB, 70}, {mail57KB, 15}, {mail80KB, 10}, {mail1MB, 4}, {mail5MB, 1}}

// meanSize is the mean size of a message in bytes.
func meanSize(mix []mailPart) int {
	sum := 0
	for _, part := range mix {
		sum += part.size * part.percent
	}
	return sum / 100
}

// injections are the parts of a load that smtp-source sends. Each part has connections of its own, at least one; what is left over by
// rounding is of the first size.
func (load mailLoad) injections(address string, messages int) []postfix.Injection {
	mix := load.mix
	if mix == nil {
		mix = []mailPart{{load.size, 100}}
	}
	left := messages
	var all []postfix.Injection
	for n, part := range slices.Backward(mix) {
		count := messages * part.percent / 100
		if n == 0 {
			count = left
		}
		left -= count
		if count == 0 {
			continue
		}
		all = append(all, postfix.Injection{
			Address: address, Sessions: max(1, load.sessions*part.percent/100), Messages: count, Size: part.size,
			Sender: mailSender, Recipient: "someone@" + mailDomain,
		})
	}
	return all
}

// injectAll sends all of them at the same time.
func injectAll(ctx context.Context, injections []postfix.Injection) error {
	errs := make([]error, len(injections))
	var sending sync.WaitGroup
	for n, injection := range injections {
		sending.Go(func() { errs[n] = postfix.Inject(ctx, injection) })
	}
	sending.Wait()
	return errors.Join(errs...)
}
