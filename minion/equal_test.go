package minion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func equal(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
