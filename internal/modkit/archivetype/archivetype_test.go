package archivetype_test

import (
	"testing"

	"github.com/brine-salt/brine/internal/modkit/archivetype"
)

func TestGuess(t *testing.T) {
	for name, want := range map[string]string{"a.tar": "tar", "A.TGZ": "tar", "/x/a.tar.xz": "tar", "a.zip": "zip", "a.rar": "rar", "a.gz": "", "tar": "", "": ""} {
		if got := archivetype.Guess(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
