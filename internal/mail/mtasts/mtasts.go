// Package mtasts learns what domains ask of those who send mail to them: which hosts take it, and that these must prove their names.
//
// A domain says in its zone that it has a policy, and under which number; the policy itself is read from a web server of the domain,
// whose certificate proves it. A policy that was read holds until it ends, also when nothing more can be read: so an attacker who blocks
// the domain's zone or web server gains nothing against whoever has sent there before.
//
// Source: RFC 8461, spec/hub-transport.md section 20.
package mtasts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maximumPolicy bounds what is read of a policy, in bytes.
	maximumPolicy = 64 << 10
	// maximumAge bounds how long a policy holds (RFC 8461 section 3.2).
	maximumAge = 31557600 * time.Second
	// readTimeout bounds reading a policy.
	readTimeout = 30 * time.Second
	// checkInterval is how often a domain's zone is asked whether the policy has changed, and how soon what failed is tried again.
	checkInterval = 5 * time.Minute
	// maximumKnown bounds the domains of which is known what they ask; when it is reached all are forgotten.
	maximumKnown = 50_000
)

// The modes of a policy.
const (
	ModeEnforce = "enforce"
	ModeTesting = "testing"
	ModeNone    = "none"
)

// Policy is the policy of a domain.
type Policy struct {
	// ID is its number in the zone; Mode is enforce, testing or none.
	ID, Mode string
	// Hosts are the names of its exchangers; "*.example.com" stands for names below a domain, one label deep.
	Hosts []string
	// Until is how long it holds.
	Until time.Time
}

// Keeper keeps policies, so that they outlast a daemon.
type Keeper interface {
	// Kept is the policy of a domain, or nil.
	Kept(ctx context.Context, domain string) (*Policy, error)
	Keep(ctx context.Context, domain string, policy Policy) error
}

// Policies are those of the domains that mail is sent to.
type Policies struct {
	// Text are the TXT records of a name.
	Text func(ctx context.Context, name string) ([]string, error)
	// Client reads policies; it verifies certificates and follows no redirect. Nil means one that does.
	Client *http.Client
	Keeper Keeper
	Logger *slog.Logger

	mu      sync.Mutex
	checked map[string]checked
}

type checked struct {
	policy *Policy
	until  time.Time
}

// Of is the policy of a domain that holds now, or nil.
func (p *Policies) Of(ctx context.Context, domain string) *Policy {
	domain = strings.ToLower(domain)
	p.mu.Lock()
	known, found := p.checked[domain]
	p.mu.Unlock()
	if found && time.Now().Before(known.until) {
		return holding(known.policy)
	}
	policy := p.check(ctx, domain)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checked == nil || len(p.checked) >= maximumKnown {
		p.checked = make(map[string]checked)
	}
	p.checked[domain] = checked{policy: policy, until: time.Now().Add(checkInterval)}
	return holding(policy)
}

// holding is a policy that asks for something and is not over.
func holding(policy *Policy) *Policy {
	if policy == nil || policy.Mode == ModeNone || time.Now().After(policy.Until) {
		return nil
	}
	return policy
}

// check reads the policy of a domain where it is new, and otherwise gives the one that is kept.
func (p *Policies) check(ctx context.Context, domain string) *Policy {
	kept, err := p.Keeper.Kept(ctx, domain)
	if err != nil {
		p.Logger.WarnContext(ctx, "the kept MTA-STS policy of a domain cannot be read", "domain", domain, "error", err)
	}
	id, err := p.number(ctx, domain)
	if err != nil || id == "" || (kept != nil && kept.ID == id && time.Now().Before(kept.Until)) {
		return kept
	}
	policy, err := p.read(ctx, domain)
	if err != nil {
		p.Logger.WarnContext(ctx, "the MTA-STS policy of a domain cannot be read; an earlier one holds as long as it says",
			"domain", domain, "error", err)
		return kept
	}
	policy.ID = id
	if err := p.Keeper.Keep(ctx, domain, *policy); err != nil {
		p.Logger.WarnContext(ctx, "the MTA-STS policy of a domain cannot be kept", "domain", domain, "error", err)
	}
	return policy
}

// number is the number of the policy in the zone, or "" where there is none.
func (p *Policies) number(ctx context.Context, domain string) (string, error) {
	texts, err := p.Text(ctx, "_mta-sts."+domain)
	if err != nil {
		return "", fmt.Errorf("ask for the policy's number: %w", err)
	}
	return Number(texts), nil
}

// Number is the id in the one TXT record that is about MTA-STS (RFC 8461 section 3.1). "" where there is none, more than one, or one that
// is malformed: then the domain counts as one without a policy.
func Number(texts []string) string {
	id, records := "", 0
	for _, text := range texts {
		if !strings.HasPrefix(text, "v=STSv1;") && text != "v=STSv1" {
			continue
		}
		records++
		id = ""
		for field := range strings.SplitSeq(text, ";") {
			if value, is := strings.CutPrefix(strings.Trim(field, " \t"), "id="); is {
				id = value
			}
		}
	}
	if records != 1 || len(id) > 32 || strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return ""
	}
	return id
}

func (p *Policies) read(ctx context.Context, domain string) (*Policy, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://mta-sts."+domain+"/.well-known/mta-sts.txt", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for the policy: %w", err)
	}
	client := p.Client
	if client == nil {
		client = http.DefaultClient
	}
	client = &http.Client{
		Transport:     client.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("a policy is not to be redirected") },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the policy's server answered %s", response.Status)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "text/plain" {
		return nil, fmt.Errorf("the policy is of type %q and not text/plain", response.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maximumPolicy+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the policy: %w", err)
	case len(text) > maximumPolicy:
		// A part of a policy names a part of the hosts.
		return nil, fmt.Errorf("the policy has more than %d bytes", maximumPolicy)
	}
	return Parse(bytes.NewReader(text))
}

// Parse reads a policy (RFC 8461 section 3.2). Fields that are not known are passed over; of a field that occurs again the first counts.
func Parse(text io.Reader) (*Policy, error) {
	var policy Policy
	fields := make(map[string]string)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found {
			continue
		}
		if name == "mx" {
			policy.Hosts = append(policy.Hosts, strings.ToLower(value))
		}
		if _, again := fields[name]; !again {
			fields[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	policy.Mode = fields["mode"]
	seconds, err := strconv.ParseUint(fields["max_age"], 10, 32)
	switch {
	case fields["version"] != "STSv1":
		return nil, fmt.Errorf("the version of the policy is %q and not STSv1", fields["version"])
	case policy.Mode != ModeEnforce && policy.Mode != ModeTesting && policy.Mode != ModeNone:
		return nil, fmt.Errorf("the mode of the policy is %q", policy.Mode)
	case err != nil:
		return nil, fmt.Errorf("max_age of the policy is %q, and not a number of seconds", fields["max_age"])
	case policy.Mode != ModeNone && len(policy.Hosts) == 0:
		return nil, errors.New("the policy names no host")
	}
	policy.Until = time.Now().Add(min(time.Duration(seconds)*time.Second, maximumAge))
	return &policy, nil
}
