package catalog_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

// modelRoute is a route as the specification speaks of it; "" is any.
type modelRoute struct {
	service, instance, address, mirror string
	isExpired                          bool
}

// The matching of spec 6.2 and 6.3, written step by step and by sets: what a conversation may get, whatever it draws among equals.
// Local services are those that the database has; own is its instance.
func mayFind(routes []modelRoute, service, instance, own string, local []string) map[sqltest.Way]bool {
	alive := slices.DeleteFunc(slices.Clone(routes), func(r modelRoute) bool { return r.isExpired })
	where := func(keep func(modelRoute) bool) (found []modelRoute) {
		for _, r := range alive {
			if keep(r) {
				found = append(found, r)
			}
		}
		return found
	}
	isHere := func(instance string) bool {
		return slices.Contains(local, service) && (instance == "" || instance == own)
	}

	if instance != "" {
		if found := where(func(r modelRoute) bool { return r.service == service && r.instance == instance }); len(found) > 0 {
			return choices(found, service, instance, isHere(instance))
		}
	}
	if found := where(func(r modelRoute) bool { return r.service == service && r.instance == "" }); len(found) > 0 {
		return choices(found, service, instance, isHere(instance))
	}
	if instance == "" {
		answers := map[sqltest.Way]bool{}
		for _, named := range where(func(r modelRoute) bool { return r.service == service && r.instance != "" }) {
			found := where(func(r modelRoute) bool { return r.service == service && r.instance == named.instance })
			maps.Copy(answers, choices(found, service, named.instance, isHere(named.instance)))
		}
		if len(answers) > 0 {
			return answers
		}
	}
	if found := where(func(r modelRoute) bool { return r.service == "" && r.instance == "" }); len(found) > 0 {
		return choices(found, service, instance, isHere(instance))
	}
	if instance != "" && (instance != own || isHere(instance)) {
		return map[sqltest.Way]bool{{Address: "LOCAL", Instance: instance}: true}
	}
	return map[sqltest.Way]bool{{Instance: instance}: true}
}

// choices is 6.3: a mirror, LOCAL if the service is here, the network, TRANSPORT. When it is not here, another database may have it.
func choices(found []modelRoute, service, instance string, isHere bool) map[sqltest.Way]bool {
	classes := map[string][]string{}
	for _, r := range found {
		switch hop := strings.ToLower(strings.TrimSuffix(r.address, "/")); {
		case r.mirror != "":
			classes["mirror"] = append(classes["mirror"], hop+","+strings.TrimPrefix(strings.ToLower(r.mirror), "tcp://"))
		case hop == "local":
			classes["local"] = append(classes["local"], "LOCAL")
		case hop == "transport":
			address := ""
			if rest, ok := strings.CutPrefix(strings.ToLower(service), "tcp://"); ok {
				address = "tcp://" + strings.Split(rest, "/")[0]
			}
			classes["transport"] = append(classes["transport"], address)
		default:
			classes["network"] = append(classes["network"], hop)
		}
	}
	answers := map[sqltest.Way]bool{}
	answer := func(addresses []string, add func(address string) sqltest.Way) map[sqltest.Way]bool {
		for _, address := range addresses {
			answers[add(address)] = true
		}
		return answers
	}
	plain := func(address string) sqltest.Way { return sqltest.Way{Address: address, Instance: instance} }
	remote := classes["network"]
	if len(remote) == 0 {
		remote = classes["transport"]
	}
	switch {
	case len(classes["mirror"]) > 0:
		return answer(classes["mirror"], plain)
	case len(classes["local"]) > 0 && (isHere || len(remote) == 0):
		return answer(classes["local"], plain)
	case len(classes["local"]) > 0:
		return answer(remote, func(address string) sqltest.Way {
			return sqltest.Way{Address: "LOCAL", Otherwise: address, Instance: instance}
		})
	}
	return answer(remote, plain)
}

func TestRouteMatchingFollowsTheModel(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	own := sqltest.Value[string](b.Session, "select service_broker_guid::text from parley.databases")
	b.Exec("select parley.create_service('tcp://here:1/Service', 'Answering')")
	services := []string{sqltest.Here, sqltest.Far, "tcp://here:1/Service", "tcp://There:1/Service"}
	local := []string{sqltest.Here, services[2]}
	instances := []string{"", own, sqltest.Other, sqltest.Third}
	addresses := []string{"LOCAL", "TRANSPORT", "tcp://a:1", "TCP://B:2/", "tcp://c:3"}
	rapid.Check(t, func(r *rapid.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		s.Exec("select parley.drop_route(name) from parley.routes")
		var routes []modelRoute
		for i := range rapid.IntRange(0, 8).Draw(r, "number of routes") {
			m := modelRoute{address: rapid.SampledFrom(addresses).Draw(r, "address"), isExpired: rapid.IntRange(0, 4).Draw(r, "expiry") == 0}
			if m.address != "TRANSPORT" && rapid.IntRange(0, 3).Draw(r, "names a service") > 0 {
				m.service = rapid.SampledFrom(services).Draw(r, "service")
				m.instance = rapid.SampledFrom(instances).Draw(r, "instance")
				if m.instance != "" && m.address != "LOCAL" && rapid.Bool().Draw(r, "has a mirror") {
					m.mirror = rapid.SampledFrom([]string{"tcp://M:9", "tcp://n:9"}).Draw(r, "mirror")
				}
			}
			routes = append(routes, m)
			s.Exec("select parley.create_route($1, $2, nullif($3, ''), nullif($4, ''), 1000, nullif($5, ''))",
				fmt.Sprint(i), m.address, m.service, m.instance, m.mirror)
			if m.isExpired {
				s.Exec("update parley._p_route set expires_at = clock_timestamp() where name = $1", fmt.Sprint(i))
			}
		}
		service := rapid.SampledFrom(services).Draw(r, "to service")
		instance := rapid.SampledFrom(instances).Draw(r, "to instance")
		allowed := mayFind(routes, service, instance, own, local)
		for range 8 {
			got, status := s.FindRoute(service, instance)
			if !allowed[got] {
				r.Fatalf("%q of %q gets %q, allowed are %q, by routes %+v", service, instance, got, slices.Collect(maps.Keys(allowed)), routes)
			}
			isHere := slices.Contains(local, service) && (got.Instance == "" || got.Instance == own)
			if waits := got.Address == "" || (got.Address == "LOCAL" && !isHere); waits != (status != "") {
				r.Fatalf("%q of %q gets %q with status %q", service, instance, got, status)
			}
		}
	})
}

// A conversation always goes the same way, conversations share the ways, and a way that closes moves only those that went by it.
func TestConversationsSpreadOverRoutesAndEachKeepsItsOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for i := range 4 {
		b.CreateRoute(fmt.Sprint("r", i), fmt.Sprintf("tcp://host%d:4022", i), sqltest.Far)
	}
	// One with the same effect as another counts as one with it.
	b.CreateRoute("again", "TCP://Host0:4022", sqltest.Far)
	b.Exec("create table public.conversations as select gen_random_uuid() as id from generate_series(1, 2000)")
	b.Exec(`create function public.ways() returns table (id uuid, address text) language sql as
		$$select c.id, f.address from public.conversations as c, parley._p_find_route('//far/Service', null, c.id) as f$$`)
	b.Exec("create table public.before as select * from public.ways()")
	sqltest.Equal(b.Session, 0, "select count(*) from (select * from public.ways() except select * from public.before) as moved")

	// 500 each on average; 400 is five standard deviations away.
	sqltest.Equal(b.Session, 4, "select count(*) from (select from public.before group by address having count(*) > 400) as fair")

	b.Exec("select parley.drop_route('r2')")
	sqltest.Equal(b.Session, 0, `
		select count(*) from public.ways() as n join public.before as o using (id) where n.address <> o.address and o.address <> 'tcp://host2:4022'`)
	sqltest.Equal(b.Session, 3, "select count(distinct address) from public.ways()")
}

func TestConversationsSpreadOverInstances(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoutes(sqltest.Route{Address: "tcp://a:1", Service: sqltest.Far, Instance: sqltest.Other}, sqltest.Route{Address: "tcp://b:1", Service: sqltest.Far, Instance: sqltest.Third})
	sqltest.Equal(b.Session, fmt.Sprintf("tcp://a:1 %s, tcp://b:1 %s", sqltest.Other, sqltest.Third), `
		select string_agg(distinct concat_ws(' ', f.address, f.broker_instance), ', ')
		from generate_series(1, 100) as n, parley._p_find_route('//far/Service', null, md5(n::text)::uuid) as f`)
}

// With many routes a search takes as many probes as with a few.
func TestFindingARouteDoesNotReadThemAll(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(`
		insert into parley._p_route (route_id, name, owner, is_inbound, remote_service_name, address, next_hop, rank)
		select nextval('parley._p_object_id'), 'r' || n, current_user::regrole, false, '//many/' || n, 'tcp://a:1', 'tcp://a:1', 3
		from generate_series(1, 10000) as n`)
	b.Exec("analyze parley._p_route")
	tx := b.Begin()
	for _, service := range []string{sqltest.Here, "//many/77", sqltest.Far} {
		tx.FindRoute(service, "")
	}
	sqltest.Equal(tx, true, `
		select t.seq_scan = 0 and t.idx_scan between 1 and 12 and t.idx_tup_fetch < 20
		from pg_stat_xact_all_tables as t
		where t.schemaname = 'parley' and t.relname = '_p_route'`)
}
