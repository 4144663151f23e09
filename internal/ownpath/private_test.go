package ownpath

import (
	"io/fs"
	"testing"
)

func TestAKeyIsReadByItsOwnerOrByTheGroupToWhichRootGaveIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode      fs.FileMode
		owner, us int
		want      bool
	}{
		{0o600, 1000, 1000, true},
		{0o400, 0, 0, true},
		{0o440, 0, 65532, true}, // a secret that Kubernetes mounts
		{0o640, 0, 65532, true},
		{0o440, 65532, 65532, false},
		{0o440, 0, 0, false},
		{0o660, 0, 65532, false}, // the group could put another key there
		{0o444, 0, 65532, false},
		{0o604, 1000, 1000, false},
	} {
		if got := isPrivate(test.mode, test.owner, test.us); got != test.want {
			t.Errorf("mode %04o of user %d, read by user %d: private is %t", test.mode, test.owner, test.us, got)
		}
	}
}
