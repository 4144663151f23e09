package script

// A Feed cuts lines into batches as they are typed.
type Feed struct {
	reader *reader
	number int
}

// NewFeed gives a feed; run gets each batch as soon as it ends, and says whether to go on.
func NewFeed(options Options, run func(*Batch) bool) *Feed {
	return &Feed{reader: newReader(options, func(b *Batch, _ error) bool { return run(b) })}
}

// Add takes a line without its end. Lines before one with an error stay.
func (f *Feed) Add(line string) error {
	f.number++
	return f.reader.line(line+"\n", Origin{Line: f.number})
}

// Lines gives how many lines the batch has so far.
func (f *Feed) Lines() int { return f.reader.lines }

// Reset drops the lines of the batch so far.
func (f *Feed) Reset() { f.reader.forget() }

// HasEnded reports whether EXIT or QUIT came.
func (f *Feed) HasEnded() bool { return f.reader.done }
