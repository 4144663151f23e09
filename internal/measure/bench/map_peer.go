package bench

import (
	"context"
	"time"
)

// MapPeer is an engine with maps in XSLT, measured beside the worker for stylesheets in the same run.
type MapPeer struct {
	// Name is the system in results, Short a line on it.
	Name, Short string
	// Missing gives how to get what it needs and is not there; empty where all is there.
	Missing func() string
	// Start starts it as a process of its own, and waits until it is warm.
	Start func(ctx context.Context, place MapPlace) (MapEngine, error)
}

// MapPlace names the files of an engine.
type MapPlace struct {
	Stylesheet, Document string // files
	Folder               string // an empty one of its own
}

// MapEngine is an engine that is warm.
type MapEngine struct {
	// Result is the document, mapped.
	Result []byte
	// Run maps the document so often, one after the other, and gives how long that took.
	Run func(ctx context.Context, documents int) (time.Duration, error)
	// Stop ends the process.
	Stop func(ctx context.Context) error
}
