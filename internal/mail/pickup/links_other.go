//go:build !unix

package pickup

import (
	"io/fs"
	"os"
)

// lock is not known here.
func lock(*os.File) bool { return true }

// hasOtherNames is not known here.
func hasOtherNames(fs.FileInfo) bool { return false }
