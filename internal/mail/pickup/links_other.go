//go:build !unix

package pickup

import "io/fs"

// hasOtherNames is not known here.
func hasOtherNames(fs.FileInfo) bool { return false }
