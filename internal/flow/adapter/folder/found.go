package folder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// Identity is by what a file is told from others that have had, or will have, its name. No program can set when a file was changed, so that
// a copy with the times of its original is another file.
type Identity struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds since 1970
	Changed  int64  `json:"changed"`  // the same, of its state, 0 where it is not known
	Inode    uint64 `json:"inode"`    // 0 where it is not known
}

// IsSame reports whether two looks saw one file that nobody has written to.
func (i Identity) IsSame(other Identity) bool { return i == other }

// Found is a file of a folder.
type Found struct {
	Path string // from the folder
	Identity
}

// Name gives the name of the file without its folder.
func (f Found) Name() string { return path.Base(f.Path) }

// Entry describes a file in the ledger.
type Entry struct {
	Path   string `json:"path"`          // from the folder; printable
	Raw    []byte `json:"raw,omitempty"` // the path where it is no UTF-8
	SHA256 string `json:"sha256"`
	Identity
}

func newEntry(f Found) Entry {
	if !utf8.ValidString(f.Path) {
		return Entry{Path: strconv.QuoteToASCII(f.Path), Raw: []byte(f.Path), Identity: f.Identity}
	}
	return Entry{Path: f.Path, Identity: f.Identity}
}

// File gives the path of the file, from the folder.
func (e Entry) File() string {
	if e.Raw != nil {
		return string(e.Raw)
	}
	return e.Path
}

func (e Entry) encoded() json.RawMessage {
	encoded, err := json.Marshal(e)
	if err != nil { // texts and numbers can be encoded
		panic(err)
	}
	return encoded
}

// longestPath is how many bytes of a path a key has; of a longer one it has the hash.
const longestPath = 600

// Key is under which the ledger knows a file. It has all by which a file is told from another of that name, so that the same content that
// comes again, under the same name and with the same time of its last writing, is new. The times of a file system go in steps of some
// milliseconds, within which its number alone differs.
func (e Entry) Key() string {
	name := e.Path
	if len(name) > longestPath {
		sum := sha256.Sum256([]byte(e.File()))
		name = "sha256:" + hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s:%d:%d:%d:%d:%s", e.SHA256, e.Size, e.Modified, e.Changed, e.Inode, name)
}

// Hidden is how the name begins under which a file is removed, in its folder. No process knows the rest of it before, so that between the
// check whether a file is the one that was taken and its removal no other can come in its place.
func (e Entry) Hidden() string {
	return path.Join(path.Dir(e.File()), filename.Reserved+"taken-"+e.Mark())
}

// Mark is that of the file among others of its name.
func (e Entry) Mark() string {
	sum := sha256.Sum256([]byte(e.Key()))
	return hex.EncodeToString(sum[:16])
}

// inOrder sorts files by name or by time.
func inOrder(files []Found, order string) {
	slices.SortFunc(files, func(a, b Found) int {
		if order == ByTime {
			if c := cmp.Compare(a.Modified, b.Modified); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.Path, b.Path)
	})
}

// looks are the files as the last looks saw them, so that one that stands still is known.
type looks map[string]look

type look struct {
	Identity
	since time.Time
}

// settled gives those of the files that have stood still for some time, and whether there are others.
func (l *looks) settled(files []Found, stableFor time.Duration, now time.Time) (still []Found, areOthers bool) {
	seen := make(looks, len(files))
	for _, f := range files {
		before, known := (*l)[f.Path]
		if !known || !before.IsSame(f.Identity) {
			before = look{f.Identity, now}
		}
		seen[f.Path] = before
		if known && now.Sub(before.since) >= stableFor {
			still = append(still, f)
		} else {
			areOthers = true
		}
	}
	*l = seen
	return still, areOthers
}
