package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// endpointFacts are the facts of a database about the broker endpoints of its daemons, and of those that it trusts.
type endpointFacts struct {
	listeners    []listener
	certificates []ownCertificate
	keys         map[string]string // state of each key of a peer by its fingerprint
	forwarders   []string          // addresses of peers that pass on
	addresses    map[string]string // next hop tcp://host:port, perhaps with a mirror's, by the service of the dialog that it leads to
}

type listener struct {
	Name      string
	Port      int
	IPAddress *string // nil for all
}

type ownCertificate struct {
	Daemon, Fingerprint string
	NotBefore           time.Time
	Address             *string // advertised
}

// readEndpointFacts reads them; services are those of the dialog.
func readEndpointFacts(ctx context.Context, db parley.DB, services []string) (f endpointFacts, err error) {
	read := func(query string, arguments []any, scan func(row pgx.CollectableRow) error) {
		if err != nil {
			return
		}
		var rows pgx.Rows
		if rows, err = db.Query(ctx, query, arguments...); err == nil {
			_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, scan(row) })
		}
	}
	f.keys, f.addresses = map[string]string{}, map[string]string{}
	read("select e.name, e.port, e.ip_address from parley.tcp_endpoints as e", nil, func(row pgx.CollectableRow) error {
		l, err := pgx.RowToStructByPos[listener](row)
		f.listeners = append(f.listeners, l)
		return err
	})
	read("select c.daemon, c.fingerprint, c.not_before, c.address from parley.broker_certificates as c order by c.daemon", nil,
		func(row pgx.CollectableRow) error {
			c, err := pgx.RowToStructByPos[ownCertificate](row)
			f.certificates = append(f.certificates, c)
			return err
		})
	read("select k.fingerprint, k.state from parley.peer_certificates as k", nil, func(row pgx.CollectableRow) error {
		var fingerprint, state string
		err := row.Scan(&fingerprint, &state)
		f.keys[fingerprint] = state
		return err
	})
	read("select p.address from parley.peers as p where p.is_forwarder and p.address is not null", nil, func(row pgx.CollectableRow) error {
		var address string
		err := row.Scan(&address)
		f.forwarders = append(f.forwarders, address)
		return err
	})
	read(`
		select s.name, r.address
		from unnest($1::text[]) as s (name)
		cross join lateral (select parley._p_leads_to(s.name, null) as address) as r
		where r.address like 'tcp://%' and not parley._p_is_here(s.name, null)`, []any{services}, func(row pgx.CollectableRow) error {
		var service, address string
		err := row.Scan(&service, &address)
		f.addresses[service] = address
		return err
	})
	if err != nil {
		return f, pgdb.StatementError(err, "read the broker endpoints")
	}
	return f, nil
}

// endpointFinding is a finding of one side of a dialog; that of the far one says so.
func endpointFinding(side int, code, level, name, cause, cure string, number int32) Finding {
	f := Finding{
		Code: code, Level: level, Part: PartConfiguration, ObjectKind: "address", ObjectName: name,
		Cause: cause, Cure: &cure, ErrorNumber: &number,
	}
	if side == 1 {
		f.Cause = inFarDatabase + f.Cause
	}
	return f
}

func notChecked(code, name, cause string) Finding {
	return Finding{Code: code, Level: LevelError, Part: PartProblem, ObjectKind: "address", ObjectName: name, Cause: cause}
}

// diagnoseEndpoints compares what the two databases of a dialog say of the network between them: whether the daemons of each listen where
// the routes of the other lead, and whether each trusts the keys of the other's.
func diagnoseEndpoints(ctx context.Context, sides *[2]dialogSide, services []string) ([]Finding, error) {
	var facts [2]endpointFacts
	for i := range sides {
		var err error
		if facts[i], err = readEndpointFacts(ctx, sides[i].db, services); err != nil {
			if _, isRefused := errors.AsType[*pgconn.PgError](err); isRefused {
				why := "What the daemons of " + sideName(i) + " report cannot be read: " + err.Error()
				return []Finding{notChecked("endpoint-not-checked", sideName(i), why)}, nil
			}
			return nil, err
		}
	}
	var found []Finding
	isDirect := false
	for i := range sides {
		for _, service := range sides[1-i].services {
			address, isElsewhere := facts[i].addresses[service]
			if !isElsewhere {
				continue
			}
			if hop := slices.IndexFunc(hosts(address), func(h string) bool { return slices.Contains(facts[i].forwarders, h) }); hop >= 0 {
				found = append(found, notChecked("endpoint-not-checked", address, fmt.Sprintf(
					"The route of %s to the service %q leads to a forwarder: whether that one reaches the daemons of %s cannot be checked from here.",
					sideName(i), service, sideName(1-i))))
				continue
			}
			isDirect = true
			found = append(found, facts[1-i].listensAt(i, service, address)...)
		}
	}
	if isDirect {
		for i := range sides {
			found = append(found, facts[i].trusts(i, facts[1-i])...)
		}
	}
	return found, nil
}

func sideName(side int) string {
	if side == 1 {
		return "the far database"
	}
	return "this database"
}

// hosts gives the addresses of a next hop, each as tcp://host:port.
func hosts(nextHop string) (list []string) {
	for host := range strings.SplitSeq(strings.TrimPrefix(nextHop, "tcp://"), ",") {
		list = append(list, "tcp://"+host)
	}
	return list
}

// listensAt finds out whether a daemon of a database listens at the address to which a route of the other side, from, leads.
func (f endpointFacts) listensAt(from int, service, address string) []Finding {
	if len(f.listeners) == 0 {
		return []Finding{endpointFinding(1-from, "endpoint-missing", LevelError, address, fmt.Sprintf(
			"The route of the other side to the service %q leads here, and no daemon of the database listens for other servers.", service),
			"parley serve --listen :"+address[strings.LastIndexByte(address, ':')+1:], 29950)}
	}
	var known []string
	for _, c := range f.certificates {
		if c.Address != nil {
			known = append(known, *c.Address)
		}
	}
	isThere := func(host string) bool { return slices.Contains(known, host) }
	source := "are reached at"
	if len(known) == 0 {
		source = "listen at"
		for _, l := range f.listeners {
			known = append(known, l.address())
		}
		isThere = func(host string) bool {
			return slices.ContainsFunc(f.listeners, func(l listener) bool { return l.mayBe(host) })
		}
	}
	if slices.ContainsFunc(hosts(address), isThere) {
		return nil
	}
	slices.Sort(known)
	return []Finding{endpointFinding(from, "endpoint-elsewhere", LevelWarning, address, fmt.Sprintf(
		"The route to the service %q leads there, and the daemons of %s %s %s.",
		service, sideName(1-from), source, strings.Join(slices.Compact(known), ", ")),
		fmt.Sprintf("select parley.alter_route('<route>', '%s');  -- unless the address is forwarded to there",
			strings.Replace(known[0], "*", "<host>", 1)), 29950)}
}

func (l listener) address() string {
	host := "*"
	if l.IPAddress != nil {
		host = *l.IPAddress
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(l.Port))
}

// mayBe reports whether a listener may be what answers at tcp://host:port. Of names only the port is compared.
func (l listener) mayBe(address string) bool {
	colon := strings.LastIndexByte(address, ':')
	if port, err := strconv.Atoi(address[colon+1:]); err != nil || port != l.Port {
		return false
	}
	host, err := netip.ParseAddr(strings.Trim(strings.TrimPrefix(address[:colon], "tcp://"), "[]"))
	if err != nil || l.IPAddress == nil {
		return true
	}
	own, err := netip.ParseAddr(*l.IPAddress)
	return err != nil || own.Unmap() == host.Unmap()
}

// trusts finds keys of the other side's daemons that a side does not trust.
func (f endpointFacts) trusts(side int, other endpointFacts) (found []Finding) {
	if len(other.certificates) == 0 {
		return []Finding{notChecked("endpoint-not-checked", sideName(1-side), fmt.Sprintf(
			"No daemon of %s has reported its certificate within a day, so whether %s trusts it cannot be checked.",
			sideName(1-side), sideName(side)))}
	}
	for _, c := range other.certificates {
		name := c.Daemon
		if c.Address != nil {
			name = *c.Address
		}
		who := fmt.Sprintf("The daemon %q of %s has the key %s", c.Daemon, sideName(1-side), c.Fingerprint)
		switch state, isKnown := f.keys[c.Fingerprint]; {
		case !isKnown:
			found = append(found, endpointFinding(side, "peer-unknown", LevelWarning, name,
				who+", which is no peer's: only a certificate authority could vouch for it.",
				"parley pair <host>:4022  -- not needed when the daemon has --authorities", 28034))
		case state != "TRUSTED":
			found = append(found, endpointFinding(side, "peer-not-trusted", LevelError, name,
				fmt.Sprintf("%s, and the peer that it belongs to is %s.", who, state),
				"select * from parley.peers;  -- then parley.drop_peer and parley pair, if it may be trusted", 28034))
		case c.NotBefore.After(time.Now()):
			found = append(found, endpointFinding(1-side, "certificate-not-valid-yet", LevelError, name,
				fmt.Sprintf("The certificate of the daemon %q begins at %s: no link can be opened before.",
					c.Daemon, c.NotBefore.Format(time.RFC3339)),
				"-- set the clocks of both servers by NTP", 28023))
		}
	}
	return found
}
