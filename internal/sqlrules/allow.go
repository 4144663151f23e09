package sqlrules

// unpinned names the functions that may leave their search_path as the caller set it, with the reason.
// Private functions that run with the rights of their caller need no entry: what calls them pins it.
var unpinned = map[string]string{
	"send":    "hot: a set clause costs every call; each name and operator in it is written in full",
	"receive": "hot: a set clause costs every call; each name and operator in it is written in full",
}

// tolerated names what plpgsql_check may say about a function, as part of the text of the finding, with
// the reason.
var tolerated = map[string][]tolerance{}

// A tolerance is one finding that a function may keep.
type tolerance struct {
	finding string // part of the message
	reason  string
}
