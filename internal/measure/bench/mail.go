package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/measure/postfix"
)

// MailOptions state how mail is measured, beside what Config states.
type MailOptions struct {
	// Messages is how many a run by SMTP has; 0: as many as their size suggests.
	Messages int
	// ServerCache is shared_buffers of the private server in MB; 0: 1,024.
	ServerCache int
	// Destinations is for how many domains messages wait, where that is measured; 0: a thousand.
	Destinations int
	// Steady is how long the rate that a search has found is held; 0: not at all.
	Steady time.Duration
}

const (
	// mailSessions is how many connections smtp-source has.
	mailSessions = 20
	// mailBytesOfRun bounds what a run brings in, and mailMessagesOfRun its messages.
	mailBytesOfRun    = 500_000_000
	mailMessagesOfRun = 5000
	mailMessagesLeast = 50
	// mailSubmitters and mailSubmitted are the sessions of the variants that submit by SQL, and the bytes of their messages.
	mailSubmitters = 16
	mailSubmitted  = 2048
	mailBatch      = 1000
)

// The sizes of the seed: its megabytes are of 1000 times 1024.
const (
	mail25KB = 26_300
	mail57KB = 58_400
	mail80KB = 82_000
	mail1MB  = 1_024_000
	mail5MB  = 5 * mail1MB
	mail10MB = 10 * mail1MB
)

// The body caches of the variant that is about them.
const (
	mailSmallCache = 128 << 20
	mailLargeCache = 512 << 20
)

// mailVariant is a variant with its trials.
type mailVariant struct {
	Variant
	trials func(b *bench, variant string) []trial
}

func mailVariants() []mailVariant {
	const smtp = "in from smtp-source, out to smtp-sink, Postfix beside it; bodies of "
	return []mailVariant{
		{Variant{"smtp_25k", smtp + "25 KB"}, relayedTrials(mail25KB)},
		{Variant{"smtp_57k", smtp + "57 KB"}, relayedTrials(mail57KB)},
		{Variant{"smtp_80k", smtp + "80 KB"}, relayedTrials(mail80KB)},
		{Variant{"smtp_1m", smtp + "1 MB"}, relayedTrials(mail1MB)},
		{Variant{"smtp_5m", smtp + "5 MB"}, relayedTrials(mail5MB)},
		{Variant{"smtp_10m", smtp + "10 MB"}, relayedTrials(mail10MB)},
		{Variant{"smtp_mix", smtp + "all sizes from 25 KB to 5 MB"}, mixedTrials},
		{Variant{"cache", "5 MB to a sink that is slow for a while, with a body cache of 128 MB and of 512 MB"}, cacheTrials},
		{Variant{"rate", "the highest rate that is sustained, bodies of 25 KB, offered at a constant rate for --duration each"}, rateTrials},
		{Variant{"send_sql", "parley_mail.send of 2 KB, one a transaction, 16 sessions, against a bare INSERT"}, submitTrials},
		{Variant{"send_sql_batch", "parley_mail.send_batch of 2 KB to 1,000 recipients a call, against a bare INSERT"}, submitBatchTrials},
		{Variant{"destinations", "--messages that wait for --destinations domains, of which one is slow and one dead"}, destinationTrials},
	}
}

func mailScenario() Scenario {
	s := Scenario{
		Name:    "mail",
		Short:   "mail: in and out by SMTP beside Postfix, submission by SQL beside a bare INSERT",
		Takes:   TakesMail,
		seed:    mailSeed(),
		hasSize: true,
		servers: func(c Config) map[string]string { return mailServerSettings(c.Mail.ServerCache) },
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range mailVariants() {
				if b.wants(v.Name) {
					trials = append(trials, v.trials(b, v.Name)...)
				}
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range mailVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// relayedTrials measure messages of a size through Parley, and through Postfix where that can be.
func relayedTrials(size int) func(b *bench, variant string) []trial {
	return func(b *bench, variant string) []trial { return relayedTrialsOf(b, variant, b.mailLoad(size)) }
}

func relayedTrialsOf(b *bench, variant string, load mailLoad) []trial {
	trials := []trial{b.relayedTrial(variant, systemParley, load)}
	if err := postfix.RequireRelay(); err != nil {
		b.settled["postfix"] = fmt.Sprintf("not there: %v", err)
		return trials
	}
	b.settled["postfix"] = "there"
	return append(trials, b.relayedTrial(variant, systemPostfix, load))
}

// mixedTrials measure messages of several sizes at the same time.
func mixedTrials(b *bench, variant string) []trial {
	return relayedTrialsOf(b, variant, mailLoad{
		size: meanSize(mailMix), mix: mailMix, messages: or(b.Mail.Messages, mailMessagesOfRun/2), sessions: or(b.Sessions, mailSessions),
		cache: mailLargeCache,
	})
}

// cacheTrials measure the same load with a body cache that holds what waits, and with one that does not.
func cacheTrials(b *bench, variant string) []trial {
	var trials []trial
	for _, step := range []struct {
		operation string
		cache     int64
	}{{"cache_128", mailSmallCache}, {"cache_512", mailLargeCache}} {
		load := b.mailLoad(mail5MB)
		load.cache, load.delay = step.cache, time.Second
		t := b.relayedTrial(variant, systemParley, load)
		t.result.Operation, t.result.isRelayed = step.operation, false
		if step.cache == mailSmallCache {
			t.result.Base = "cache_512"
		}
		trials = append(trials, t)
	}
	return trials
}

// mailLoad is the load of a run with messages of a size, or of the size that was asked for.
func (b *bench) mailLoad(size int) mailLoad {
	size = or(b.Size, size)
	messages := min(mailMessagesOfRun, max(mailMessagesLeast, mailBytesOfRun/size))
	return mailLoad{size: size, messages: or(b.Mail.Messages, messages), sessions: or(b.Sessions, mailSessions), cache: mailLargeCache}
}

func (b *bench) relayedTrial(variant, system string, load mailLoad) trial {
	var runs []map[string]float64
	return trial{
		result: Result{System: system, Variant: variant, Sessions: load.sessions, Size: load.size, Batch: 1, isRelayed: true},
		run: func(ctx context.Context) (float64, error) {
			rate, figures, err := b.relayMail(ctx, system, load)
			runs = append(runs, figures)
			return rate, err
		},
		conclude: func(r *Result) { r.Figures = medians(runs) },
	}
}
