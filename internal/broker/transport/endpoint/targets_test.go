package endpoint_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
)

// Two databases behind one address: one that nothing can be put into for now keeps nothing from the other.
func TestALockedDatabaseDelaysNothingForAnotherOneBehindTheSameAddress(t *testing.T) {
	t.Parallel()
	for name, isBound := range map[string]bool{"conversations under way": true, "conversations that begin": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, c := newBase(t, "a"), newBase(t, "b"), newBase(t, "c")
			b.open()
			c.open()
			fromA, _ := listen(t)
			there, address := listen(t)
			a.route("target b", address)
			a.route("target c", address)
			da := serve(t, "first", endpoint.Config{Network: fromA}, a)
			serve(t, "second", endpoint.Config{Network: there}, b, c)
			toB, toC := a.begin("b"), a.begin("c")
			const acknowledged = `select not exists (select from parley._p_transit as t join parley._p_endpoint as e using (endpoint_id)
				where e.conversation_handle = $1::uuid) and exists (select from parley._p_send_progress as p join parley._p_endpoint as e using (endpoint_id)
				where e.conversation_handle = $1::uuid and p.sequence = $2)`
			if isBound {
				a.send(toB, 1, 1)
				a.send(toC, 1, 1)
				a.await(da.log, acknowledged, toB, 1)
				a.await(da.log, acknowledged, toC, 1)
			}
			goOn := c.standStill()
			first := 1
			if isBound {
				first = 2
			}
			for n := first; n <= 10; n++ {
				a.send(toC, n, n)
				a.send(toB, n, n)
				a.await(da.log, acknowledged, toB, n)
			}
			// All of that while the other database has not even said that it cannot answer, for which it is given half a minute.
			if value[bool](a, acknowledged, toC, 10) || value[bool](a, "select exists (select from parley._p_parked)") {
				t.Error("what was for one database has waited for the other")
			}
			goOn()
			b.awaitGot(da.log, 10)
			c.awaitGot(da.log, 10)
		})
	}
}
