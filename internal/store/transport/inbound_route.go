package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// LocalAddress is the address of a route that ends at this server.
const LocalAddress = "LOCAL"

// transportAddress is that of a route whose address stands in the name of the service.
const transportAddress = "TRANSPORT"

// InboundRoute is a route for what arrives from the network. Those of all databases that a daemon serves are the table of
// its server.
type InboundRoute struct {
	// Name is unique in its database.
	Name string
	// Service is compared byte by byte; "" means any.
	Service string
	// Broker is zero for any.
	Broker pgdb.UUID
	// ExpiresAt is by the clock of this machine; zero for never.
	ExpiresAt time.Time
	// NextHop is LOCAL, TRANSPORT, or tcp://host:port, with a second host:port behind a comma for a mirror.
	NextHop string
	// Rank orders the candidates of one step: 1 with a mirror, 2 LOCAL, 3 network, 4 TRANSPORT.
	Rank int16
}

// ReadInboundRoutes reads the inbound routes of a database, without those that have expired. A change is notified on channel
// parley, with payload "routes".
func ReadInboundRoutes(ctx context.Context, db pgdb.DB) ([]InboundRoute, error) {
	rows, err := db.Query(ctx, `
		select r.name, coalesce(r.remote_service_name, ''), r.broker_instance::uuid, r.next_hop, r.rank,
			extract(epoch from r.expires_at - clock_timestamp())::float8
		from parley._p_route as r
		where r.is_inbound and (r.expires_at is null or r.expires_at > clock_timestamp())
		order by r.route_id`)
	if err != nil {
		return nil, fmt.Errorf("read inbound routes: %w", err)
	}
	routes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r InboundRoute, err error) {
		var left *float64
		err = row.Scan(&r.Name, &r.Service, &r.Broker, &r.NextHop, &r.Rank, &left)
		if left != nil {
			r.ExpiresAt = time.Now().Add(time.Duration(min(*left, 1e9) * float64(time.Second)))
		}
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read inbound routes: %w", err)
	}
	return routes, nil
}

// FindInboundRoute reports where a message goes that has arrived from the network: address is [LocalAddress], also when no route
// matches, or tcp://host:port with ,host:port of a mirror behind it, or "" when the name of the service does not contain the address that
// TRANSPORT requires. When it is LOCAL and no database here takes the message, it goes to otherwise; it is dropped when that is "".
// ToBroker is zero when the conversation is not bound yet. A message whose broker lives here needs no route: do not ask.
//
// This is parley._p_find_inbound_route in memory. That function says what is right.
func FindInboundRoute(
	routes []InboundRoute, toService string, toBroker, conversation pgdb.UUID, now time.Time,
) (address, otherwise string) {
	var candidates []inboundCandidate
	for _, r := range routes {
		if c, ok := r.matches(toService, toBroker, now); ok {
			candidates = append(candidates, c)
		}
	}
	if len(candidates) == 0 {
		return LocalAddress, ""
	}
	best := slices.MinFunc(candidates, func(a, b inboundCandidate) int { return a.compare(b, conversation) })
	address = addressOf(best.NextHop, toService)
	if address != LocalAddress {
		return address, ""
	}
	beside := slices.DeleteFunc(candidates, func(c inboundCandidate) bool {
		return c.step != best.step || c.Broker != best.Broker || c.Rank <= best.Rank
	})
	if len(beside) > 0 {
		next := slices.MinFunc(beside, func(a, b inboundCandidate) int { return a.compare(b, conversation) })
		otherwise = addressOf(next.NextHop, toService)
	}
	return address, otherwise
}

// inboundCandidate is a route that matches, with the step of the search that has found it.
type inboundCandidate struct {
	InboundRoute

	step int
}

func (r InboundRoute) matches(toService string, toBroker pgdb.UUID, now time.Time) (inboundCandidate, bool) {
	c := inboundCandidate{InboundRoute: r}
	switch {
	case !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now):
	case r.Service == "":
		c.step = 5
	case r.Service != toService:
	case r.Broker.IsZero():
		c.step = 2
	case r.Broker == toBroker:
		c.step = 1
	case toBroker.IsZero():
		c.step = 3
	}
	return c, c.step > 0
}

func (c inboundCandidate) compare(o inboundCandidate, conversation pgdb.UUID) int {
	if c.step != o.step {
		return c.step - o.step
	}
	if c.step == 3 && c.Broker != o.Broker {
		return bytes.Compare(lot(conversation, c.Broker.String()), lot(conversation, o.Broker.String()))
	}
	if c.Rank != o.Rank {
		return int(c.Rank) - int(o.Rank)
	}
	return bytes.Compare(lot(conversation, c.NextHop), lot(conversation, o.NextHop))
}

// lot is the lot that a conversation draws for one of several; the lowest wins.
func lot(conversation pgdb.UUID, of string) []byte {
	sum := sha256.Sum256(append(conversation[:], of...))
	return sum[:]
}

func addressOf(nextHop, service string) string {
	if nextHop != transportAddress {
		return nextHop
	}
	return networkAddress(addressInName.FindString(service))
}

var (
	ipv4Compatible = netip.MustParsePrefix("::/96")

	addressInName = regexp.MustCompile(`^[^:/]+://[^/]+`)
	addressParts  = regexp.MustCompile(`^tcp://(?:\[([0-9a-f.]*:[0-9a-f:.]+)\]|([a-z0-9_.-]+)):([0-9]{1,5})/?$`)
	dottedNumbers = regexp.MustCompile(`^[0-9.]+$`)
	hostName      = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$`)
)

// networkAddress is parley._p_network_address: the form in which links are named, or "".
func networkAddress(address string) string {
	parts := addressParts.FindStringSubmatch(asciiLower(address))
	if parts == nil {
		return ""
	}
	port, err := strconv.Atoi(parts[3])
	if err != nil || port < 1 || port > 65535 {
		return ""
	}
	host := ""
	switch {
	case parts[1] != "":
		if ip, err := netip.ParseAddr(parts[1]); err == nil && ip.Is6() && (ip.IsLoopback() || !ipv4Compatible.Contains(ip)) {
			host = "[" + ip.String() + "]"
		}
	case dottedNumbers.MatchString(parts[2]):
		if ip, err := netip.ParseAddr(parts[2]); err == nil {
			host = ip.String()
		}
	case len(parts[2]) <= 253 && hostName.MatchString(parts[2]):
		host = parts[2]
	}
	if host == "" {
		return ""
	}
	return "tcp://" + host + ":" + strconv.Itoa(port)
}

func asciiLower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
