package endpoint_test

import (
	"net"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	"github.com/parley-broker/parley/internal/broker/transport/link"
)

// listen opens a socket for a daemon.
func listen(t *testing.T) (network *endpoint.Network, address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &endpoint.Network{Listener: listener, Link: link.Config{Plaintext: true}}, "tcp://" + listener.Addr().String()
}

// open lets everybody send to the target service.
func (b *base) open() {
	b.exec("select parley.grant('SEND', 'service', 'target " + b.name + "', 'public')")
}

// route leads to a service elsewhere.
func (b *base) route(service, address string) {
	b.exec("select parley.create_route($1, service_name => $2, address => $3)", "to "+service, service, address)
}

// twoServers are two databases, each served by a daemon of its own that knows the way to the other.
func twoServers(t *testing.T) (a, b *base, first *served, addressB string) {
	t.Helper()
	a, b = newBase(t, "a"), newBase(t, "b")
	b.open()
	fromA, addressA := listen(t)
	fromB, at := listen(t)
	a.route("target b", at)
	b.route("source a", addressA)
	first = serve(t, "first", endpoint.Config{Network: fromA}, a)
	serve(t, "second", endpoint.Config{Network: fromB}, b)
	return a, b, first, at
}

func TestTwoDaemonsConverseOverSockets(t *testing.T) {
	t.Parallel()
	a, b, da, _ := twoServers(t)
	converse(a, b, da.log)
}

func TestTheDatabaseShowsWhereItsDaemonsListen(t *testing.T) {
	t.Parallel()
	a := newBase(t, "a")
	network, address := listen(t)
	forwards := serve(t, "first", endpoint.Config{Network: network, Forward: true, ForwardSize: 5 << 20, Name: "first"}, a)
	silent := serve(t, "second", endpoint.Config{Name: "second"}, a)
	a.await(forwards.log, `
		select count(*) = 1 and min(e.name) = 'first' and min(e.state_desc) = 'STARTED' and bool_and(e.is_message_forwarding_enabled)
			and min(e.message_forwarding_size) = 5 and min('tcp://' || t.ip_address || ':' || t.port) = $1
		from parley.service_broker_endpoints as e join parley.tcp_endpoints as t using (endpoint_id)`, address)
	silent.stop()
	forwards.stop()
	a.await(forwards.log, "select count(*) = 0 from parley.service_broker_endpoints")
}

func TestTheDatabaseShowsTheLinksOfItsDaemons(t *testing.T) {
	t.Parallel()
	a, b, da, addressB := twoServers(t)
	a.send(a.begin("b"), 1, 5)
	b.awaitGot(da.log, 5)
	a.await(da.log, "select count(*) = 1 from parley.dm_broker_connections where state_desc = 'LOGGED_IN' and not is_accept and total_fragments_sent >= 5 and 'tcp://' || address = $1",
		addressB)
	b.await(da.log, "select count(*) = 1 from parley.dm_broker_connections where is_accept and total_bytes_received > 0")
	counter := "select cntr_value >= $2 from parley.dm_os_performance_counters where counter_name = $1 and instance_name = ''"
	b.await(da.log, counter, "Enqueued Transport Msgs Total", 5)
	b.await(da.log, counter, "Open Connection Count", 1)
	for _, name := range []string{
		"Message Fragment P5 Sends/sec", "Message Fragment Sends/sec", "Msg Fragment Send Size Avg",
		"Send I/O Bytes Total", "Send I/O bytes/sec", "Send I/Os/sec", "Send I/O Len Avg",
	} {
		a.await(da.log, counter, name, 1)
	}
	for _, name := range []string{
		"Enqueued Transport Msgs/sec", "Message Fragment Receives/sec", "Msg Fragment Recv Size Avg",
		"Receive I/O Bytes Total", "Receive I/O bytes/sec", "Receive I/Os/sec", "Receive I/O Len Avg",
	} {
		b.await(da.log, counter, name, 1)
	}
	// Of two daemons the average is not the sum of both.
	length := value[int64](a, "select value from parley._p_transport_counters() where name = 'Send I/O Len Avg'")
	a.exec(`insert into parley._p_daemon_report (daemon_id, daemon, reported_at, endpoint, connections, forwarded, figures)
		select gen_random_uuid(), 'another', now(), 'null', '[]', '[]', figures from parley._p_daemon_report`)
	if both := value[int64](a, "select value from parley._p_transport_counters() where name = 'Send I/O Len Avg'"); both > length*3/2 {
		t.Errorf("two daemons send %d bytes at a time, one %d", both, length)
	}
	a.exec("delete from parley._p_daemon_report where daemon = 'another'")
	da.stop()
	if left := value[int](a, "select count(*) from parley._p_daemon_report"); left != 0 {
		t.Errorf("a daemon that has stopped has left %d reports", left)
	}
}

func TestCountersShowWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	b.open()
	fromA, _ := listen(t)
	fromB, addressB := listen(t)
	a.route("target b", addressB)
	da := serve(t, "first", endpoint.Config{Network: fromA}, a)
	serve(t, "second", endpoint.Config{Network: fromB}, b)
	goOn := b.standStill()
	a.send(a.begin("b"), 1, 1)
	moves := "select count(*) = 2 from parley.dm_os_performance_counters where cntr_value > 0 and counter_name = any ($1::text[])"
	a.await(da.log, moves, []string{"Current Msg Frags for Send I/O", "Current Bytes for Send I/O"})
	b.await(da.log, moves, []string{"Pending Msg Frags for Recv I/O", "Pending Bytes for Recv I/O"})
	goOn()
	b.awaitGot(da.log, 1)
	a.await(da.log, "select value = 0 from parley._p_transport_counters() where name = 'Current Bytes for Send I/O'")
	b.await(da.log, "select value = 0 from parley._p_transport_counters() where name = 'Pending Bytes for Recv I/O'")
}

func TestADestinationWithoutAnEndpointFailsWithAReasonAndCostsOthersNothing(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	a.route("target c", "tcp://127.0.0.1:4022")
	d := serve(t, "one", endpoint.Config{}, a, b)
	a.send(a.begin("c"), 1, 3)
	a.await(d.log, "select attempts >= 1 from parley._p_destination")
	if status := value[string](a, "select status from parley._p_destination"); !strings.Contains(status, "9666") {
		t.Errorf("the status is %q", status)
	}
	a.send(a.begin("b"), 1, 20)
	b.awaitGot(d.log, 20)
	a.await(d.log, "select transmission_status like '%9666%' from parley.transmission_queue limit 1")
}

func TestAForwarderPassesMessagesOnAndAnswersBack(t *testing.T) {
	t.Parallel()
	a, b, middle := newBase(t, "a"), newBase(t, "b"), newBase(t, "middle")
	b.open()
	fromA, addressA := listen(t)
	fromB, addressB := listen(t)
	fromMiddle, addressMiddle := listen(t)
	a.route("target b", addressMiddle)
	b.route("source a", addressA)
	middle.exec("select parley.create_route('b', service_name => 'target b', address => $1, is_inbound => true)", addressB)
	da := serve(t, "first", endpoint.Config{Network: fromA}, a)
	serve(t, "second", endpoint.Config{Network: fromB}, b)
	dm := serve(t, "middle", endpoint.Config{Network: fromMiddle, Forward: true}, middle)
	there := a.beginInClear("b")
	a.send(there, 1, 20)
	b.awaitGot(da.log, 20)
	if s := dm.endpoint.Forwarded(); s.Messages < 20 || s.PendingMessages != 0 || s.PendingBytes != 0 {
		t.Errorf("the forwarder has counted %+v", s)
	}
	counter := "select value >= $2 from parley._p_transport_counters() where name = $1"
	middle.await(da.log, counter, "Forwarded Messages Total", 20)
	middle.await(da.log, counter, "Forwarded Msg Byte Total", 20)
	if n := value[int](middle, "select count(*) from parley._p_endpoint"); n != 0 {
		t.Errorf("the forwarder has stored %d endpoints", n)
	}
}

func TestADaemonThatDoesNotForwardReportsIt(t *testing.T) {
	t.Parallel()
	a, middle := newBase(t, "a"), newBase(t, "middle")
	fromA, _ := listen(t)
	fromMiddle, addressMiddle := listen(t)
	a.route("target b", addressMiddle)
	middle.exec("select parley.create_route('b', service_name => 'target b', address => 'tcp://127.0.0.1:1', is_inbound => true)")
	da := serve(t, "first", endpoint.Config{Network: fromA}, a)
	serve(t, "middle", endpoint.Config{Network: fromMiddle}, middle)
	a.send(a.begin("b"), 1, 3)
	a.await(da.log, "select bool_and(transmission_status like '%does not forward%') from parley.transmission_queue")
	middle.await(da.log, "select value >= 1 from parley._p_transport_counters() where name = 'Dropped Messages Total'")
}
