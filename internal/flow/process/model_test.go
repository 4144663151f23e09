package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/process"
)

// play does what can happen, in any order, until nothing is left to do; messages come in between.
func play(r *rapid.T, m *memory, bodies []string) {
	for step := 0; ; step++ {
		all := m.choices()
		if len(bodies) > 0 {
			all = append(all, choice{"publish", func() {
				m.publish(bodies[0])
				bodies = bodies[1:]
			}})
		}
		if len(all) == 0 {
			return
		}
		if step > 2000 {
			r.Fatalf("it does not come to an end")
		}
		rapid.SampledFrom(all).Draw(r, "next").do()
	}
}

func (c choice) String() string { return c.name }

// read gives the messages that the reports of instances name, in the order in which each instance read them.
func reported(m *memory) (groups [][]string) {
	for _, body := range m.bodiesSent() {
		_, inner, _ := strings.Cut(body, ">")
		inner, _, _ = strings.Cut(inner, "<")
		groups = append(groups, strings.Fields(inner))
	}
	return groups
}

const sequentialConvoy = begins + `
- set: {name: order.text('/Order/Seq')}
- while:
    when: count < 2
    do:
      - listen:
          - receive: {message: order, follow: [number]}
            do: [{set: {count: count + 1, name: "name + ' ' + order.text('/Order/Seq')"}}]
          - delay: 1 minute
            do: [{set: {count: "5"}}]
- construct: {message: line, template: "<R>{{name}}</R>"}
- send: line
`

// In a sequential convoy each message is read once, by one instance, in the order of its key, however an instance ends while others come.
func TestASequentialConvoyLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(sequentialConvoy))
	if a := p.Activations(); len(a) != 1 || !slices.Equal(a[0].Convoy, []string{numberName}) {
		t.Fatalf("the activations are %+v", a)
	}
	rapid.Check(t, func(r *rapid.T) {
		m := newMemory(r, p)
		keys := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 12).Draw(r, "keys")
		var bodies []string
		want := map[int][]string{}
		for n, key := range keys {
			bodies = append(bodies, order(fmt.Sprint(key), fmt.Sprintf("<Seq>k%d.%d</Seq>", key, n)))
			want[key] = append(want[key], fmt.Sprintf("k%d.%d", key, n))
		}
		play(r, m, bodies)
		got := map[int][]string{}
		for _, group := range reported(m) {
			var key int
			if _, err := fmt.Sscanf(group[0], "k%d.", &key); err != nil {
				r.Fatal(err)
			}
			got[key] = append(got[key], group...)
		}
		for key := range want {
			if !slices.Equal(got[key], want[key]) {
				r.Fatalf("of key %d there came %v, and were read %v", key, want[key], got[key])
			}
		}
		if len(m.unrouted) > 0 {
			r.Fatalf("messages %v are with nobody", m.unrouted)
		}
	})
}

const parallelConvoy = `
- parallel:
    orders:
      - receive: {message: order, activate: true, initialise: [number]}
    answers:
      - receive: {message: answer, activate: true, initialise: [number]}
- construct: {message: line, template: "<R>{{order.text('/Order/Seq')}} {{answer.text('/Answer/Seq')}}</R>"}
- send: line
`

// In a parallel convoy each instance reads one message of each kind with the same key, whichever comes first.
func TestAParallelConvoyPairsMessagesOfAKey(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(parallelConvoy))
	if a := p.Activations(); len(a) != 2 || len(a[0].Convoy) != 1 || len(a[1].Convoy) != 1 {
		t.Fatalf("the activations are %+v", a)
	}
	rapid.Check(t, func(r *rapid.T) {
		m := newMemory(r, p)
		var bodies []string
		count := map[int][2]int{}
		for n, key := range rapid.SliceOfN(rapid.IntRange(0, 1), 1, 10).Draw(r, "keys") {
			c := count[key]
			if rapid.Bool().Draw(r, "isOrder") {
				bodies = append(bodies, order(fmt.Sprint(key), fmt.Sprintf("<Seq>k%do.%d</Seq>", key, n)))
				c[0]++
			} else {
				bodies = append(bodies, answer(fmt.Sprint(key), fmt.Sprintf("<Seq>k%da.%d</Seq>", key, n)))
				c[1]++
			}
			count[key] = c
		}
		play(r, m, bodies)
		pairs := map[string]int{}
		isRead := map[string]bool{}
		for _, pair := range reported(m) {
			if len(pair) != 2 || pair[0][:2] != pair[1][:2] || pair[0][2] != 'o' || pair[1][2] != 'a' || isRead[pair[0]] || isRead[pair[1]] {
				r.Fatalf("an instance has read %v", pair)
			}
			isRead[pair[0]], isRead[pair[1]] = true, true
			pairs[pair[0][1:2]]++
		}
		for key, c := range count {
			if got := pairs[fmt.Sprint(key)]; got != min(c[0], c[1]) {
				r.Fatalf("of key %d there are %v messages, and %d pairs", key, c, got)
			}
		}
	})
}

// An aggregate sends each message once, in groups no larger than its number.
func TestAnAggregateCollectsEachMessageOnce(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(`
- aggregate:
    receive: {message: order, activate: true, initialise: [number]}
    into: found
    until: {count: 3, after: 1 minute, when: order.has('/Order/Last')}
- construct: {message: line, template: "<R>{{found.map(f, f.text('/Order/Seq') + ' ').join()}}</R>"}
- send: line
`))
	rapid.Check(t, func(r *rapid.T) {
		m := newMemory(r, p)
		var bodies, want []string
		for n, key := range rapid.SliceOfN(rapid.IntRange(0, 2), 1, 12).Draw(r, "keys") {
			last := ""
			if rapid.IntRange(0, 3).Draw(r, "isLast") == 0 {
				last = "<Last/>"
			}
			bodies = append(bodies, order(fmt.Sprint(key), fmt.Sprintf("<Seq>k%d.%02d%s</Seq>", key, n, strings.Trim(last, "<>/")), last))
			want = append(want, fmt.Sprintf("k%d.%02d%s", key, n, strings.Trim(last, "<>/")))
		}
		play(r, m, bodies)
		var got []string
		for _, group := range reported(m) {
			for i, one := range group {
				if one[:2] != group[0][:2] || i > 2 || strings.HasSuffix(one, "Last") && i != len(group)-1 {
					r.Fatalf("an aggregate has collected %v", group)
				}
			}
			got = append(got, group...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			r.Fatalf("of %v are collected %v", want, got)
		}
	})
}

// Branches in parallel end in any order, and the shape when all have; what each sends is sent once.
func TestParallelBranchesJoinInAnyOrder(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(begins+`
- for_each:
    item: one
    in: order.texts('//Line')
    parallel: 3
    messages: {part: any}
    correlations: {mine: ["`+stateName+`"]}
    do:
      - construct: {message: part, template: "<R>ask {{one}}</R>", properties: {"`+stateName+`": one}}
      - send: {message: part, initialise: [mine]}
      - receive: {message: part, follow: [mine]}
      - set: {count: count + 1}
      - construct: {message: part, template: "<R>got {{one}} {{part.text('/Answer/State')}}</R>"}
      - send: part
- construct: {message: line, template: "<R>all {{count}}</R>"}
- send: line
`))
	rapid.Check(t, func(r *rapid.T) {
		m := newMemory(r, p)
		names := rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]{1,3}"), 0, 7, rapid.ID).Draw(r, "names")
		lines := ""
		var answers, want []string
		for _, name := range names {
			lines += "<Line>" + name + "</Line>"
			answers = append(answers, answer("x", "<State>"+name+"</State>"))
			want = append(want, "ask "+name, "got "+name+" "+name)
		}
		m.publish(order("1", lines))
		m.settleAll()
		if most := len(m.instances[0].step.Waits); most > 3 {
			r.Fatalf("%d are in work at a time", most)
		}
		// An answer that comes before it is asked for is nobody's, and comes again.
		play(r, m, rapid.Permutation(answers).Draw(r, "answers"))
		for len(m.unrouted) > 0 {
			again := m.unrouted
			m.unrouted = nil
			for _, id := range again {
				m.route(id)
			}
			if len(m.unrouted) == len(again) {
				break
			}
			play(r, m, nil)
		}
		var got []string
		for _, group := range reported(m) {
			got = append(got, strings.Join(group, " "))
		}
		if last := got[len(got)-1]; last != fmt.Sprint("all ", len(names)) || m.instances[0].step.Status != process.Finished {
			r.Fatalf("the last is %q, of %v: %+v", last, got, m.instances[0].step.Fault)
		}
		got = got[:len(got)-1]
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			r.Fatalf("sent are %v and not %v", got, want)
		}
	})
}
