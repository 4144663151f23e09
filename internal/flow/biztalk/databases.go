package biztalk

import (
	"strconv"
	"strings"
	"time"
)

func (e *endpoint) sql() {
	e.adapter = "PostgreSQL"
	binding := &node{text: e.properties["bindingconfiguration"], file: e.at.file, place: e.at.place}
	statement := e.properties["sqlcommand"]
	if root, err := binding.parseWithin(); err == nil {
		if written := root.value("pollingStatement"); written != "" {
			statement = written
		}
		if seconds, err := strconv.Atoi(root.value("pollingIntervalInSeconds")); err == nil && seconds > 0 && e.kind == kindReceiveLocation {
			e.settings["poll_interval"] = duration(time.Duration(seconds) * time.Second)
		}
	}
	what := "the database of SQL Server " + cut(e.address, 200)
	if statement != "" {
		what += " and the statement " + cut(strings.Join(strings.Fields(statement), " "), 200)
	}
	// A port that is started before it is mended fails, and loses nothing.
	e.address = "local"
	if e.kind == kindReceiveLocation {
		e.settings["statement"], e.settings["takes"] = "select * from mend.this_location()", true
	} else {
		e.settings["function"] = "mend.this_port"
	}
	e.stop(e.at, what, "the adapter works on PostgreSQL", "move the tables, and give the statement in SQL of PostgreSQL, "+
		"and the address where it is not the database of the host")
}

func (e *endpoint) queue() {
	e.adapter = "Service"
	written := e.address
	if queue := e.properties["queue"]; queue != "" {
		written = queue
	}
	e.address = "queue:" + e.t.text(e.at, e.kind, e.name, written[strings.LastIndexAny(written, `\/`)+1:])
	e.stop(e.at, "the queue "+written, "a simple queue of Parley takes its place",
		"make the queue, let the programs at the other end use it, then start this")
}
