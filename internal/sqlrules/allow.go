package sqlrules

// unpinned names the functions that may leave their search_path as the caller set it, with the reason. Each name,
// type and operator in them is written in full, and what they call pins its own.
var unpinned = map[string]string{
	"parley.send": "the hot path: setting the search_path costs a tenth of a bare insert",
}

// tolerated names what plpgsql_check may say about a function, as part of the text of the finding, with
// the reason.
var tolerated = map[string][]tolerance{}

// A tolerance is one finding that a function may keep.
type tolerance struct {
	finding string // part of the message
	reason  string
}
